package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Peers are the voters of a quorum of several and how this one reaches the others, which it does by
// connections to their controller listeners (see Hello).
type Peers struct {
	// Voters are those that the configuration file names (controller.quorum.voters), of which this
	// node may be one. A log that says who votes overrules them.
	Voters []Voter

	DirectoryID uuid.UUID // of this node's metadata directory

	// Dial connects to the controller listener of another voter and logs in, as far as that asks for it.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// SilenceMax is how long a follower believes in a leader that it does not hear of, and a candidate
	// waits for votes, 1 s when 0 (controller.quorum.election.timeout.ms).
	SilenceMax time.Duration

	// RequestTimeout bounds a request to another voter, 2 s when 0 (controller.quorum.request.timeout.ms).
	RequestTimeout time.Duration
}

// A Voter is a line of controller.quorum.voters.
type Voter struct {
	ID      int32
	Address string // host:port of its controller listener
}

// trailing is how many entries stay in the log behind a snapshot for followers that are a little late;
// others get the snapshot.
const trailing = 1000

// complete returns the Peers as this package has them, with defaults.
func (p Peers) complete() *peers {
	if p.SilenceMax == 0 {
		p.SilenceMax = time.Second
	}
	if p.RequestTimeout == 0 {
		p.RequestTimeout = 2 * time.Second
	}
	c := &peers{Peers: p, heartbeat: p.SilenceMax, trailing: trailing}
	for _, v := range p.Voters {
		c.voters = append(c.voters, v.ID)
	}
	return c
}

// peers is how a voter reaches the others.
type peers struct {
	Peers
	voters    []int32        // of Peers.Voters
	transport raft.Transport // nil: one over connections
	heartbeat time.Duration  // after which a silent leader is replaced
	trailing  uint64         // entries that stay behind a snapshot
	counted   ballot
}

// static returns the voters that the configuration file names.
func (o *Options) static() raft.Configuration {
	if o.peers == nil {
		return configurationOf([]int32{o.NodeID})
	}
	return configurationOf(o.peers.voters)
}

func (o *Options) ballot() *ballot {
	if o.peers == nil {
		return nil
	}
	return &o.peers.counted
}

// join starts raft as one of several voters. Who leads is decided by and by; what is committed is
// applied then, and nothing before: the end of the log may be cut off again.
func (q *Quorum) join() (err error) {
	p := q.opts.peers
	conf := q.raftConfig()
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = p.heartbeat, p.heartbeat, p.heartbeat/2
	conf.TrailingLogs = p.trailing
	conf.ShutdownOnRemove = false
	transport := p.transport
	if transport == nil {
		transport = q.connect(p)
	}
	if q.raft, err = raft.NewRaft(conf, q.machine, q.log, q.state, q.snapshots, countedTransport{transport, &p.counted}); err != nil {
		return err
	}
	q.log.forgetData()
	q.done.Add(1)
	go q.run()
	return nil
}

// connect makes the transport over connections.
func (q *Quorum) connect(p *peers) raft.Transport {
	q.link = newLink(q.opts.NodeID, q.dial)
	q.state.silence = func() { q.link.Close() }
	return &networkTransport{raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: q.link, MaxPool: 3, Timeout: p.RequestTimeout,
		Logger: hclog.NewNullLogger(), // what fails raft says, too, and it says who
	})}
}

// A networkTransport is raft's, which forgets its idle connections when it is closed.
type networkTransport struct{ *raft.NetworkTransport }

// Close implements raft.WithClose.
func (t *networkTransport) Close() error {
	err := t.NetworkTransport.Close()
	t.CloseStreams()
	return err
}

// dial connects to another voter and says hello.
func (q *Quorum) dial(ctx context.Context, id int32) (net.Conn, error) {
	p := q.opts.peers
	address, directory, err := q.locate(id)
	if err != nil {
		return nil, err
	}
	nc, err := p.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	err = exchange(nc, Hello{ClusterID: q.opts.ClusterID, From: q.identity(), To: Identity{id, directory}, anchor: q.anchor()})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		q.noteRefusal(err)
		return nil, err
	}
	return nc, nil
}

// noteRefusal says once that another voter does not talk to this one, and why: raft goes on trying.
func (q *Quorum) noteRefusal(err error) {
	refused := (*RefusedError)(nil)
	if !errors.As(err, &refused) {
		return
	}
	if before, _ := q.refusals.Swap(refused.By.NodeID, refused.Reason); before != refused.Reason {
		q.opts.Logger.Error("another voter of the metadata log does not talk to this one", "err", refused)
	}
}

// locate returns where a voter is: what the log says of it, or the configuration file.
func (q *Quorum) locate(id int32) (address string, directory uuid.UUID, err error) {
	if r := q.log.voters(); r != nil {
		for _, v := range r.Voters {
			if v.VoterID == id && len(v.Endpoints) > 0 {
				e := v.Endpoints[0]
				return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), v.VoterDirectoryID, nil
			}
		}
	}
	for _, v := range q.opts.peers.Voters {
		if v.ID == id {
			return v.Address, uuid.Zero, nil
		}
	}
	return "", uuid.Zero, fmt.Errorf("nothing says where voter %d is", id)
}

// Address returns the host:port of a voter's controller listener.
func (q *Quorum) Address(id int32) (string, error) {
	address, _, err := q.locate(id)
	return address, err
}

func (q *Quorum) identity() Identity {
	return Identity{NodeID: q.opts.NodeID, DirectoryID: q.opts.peers.DirectoryID}
}

// IdentifyDirectory says which directory the metadata log is in, which a new node knows only when Read has been
// asked. Call it before Start.
func (q *Quorum) IdentifyDirectory(id uuid.UUID) {
	if q.opts.peers != nil {
		q.opts.peers.DirectoryID = id
	}
}

// anchor is the place of the newest snapshot: what it holds is committed.
func (q *Quorum) anchor() anchorAt {
	s := q.currentSnapshot()
	return anchorAt{offset: s.id.endOffset, index: int64(s.index)}
}

// Greet judges the Hello of another voter. Without an error the connection is to be given to ServeVoter
// when the answer is sent (AppendHelloAnswer).
func (q *Quorum) Greet(h Hello) error {
	if q.link == nil {
		return fmt.Errorf("node %d votes alone", q.opts.NodeID)
	}
	if err := h.check(q.opts.ClusterID, q.identity()); err != nil {
		return err
	}
	return q.compare(h)
}

// compare refuses a voter that numbers the batches that both have committed in another way: raft would
// take one entry for another.
func (q *Quorum) compare(h Hello) error {
	q.log.mu.Lock()
	index, err := q.log.indexBeforeLocked(h.anchor.offset)
	q.log.mu.Unlock()
	if err != nil || index > q.raft.AppliedIndex() || int64(index) == h.anchor.index {
		return nil // what is not committed may be cut off
	}
	return fmt.Errorf("the batch before offset %d has index %d here, %d on node %d: the logs of several voters must be copies of one",
		h.anchor.offset, index, h.anchor.index, h.From.NodeID)
}

// ServeVoter gives raft the connection of another voter that was greeted, and returns when it is over,
// ctx ends, or the Quorum is closed. The caller closes it.
func (q *Quorum) ServeVoter(ctx context.Context, nc net.Conn) { q.link.serve(ctx, nc) }

// lead completes what the leader before left undone, before anybody may propose: what is committed of
// earlier epochs is applied, which a barrier is the proof of.
func (q *Quorum) lead(leads bool) {
	q.leads.Store(false)
	if !leads {
		return
	}
	epoch := q.raft.CurrentTerm()
	if err := q.raft.Barrier(0).Error(); err != nil || q.raft.CurrentTerm() != epoch {
		return // of a leadership that was lost
	}
	q.machine.flush() // raft has only handed it over
	q.beginEpoch(int32(epoch))
	if err := q.complete(context.Background()); err != nil {
		q.opts.Logger.Error("cannot begin to lead the metadata log", "err", err)
		return
	}
	q.leads.Store(true)
}

// Leads reports whether this node may propose. The only voter always may.
func (q *Quorum) Leads() bool { return q.opts.peers == nil || q.leads.Load() }

// Leader returns who leads, -1 when that is not known, and the newest epoch, which is on disk: both may
// be told to others. raft forgets a leader before it takes a newer term, so that a leader that is seen
// while the epoch stays is that epoch's.
func (q *Quorum) Leader() (id, epoch int32) {
	epoch = q.state.epoch()
	address, _ := q.raft.LeaderWithID()
	id, err := parseAddress(address)
	if now := q.state.epoch(); err != nil || now != epoch {
		return nobody, now
	}
	return id, epoch
}

// introduce says what VotersRecord is to have of a voter that is about to join.
func (l *metadataLog) introduce(v metadata.VotersRecordVoter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.joining = append(l.mu.joining, v)
}
