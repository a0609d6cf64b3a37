package quorum

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// peers is how a voter reaches the others.
type peers struct {
	voters    []int32 // that the configuration file names, of which this node may be one
	transport raft.Transport
	heartbeat time.Duration // after which a silent leader is replaced
	trailing  uint64        // entries that stay behind a snapshot for followers that are a little late
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
	if q.raft, err = raft.NewRaft(conf, q.machine, q.log, q.state, q.snapshots, countedTransport{p.transport, &p.counted}); err != nil {
		return err
	}
	q.log.forgetData()
	q.done.Add(1)
	go q.run()
	return nil
}

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

// ready reports whether this node may propose. The only voter always may.
func (q *Quorum) ready() bool { return q.opts.peers == nil || q.leads.Load() }

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
