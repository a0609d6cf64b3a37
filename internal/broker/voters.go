package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/api"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/peer"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// A voter is what a node is besides a broker when it votes on the metadata beside others: it listens for them, knows
// who leads, and asks that one.
type voter struct {
	node    int32
	voters  []quorum.Voter // controller.quorum.voters
	network Network
	timeout time.Duration // controller.quorum.request.timeout.ms: among voters

	askTimeout time.Duration // controller.socket.timeout.ms: of what is asked of the active controller
	session    time.Duration // broker.session.timeout.ms

	sockets []listener                 // controller listeners
	cluster atomic.Pointer[string]     // its id, "" while this node is new, nil until it knows whether it is
	serving atomic.Pointer[api.Server] // of the controller listeners; nil until the broker has one

	found  logdir.Evidence // what judge was shown: partitions are judged again with the metadata of the others
	joined chan struct{}   // closed when quorum is set
	quorum *quorum.Quorum

	// mu guards the connection to the active controller, and is not held while it is used.
	mu struct {
		sync.Mutex
		leader int32
		client *peer.Client
	}
}

// newVoter returns nil when the configuration names no other voter, or the operator has this node decide alone. Until
// issue 11 is done nobody gets a cluster who has not asked for it by name.
func newVoter(c *config.Broker, network Network) (*voter, error) {
	listed, err := c.QuorumVoters()
	node := int32(c.Int("node.id"))
	if err != nil || len(listed) < 2 || !c.Bool("gregor.preview.cluster") || c.Bool("gregor.take.over.as.only.voter") || !slices.ContainsFunc(listed, func(v config.Voter) bool { return v.ID == node }) {
		return nil, err
	}
	v := &voter{node: node, network: network, joined: make(chan struct{})}
	v.timeout, v.askTimeout = c.Milliseconds("controller.quorum.request.timeout.ms"), c.Milliseconds("controller.socket.timeout.ms")
	v.session = c.Milliseconds("broker.session.timeout.ms")
	for _, l := range listed {
		v.voters = append(v.voters, quorum.Voter{ID: l.ID, Address: l.Addr()})
	}
	return v, nil
}

// sessionTimeout is that of brokers, 0 for the only one.
func (v *voter) sessionTimeout() time.Duration {
	if v == nil {
		return 0
	}
	return v.session
}

// peers are what the quorum needs to know.
func (v *voter) peers(c *config.Broker) *quorum.Peers {
	if v == nil {
		return nil
	}
	return &quorum.Peers{
		Voters: v.voters, Dial: v.dial, RequestTimeout: v.timeout,
		SilenceMax: c.Milliseconds("controller.quorum.election.timeout.ms"),
	}
}

func (v *voter) dial(ctx context.Context, address string) (net.Conn, error) {
	return v.network.Dial(ctx, "tcp", address)
}

// serveControllers listens for other voters before there is anything to tell them but whether this node is new.
func (b *Broker) serveControllers(ctx context.Context, c *config.Broker) (err error) {
	v, err := newVoter(c, b.world.Network)
	if v == nil {
		return err
	}
	if v.sockets, err = listen(ctx, b.world.Network, c, true); err != nil {
		return err
	}
	b.onStop("controller listeners", func(context.Context) error {
		closeAll(v.sockets)
		return nil
	})
	server := wire.NewServer(wire.Config{
		Handler: v, MaxRequestSize: c.Int("socket.request.max.bytes"), IdleTimeout: c.Milliseconds("connections.max.idle.ms"), Logger: b.logger,
	})
	b.onStop("controller connections", server.Shutdown)
	for _, l := range v.sockets {
		server.Serve(l.name, l.socket)
	}
	b.voter = v
	return nil
}

var errNotReady = errors.New("this node is starting")

// Handle implements wire.Handler for the controller listeners.
func (v *voter) Handle(ctx context.Context, r *wire.Request, w *wire.Response) error {
	switch r.Key {
	case quorum.ClusterKey:
		id := v.cluster.Load()
		if id == nil {
			return errNotReady // "new" might be wrong, and make another cluster
		}
		w.Buf = quorum.AppendClusterAnswer(w.Buf, *id)
		return nil
	case quorum.HelloKey:
		return v.greet(ctx, r, w)
	}
	if s := v.serving.Load(); s != nil {
		return s.Handle(ctx, r, w)
	}
	return errNotReady
}

// greet answers another voter, which waits until this one can.
func (v *voter) greet(ctx context.Context, r *wire.Request, w *wire.Response) error {
	hello, err := quorum.ParseHello(r.Body)
	if err != nil {
		return err
	}
	select {
	case <-v.joined:
	case <-ctx.Done():
		return ctx.Err()
	}
	refusal := v.quorum.Greet(hello)
	w.Buf = quorum.AppendHelloAnswer(w.Buf, refusal)
	if refusal == nil {
		w.TakeOver(v.quorum.ServeVoter)
	}
	return nil
}

// clusterID returns the id that this node has from now on, if it is new: the other voters' or a new one.
func (b *Broker) clusterID(ctx context.Context) (string, error) {
	newID := func() string { return uuid.From(b.world.Random("cluster id")).String() }
	if b.voter == nil {
		return newID(), nil
	}
	f := quorum.Founding{
		NodeID: b.voter.node, Voters: b.voter.voters, Dial: b.voter.dial, NewID: newID, RequestTimeout: b.voter.timeout, Logger: b.logger,
	}
	b.voter.cluster.Store(new(string))
	id, err := f.Agree(ctx)
	if err == nil {
		b.voter.cluster.Store(&id)
	}
	return id, err
}

// vote begins to vote, and to answer on the controller listeners. It returns what decides for this broker.
func (b *Broker) vote(own *controller.Controller) metadataController {
	v := b.voter
	clusterID := b.logs.ClusterID()
	v.quorum = b.quorum
	close(v.joined)
	v.serving.Store(api.NewOfControllers(api.Deps{
		NodeID: v.node, ClusterID: clusterID, Config: b.settings.now, Metadata: b.quorum.Image, Logger: b.logger,
		Controller: own, Active: v, Brokers: own, Partitions: own,
	}))
	b.onStop("connection to the controller", v.disconnect)
	return &clusterNode{b, &api.ClusterController{Controller: own, Active: v, ClusterID: clusterID, NodeID: v.node, BrokerEpoch: func() int64 { return b.lifecycle.epoch }}}
}

// A clusterNode asks the active controller of several. What there is to say of log directories heartbeats say.
type clusterNode struct {
	b *Broker
	*api.ClusterController
}

// DirectoriesOffline implements directoryController.
func (n *clusterNode) DirectoriesOffline(ctx context.Context, _ int32, _ int64, dirs []uuid.UUID) error {
	return n.b.lifecycle.directoriesOffline(ctx, dirs)
}

// CordonDirectories implements directoryController.
func (n *clusterNode) CordonDirectories(ctx context.Context, _ int32, _ int64, dirs []uuid.UUID) error {
	return n.b.lifecycle.cordonDirectories(ctx, dirs)
}

// startHeartbeats begins to tell the controller of several that this broker is there.
func (b *Broker) startHeartbeats(c *config.Broker, epoch int64) {
	if b.voter == nil {
		return
	}
	b.lifecycle = &lifecycle{
		heartbeat: b.controller.Heartbeat, image: b.quorum.Image, broker: b.logs.NodeID(), epoch: epoch, logger: b.logger,
		interval: c.Milliseconds("broker.heartbeat.interval.ms"), timeout: c.Milliseconds("broker.session.timeout.ms") / 2,
	}
	b.lifecycle.start()
	b.onStop("heartbeats", b.lifecycle.close)
}

// enterService waits until the controller of several has put this broker into service, and it knows that itself.
func (b *Broker) enterService(ctx context.Context, _ *config.Broker) error {
	if b.voter == nil {
		return nil
	}
	if err := b.lifecycle.serve(ctx); err != nil {
		return fmt.Errorf("the controller does not put this broker into service: %w", err)
	}
	return b.awaitImage(ctx, func(img *metadata.Image) bool { return img.Broker(b.logs.NodeID()).Active() })
}

// leaveServiceOnStop has others lead before this broker stops, if there are others.
func (b *Broker) leaveServiceOnStop(c *config.Broker) {
	if b.voter == nil || !c.Bool("controlled.shutdown.enable") {
		return
	}
	b.onStop("controlled shutdown", func(ctx context.Context) error {
		if err := b.lifecycle.shutDown(ctx); err != nil {
			b.logger.Warn("this broker stops without the controller: others find out when they do not hear of it", "err", err)
		}
		return nil
	})
}

// catchUp waits until this node has the metadata with its own registration, and judges the partitions in its
// directories by that.
func (b *Broker) catchUp(ctx context.Context, c *config.Broker, epoch int64) error {
	if b.voter == nil {
		return nil
	}
	if err := b.awaitImage(ctx, func(img *metadata.Image) bool {
		self := img.Broker(b.logs.NodeID())
		return self != nil && self.Epoch >= epoch
	}); err != nil {
		return fmt.Errorf("the metadata with this node's registration: %w", err)
	}
	b.settings.load(b.quorum.Image())
	e, err := b.gather(c, b.voter.found, b.quorum)
	if err != nil {
		return err
	}
	b.voter.found = logdir.Evidence{}
	return b.decide(c, e)
}

// awaitImage waits until the metadata is as it is to be.
func (b *Broker) awaitImage(ctx context.Context, done func(*metadata.Image) bool) error {
	for !done(b.quorum.Image()) {
		select {
		case <-time.After(imagePause):
		case <-b.done:
			return b.failure
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// imagePause is waited for between two looks at the metadata.
const imagePause = 5 * time.Millisecond

// Leads implements api.ActiveController.
func (v *voter) Leads() bool { return v.quorum.Leads() }

// Ask implements api.ActiveController.
func (v *voter) Ask(ctx context.Context, req kmsg.Request, max int16) (kmsg.Response, error) {
	c, err := v.activeController()
	if err != nil {
		return nil, err
	}
	return c.Request(ctx, req, max)
}

// activeController returns a connection to the controller that decides.
func (v *voter) activeController() (*peer.Client, error) {
	leader, _ := v.quorum.Leader()
	if leader < 0 || leader == v.node {
		return nil, api.ErrNoController
	}
	address, err := v.quorum.Address(leader)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.client == nil || v.mu.leader != leader {
		if v.mu.client != nil {
			v.mu.client.Close() // what was asked of it another one decides, or nobody
		}
		v.mu.leader = leader
		v.mu.client = peer.New(peer.Options{
			Dial:     func(ctx context.Context) (net.Conn, error) { return v.dial(ctx, address) },
			ClientID: fmt.Sprintf("broker-%d", v.node), Timeout: v.askTimeout,
		})
	}
	return v.mu.client, nil
}

// disconnect ends the connection to the active controller.
func (v *voter) disconnect(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.client != nil {
		v.mu.client.Close()
	}
	return nil
}
