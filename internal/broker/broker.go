package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/api"
	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/ownership"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/gregor-kafka/gregor/internal/wire"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options are what a broker is made of.
type Options struct {
	Config *config.Broker
	Logger *slog.Logger
	World  World
}

// A Broker is running from Start to Close. Its fields are set by Start, in the order in
// which the parts start.
type Broker struct {
	logger   *slog.Logger
	world    World // complete
	fs       vfs.FS
	caches   segment.Caches // of all logs
	settings *settings

	descriptors descriptorShares
	state       atomic.Int32 // a web.State
	listeners   []listener
	http        net.Listener // nil: none is configured
	web         *web.Server
	cleaner     *cleaner.Manager
	logs        *logdir.Manager
	quorum      *quorum.Quorum
	voter       *voter     // nil: this node decides alone
	lifecycle   *lifecycle // nil: likewise
	verdict     ownership.Verdict
	frozen      atomic.Pointer[error] // why the metadata does not go on
	controller  metadataController
	directories *directoryReports
	replicas    *replica.Manager
	groups      *group.Coordinator
	api         *api.Server // nil until clients are served
	server      atomic.Pointer[wire.Server]
	limiter     atomic.Pointer[connectionLimiter]

	started []part // what has started, in order

	done     chan struct{} // closed when the broker cannot go on
	failOnce sync.Once
	failure  error
}

// Start starts every part. On error nothing is left running.
func Start(ctx context.Context, o Options) (*Broker, error) {
	b := &Broker{logger: o.Logger, world: o.World.complete(), done: make(chan struct{})}
	b.setState(web.Starting)
	steps := []func(context.Context, *config.Broker) error{
		b.divideDescriptors, b.bind, b.serveControllers, b.openLogDirs, b.serveWeb, b.startQuorum, b.makeReplicas, b.register, b.loadLogs, b.follow, b.enterService, b.serve,
	}
	for _, step := range steps {
		if err := step(ctx, o.Config); err != nil {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
			defer cancel()
			return nil, errors.Join(err, b.stop(stopping))
		}
	}
	return b, nil
}

// Close stops every part, the last one first.
func (b *Broker) Close(ctx context.Context) error {
	b.setState(web.ShuttingDown)
	err := b.stop(ctx)
	b.fail(nil)
	return errors.Join(err, b.failure)
}

// fail says that the broker cannot go on; the first reason counts.
func (b *Broker) fail(reason error) {
	b.failOnce.Do(func() {
		b.failure = reason
		close(b.done)
	})
}

// Done is closed when the broker cannot go on; Close then returns the reason.
func (b *Broker) Done() <-chan struct{} { return b.done }

func (b *Broker) bind(ctx context.Context, c *config.Broker) error {
	var err error
	if b.listeners, err = listen(ctx, b.world.Network, c, false); err != nil {
		return err
	}
	b.onStop("listeners", func(context.Context) error {
		closeAll(b.listeners) // the server has closed them already if it got to serve
		return nil
	})
	return b.bindWeb(ctx, c)
}

func (b *Broker) openLogDirs(ctx context.Context, c *config.Broker) error {
	lc := logdir.BrokerConfig(c)
	lc.FS, lc.Caches, lc.Random, lc.Logger = b.fs, b.caches, b.world.Random("log directories"), b.logger
	lc.OnDirFailure = b.dirFailed
	lc.ReplaceLog = func(p topic.Partition, open func() (*commitlog.Log, error)) error {
		return b.replicas.ReplaceLog(p, open)
	}
	lc.OnMoved = func(p topic.Partition, topicID, dirID uuid.UUID) { b.directories.assigned(p, topicID, dirID) }
	b.makeCleaner(c)
	lc.Cleaner = b.cleaner
	lc.NewClusterID = func() (string, error) { return b.clusterID(ctx) }
	lc.Judge = func(found logdir.Evidence) error { return b.judge(c, found) }
	var err error
	if b.logs, err = logdir.Open(lc); err != nil {
		if b.quorum != nil {
			err = errors.Join(err, b.quorum.Close())
		}
		return err
	}
	b.settings = newSettings(c.WithNodeID(b.logs.NodeID()), b.logs.NodeID(), b.logger)
	b.onStop("HTTP", b.stopWeb) // the last to go: closing logs can be watched as well
	b.started = append(b.started, part{name: "log directories", stop: b.logs.Close, logs: true})
	b.onStop("metadata log", func(context.Context) error { return b.quorum.Close() })
	return nil
}

// startQuorum makes this node the leader of the metadata log that judge has read, or one of those who vote on it.
func (b *Broker) startQuorum(context.Context, *config.Broker) error {
	if err := b.takePossession(); err != nil {
		return err
	}
	q := b.quorum
	q.IdentifyDirectory(b.logs.MetadataDirectoryID())
	if err := q.Start(); err != nil {
		return err
	}
	if err := b.logs.SettleMeta(); err != nil {
		return err
	}
	b.settings.load(q.Image())
	control := controller.New(controller.Options{
		Quorum: q, Random: b.world.Random("decisions"), Leads: q.Leads, SessionTimeout: b.voter.sessionTimeout(),
		Rules: controller.Rules{TopicDefaults: b.settings.topicDefaults, ValidateConfigs: b.settings.validate, ListConfig: b.settings.listConfig},
	})
	b.onStop("controller", func(context.Context) error {
		control.Close()
		return nil
	})
	b.controller = control
	if b.voter != nil {
		b.controller = b.vote(control)
	}
	return nil
}

// metadataDir is the log directory that holds __cluster_metadata-0.
func metadataDir(c *config.Broker) string {
	if dir := c.String("metadata.log.dir"); dir != "" {
		return dir
	}
	return c.LogDirs()[0]
}

func (b *Broker) makeReplicas(_ context.Context, c *config.Broker) error {
	b.replicas = replica.NewManager(replica.Options{
		NodeID: b.logs.NodeID(), Logs: b.logs, Logger: b.logger, OnChange: b.partitionChanged,
		LogConfig:    func(name string) commitlog.Config { return b.settings.logConfig(b.replicas.Image(), name) },
		LagTimeMaxMs: c.Long("replica.lag.time.max.ms"),
		Follow:       b.followOptions(c),
		RackAware:    rackAware(c),

		AlterPartition: b.alterPartition(),
	})
	b.groups = group.New(b.groupOptions())
	b.onStop("groups", func(context.Context) error {
		b.groups.Close()
		return nil
	})
	return nil
}

// partitionChanged tells the coordinators what they lead.
func (b *Broker) partitionChanged(p topic.Partition, s *replica.PartitionState) {
	if p.Topic != topic.ConsumerOffsets {
		return
	}
	if s.Leading {
		b.groups.Lead(p.Partition, s.LeaderEpoch)
	} else {
		b.groups.Resign(p.Partition, s.LeaderEpoch)
	}
}

// register makes this start of the broker known in the metadata.
func (b *Broker) register(ctx context.Context, c *config.Broker) error {
	r := controller.Registration{ID: b.logs.NodeID(), IncarnationID: uuid.From(b.world.Random("incarnations")), PreviousEpoch: b.logs.PreviousBrokerEpoch()}
	for _, l := range b.listeners {
		r.Endpoints = append(r.Endpoints, l.endpoint)
	}
	for _, d := range b.logs.Dirs() {
		if d.Online {
			r.LogDirs = append(r.LogDirs, d.ID)
		}
	}
	if rack := c.String("broker.rack"); rack != "" {
		r.Rack = &rack
	}
	within, cancel := context.WithTimeout(ctx, c.Milliseconds("initial.broker.registration.timeout.ms"))
	defer cancel()
	epoch, err := b.controller.RegisterBroker(within, r)
	if err != nil {
		return fmt.Errorf("registration: %w", err)
	}
	b.logs.SetBrokerEpoch(epoch)
	b.startHeartbeats(c, epoch)
	if err := b.catchUp(ctx, c, epoch); err != nil {
		return err
	}
	b.directories = &directoryReports{
		controller: b.controller, broker: b.logs.NodeID(), epoch: epoch,
		timeout: c.Milliseconds("log.dir.failure.timeout.ms"), fail: b.fail, logger: b.logger,
	}
	b.directories.start()
	b.onStop("reports of directories", b.directories.close)
	return nil
}

func (b *Broker) loadLogs(ctx context.Context, _ *config.Broker) error {
	b.setState(web.Recovery)
	img := b.quorum.Image()
	b.reconfigureLogs()                                // what was changed at run time lasts
	defer func() { b.verdict = ownership.Verdict{} }() // it knows every partition
	return b.logs.Load(ctx, logdir.LoadOptions{
		LogConfig: func(name string) commitlog.Config { return b.settings.logConfig(img, name) },
		Fate:      b.fate,
		Belongs:   func(p topic.Partition) bool { return belongs(img, b.logs.NodeID(), p) },
		TopicID: func(name string) uuid.UUID {
			if t := img.Topic(name); t != nil {
				return t.ID
			}
			return uuid.Zero
		},
	})
}

// belongs reports whether the metadata says that a node has a replica of the partition.
func belongs(img *metadata.Image, nodeID int32, p topic.Partition) bool {
	t := img.Topic(p.Topic)
	return t != nil && int(p.Partition) < len(t.Partitions) && slices.Contains(t.Partitions[p.Partition].Replicas, nodeID)
}

// follow applies the image and, from then on, every change of it.
func (b *Broker) follow(context.Context, *config.Broker) error {
	b.quorum.Subscribe(func(_ *metadata.Image, d *metadata.Delta) { b.apply(d) })
	b.replicas.Start()
	b.onStop("followers", func(context.Context) error {
		b.replicas.Close()
		return nil
	})
	b.logs.Start(context.Background())
	b.startCleaner()
	return nil
}

// apply is called with one delta after the other, in order, on the quorum's publisher.
func (b *Broker) apply(d *metadata.Delta) {
	if slices.ContainsFunc(d.Configs, b.settings.concerns) {
		b.reconfigure(d.After)
	}
	for _, r := range d.Configs {
		if r.Type == metadata.ResourceTopic {
			b.configureTopic(d.After, d.After.Topic(r.Name))
		}
	}
	switch err := b.replicas.Apply(d); {
	case errors.Is(err, logdir.ErrClosed):
		b.logger.Info("partitions are not created, the broker stops: the next start does it")
	case err != nil:
		b.logger.Error("partitions are offline", "err", err)
	}
	b.compareDirectories(d)
	var deleted []string
	for _, t := range d.DeletedTopics {
		deleted = append(deleted, t.Name)
	}
	if len(deleted) > 0 {
		b.groups.TopicsDeleted(deleted)
	}
}

// reconfigure puts changed configurations of brokers in force, where they have changed something.
func (b *Broker) reconfigure(img *metadata.Image) {
	before := b.settings.now()
	b.settings.load(img)
	now := b.settings.now()
	if logdir.LogConfig(before.Topic(nil)) != logdir.LogConfig(now.Topic(nil)) { // the defaults of all topics
		for t := range img.Topics() {
			b.configureTopic(img, t)
		}
	}
	b.cleaner.Reconfigure(cleaner.BrokerConfig(now))
	b.reconfigureLogs()
	if l := b.limiter.Load(); l != nil && limitsDiffer(before, now) {
		l.set(now)
	}
}

// configureTopic puts the configuration of a topic in force for its logs; nil is a topic that is gone.
func (b *Broker) configureTopic(img *metadata.Image, t *metadata.Topic) {
	if t != nil {
		b.logs.SetConfig(t.Name, len(t.Partitions), b.settings.logConfig(img, t.Name))
	}
}

func (b *Broker) serve(_ context.Context, c *config.Broker) error {
	b.api = b.newAPI()
	server := wire.NewServer(wire.Config{
		Handler:            b.api,
		MaxRequestSize:     c.Int("socket.request.max.bytes"),
		IdleTimeout:        c.Milliseconds("connections.max.idle.ms"),
		SendBufferBytes:    socketBuffer(c, "socket.send.buffer.bytes"),
		ReceiveBufferBytes: socketBuffer(c, "socket.receive.buffer.bytes"),
		Logger:             b.logger,
	})
	b.onStop("connections", server.Shutdown)
	b.server.Store(server)
	b.startLimiter(server)
	b.collect()
	b.setState(web.Running) // before anybody can find out that it is
	for _, l := range b.listeners {
		server.Serve(l.name, l.socket)
	}
	b.leaveServiceOnStop(c)
	return nil
}

// socketBuffer is the size of a socket's buffer if one was set. Kafka's default of 100 KiB
// would switch off the kernel's own sizing, which is better.
func socketBuffer(c *config.Broker, key string) int {
	if !c.IsSet(key) {
		return 0
	}
	return max(c.Int(key), 0)
}

func (b *Broker) newAPI() *api.Server {
	d := api.Deps{
		NodeID: b.logs.NodeID(), ClusterID: b.logs.ClusterID(),
		Config: b.settings.now, Metadata: b.replicas.Image, Random: b.world.Random("client instances"), Logger: b.logger,
		Controller: b.controller, Logs: b.logs, Replicas: b.replicas, Groups: b.groups,
		Sessions: replica.NewSessions(replica.SessionOptions{
			Slots: b.settings.now().Int("max.incremental.fetch.session.cache.slots"), Random: b.world.Random("fetch sessions"),
		}),
	}
	if b.voter != nil {
		d.Active = b.voter
	}
	return api.New(d)
}

// API answers requests without a connection, and has the parts that it answers from.
func (b *Broker) API() *api.Server { return b.api }

// Quorum has the metadata, and commits changes of it.
func (b *Broker) Quorum() *quorum.Quorum { return b.quorum }

// Web answers what is asked over HTTP.
func (b *Broker) Web() *web.Server { return b.web }

// Addr is the host:port of the first listener for clients.
func (b *Broker) Addr() string { return b.listeners[0].socket.Addr().String() }

// AdvertisedAddr is the host:port that clients of the first listener are told.
func (b *Broker) AdvertisedAddr() string { return b.listeners[0].advertised() }

// DataDirs are the log directories.
func (b *Broker) DataDirs() []string {
	var paths []string
	for _, d := range b.logs.Dirs() {
		paths = append(paths, d.Path)
	}
	return paths
}

// ClusterID is the id of the cluster that the data belongs to.
func (b *Broker) ClusterID() string { return b.logs.ClusterID() }

// NodeID is the broker's id.
func (b *Broker) NodeID() int32 { return b.logs.NodeID() }
