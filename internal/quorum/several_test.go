package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A cluster is a quorum of several nodes over raft's transport in memory, in a bubble.
type cluster struct {
	t     *testing.T
	ids   []int32
	rng   *rand.Rand
	nodes map[int32]*voterNode
}

type voterNode struct {
	fs        *vfs.Mem
	dir       string
	q         *Quorum // nil when it is down
	transport *raft.InmemTransport
	deleted   []string // topics that a subscriber was told are gone
}

func newCluster(t *testing.T, ids ...int32) *cluster {
	c := &cluster{t: t, ids: ids, rng: rand.New(rand.NewPCG(1, uint64(len(ids)))), nodes: map[int32]*voterNode{}}
	for _, id := range ids {
		n := new(voterNode)
		n.fs, n.dir = memDir(t)
		c.nodes[id] = n
	}
	return c
}

func (c *cluster) start(ids ...int32) {
	c.t.Helper()
	for _, id := range ids {
		n := c.nodes[id]
		_, n.transport = raft.NewInmemTransportWithTimeout(addressOf(id), time.Second)
		o := options(n.fs, n.dir)
		o.NodeID, o.SnapshotBytes = id, 4<<10
		o.peers = &peers{voters: c.ids, transport: n.transport, heartbeat: 200 * time.Millisecond, trailing: 4}
		q, err := Open(o)
		if err != nil {
			c.t.Fatal(err)
		}
		n.q, n.deleted = q, nil
		q.Subscribe(func(_ *metadata.Image, d *metadata.Delta) {
			for _, topic := range d.DeletedTopics {
				n.deleted = append(n.deleted, topic.Name)
			}
		})
		c.connect(id)
	}
}

// connect joins a node to all that run.
func (c *cluster) connect(id int32) {
	for other, n := range c.nodes {
		if other != id && n.q != nil {
			n.transport.Connect(addressOf(id), c.nodes[id].transport)
			c.nodes[id].transport.Connect(addressOf(other), n.transport)
		}
	}
}

// isolate cuts a node off from the others; it goes on.
func (c *cluster) isolate(id int32) {
	for _, n := range c.nodes {
		if n.transport != nil {
			n.transport.Disconnect(addressOf(id))
		}
	}
	c.nodes[id].transport.DisconnectAll()
}

// crash stops a node; of what it did not sync some is lost.
func (c *cluster) crash(id int32) {
	c.t.Helper()
	n := c.nodes[id]
	clone := n.fs.CrashClone(c.rng)
	c.isolate(id)
	mustClose(c.t, n.q)
	n.q, n.fs = nil, clone
}

func (c *cluster) stop() {
	for _, n := range c.nodes {
		if n.q != nil {
			mustClose(c.t, n.q)
		}
	}
}

// await waits until a condition holds.
func (c *cluster) await(what string, condition func() bool) {
	c.t.Helper()
	for range 3000 {
		synctest.Wait()
		if condition() {
			return
		}
		time.Sleep(20 * time.Millisecond) // of the bubble's time
	}
	for id, n := range c.nodes {
		if n.q != nil {
			c.t.Logf("node %d: %v, %v", id, n.q.raft.Stats(), n.q.fail.get())
		}
	}
	c.t.Fatalf("never: %s", what)
}

// leader waits until all nodes that run agree on one of them, which may propose.
func (c *cluster) leader() (leader int32) {
	c.t.Helper()
	c.await("a leader that all know", func() bool {
		var epoch int32
		leader = nobody
		for _, n := range c.nodes {
			if n.q == nil {
				continue
			}
			id, e := n.q.Leader()
			if leader == nobody {
				leader, epoch = id, e
			}
			if id == nobody || id != leader || e != epoch {
				return false
			}
		}
		return c.nodes[leader].q != nil && c.nodes[leader].q.raft.State() == raft.Leader && c.nodes[leader].q.Leads()
	})
	return leader
}

// awaitSame waits until all nodes that run have the image of one, and the same log.
func (c *cluster) awaitSame(of int32) {
	c.t.Helper()
	want := stateOf(c.nodes[of].q.Image())
	c.await("the same image", func() bool {
		for _, n := range c.nodes {
			if n.q != nil && (!slices.Equal(stateOf(n.q.Image()), want) || n.q.NextOffset() != c.nodes[of].q.NextOffset()) {
				return false
			}
		}
		return true
	})
	for id, n := range c.nodes {
		if n.q == nil {
			continue
		}
		from := max(n.q.log.start(), c.nodes[of].q.log.start())
		a, b := batchesFrom(c.t, n, from), batchesFrom(c.t, c.nodes[of], from)
		if !bytes.Equal(a, b) {
			c.t.Errorf("from offset %d on node %d has %d bytes that differ from %d of node %d", from, id, len(a), len(b), of)
		}
		checkIndexes(c.t, n.q, c.nodes[of].q)
	}
}

// batchesFrom returns the bytes of the log from an offset on.
func batchesFrom(t testing.TB, n *voterNode, from int64) (all []byte) {
	t.Helper()
	for _, name := range names(t, n.fs, n.dir, logSuffix) {
		b, err := vfs.ReadFile(n.fs, filepath.Join(logDir(n.dir), name), 1<<24)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = walkBuffer(b, func(batch record.Batch) error {
			if batch.BaseOffset() >= from {
				all = append(all, batch...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkIndexes holds the entries of two logs against each other: an index means the same.
func checkIndexes(t *testing.T, a, b *Quorum) {
	t.Helper()
	first, last := uint64(0), uint64(0)
	for _, q := range []*Quorum{a, b} {
		f, _ := q.log.FirstIndex()
		l, _ := q.log.LastIndex()
		if l == 0 {
			return // a snapshot holds all of it
		}
		if first = max(first, f); last == 0 || l < last {
			last = l
		}
	}
	for index := first; index <= last; index++ {
		var x, y raft.Log
		if err := errors.Join(a.log.GetLog(index, &x), b.log.GetLog(index, &y)); err != nil {
			t.Error(err)
		}
		if x.Term != y.Term || x.Type != y.Type || !bytes.Equal(x.Data, y.Data) || !bytes.Equal(x.Extensions, y.Extensions) {
			t.Errorf("entry %d is %v of term %d on node %d, and %v of term %d on node %d", index, x.Type, x.Term, a.opts.NodeID, y.Type, y.Term, b.opts.NodeID)
		}
	}
}

// createTopics creates topics [from, to) and deletes all but the last.
func (c *cluster) createTopics(id int32, from, to int) {
	c.t.Helper()
	for n := from; n < to; n++ {
		mustPropose(c.t, c.nodes[id].q, topicRecords(n)...)
		if n < to-1 {
			mustPropose(c.t, c.nodes[id].q, &metadata.RemoveTopicRecord{TopicID: topicID(n)})
		}
	}
}

// Three voters agree: on a leader, on a log that is the same to the byte, on what a follower missed
// that comes back when the log before a snapshot is gone, and on what was committed when the leader
// crashes.
func TestThreeVoters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 2, 3)
		defer c.stop()
		c.start(1, 2, 3)
		first := c.leader()
		c.createTopics(first, 0, 5)
		c.awaitSame(first)

		follower := c.ids[first%3] // not the leader
		if err := tryPropose(c.nodes[follower].q, topicRecords(300)...); !errors.Is(err, ErrNotLeader) {
			t.Errorf("a follower answers %v, want ErrNotLeader", err)
		}
		c.isolate(follower)
		mustPropose(t, c.nodes[first].q, &metadata.RemoveTopicRecord{TopicID: topicID(4)})
		c.createTopics(first, 5, 60)
		c.await("the log before the snapshot is gone", func() bool { return c.nodes[first].q.log.start() > 30 })
		c.connect(follower)
		first = c.leader()
		c.awaitSame(first)
		if got := c.nodes[follower].deleted; !slices.Contains(got, "topic-4") {
			t.Errorf("the subscriber of a node that got a snapshot was told that %v are gone, want topic-4 among them", got)
		}
		if start := c.nodes[follower].q.log.start(); start == 0 {
			t.Error("the follower's log begins at 0: it got no snapshot")
		}
		c.crash(follower)
		c.createTopics(first, 60, 90)
		c.start(follower)
		c.leader()
		c.awaitSame(first)

		before := c.nodes[first].q.Image()
		c.crash(first)
		second := c.leader()
		if second == first {
			t.Fatal("the leader that crashed still leads")
		}
		if got := c.nodes[second].q.Image(); !slices.Equal(stateOf(got), stateOf(before)) {
			t.Error("what was committed before the leader crashed is lost")
		}
		c.createTopics(second, 90, 95)
		c.start(first)
		c.leader()
		c.awaitSame(second)
		c.restartAll()
		third := c.leader()
		c.createTopics(third, 95, 100)
		c.awaitSame(third)
		checkLeaderChange(t, c.nodes[third].q, c.ids)
	})
}

// restartAll stops all nodes at once and starts them again.
func (c *cluster) restartAll() {
	c.t.Helper()
	for _, id := range c.ids {
		c.crash(id)
	}
	c.start(c.ids...)
}

// checkLeaderChange wants the newest LeaderChange to say who votes, and who did for its leader.
func checkLeaderChange(t *testing.T, q *Quorum, voters []int32) {
	t.Helper()
	first, _ := q.log.FirstIndex()
	last, _ := q.log.LastIndex()
	for index := last; index >= max(first, 1); index-- {
		var log raft.Log
		if err := q.log.GetLog(index, &log); err != nil {
			t.Fatal(err)
		}
		if log.Type != raft.LogNoop {
			continue
		}
		records, err := decodeControl(log.Data)
		if err != nil {
			t.Fatal(err)
		}
		m := records[0].value.(*metadata.LeaderChangeMessage)
		if len(m.Voters) != len(voters) || len(m.GrantingVoters) < 2 || m.LeaderID != q.opts.NodeID || m.RaftIndex != int64(index) {
			t.Errorf("LeaderChange at index %d: %+v", index, m)
		}
		return
	}
}

// A leader that was cut off with entries that nobody else has gives them up, also when the others have
// a snapshot behind the place where its log goes apart.
func TestDeposedLeader(t *testing.T) {
	for _, far := range []bool{false, true} {
		t.Run(fmt.Sprintf("snapshot=%t", far), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1, 2, 3)
				defer c.stop()
				c.start(1, 2, 3)
				first := c.leader()
				c.createTopics(first, 0, 3)
				c.awaitSame(first)
				c.isolate(first)
				lost := c.nodes[first].q
				for range 200 { // none of which is committed
					lost.raft.Apply(mustBatch(t, int32(lost.raft.CurrentTerm()), topicRecords(200)), 0)
				}
				c.await("it gives up", func() bool { return lost.raft.State() != raft.Leader })
				if err := tryPropose(lost, topicRecords(201)...); !errors.Is(err, ErrNotLeader) {
					t.Errorf("a leader that was cut off answers %v, want ErrNotLeader", err)
				}
				end := lost.NextOffset()
				second := first
				c.await("another leads", func() bool {
					for _, id := range c.ids {
						if n := c.nodes[id]; id != first && n.q.raft.State() == raft.Leader && n.q.Leads() {
							second = id
						}
					}
					return second != first
				})
				if far {
					c.createTopics(second, 3, 60)
					c.await("the log before the snapshot is gone", func() bool { return c.nodes[second].q.log.start() > 30 })
				} else {
					c.createTopics(second, 3, 5)
				}
				if got := c.nodes[second].q.NextOffset(); got >= end {
					t.Fatalf("the new log ends at %d, not before the lost one at %d", got, end)
				}
				c.connect(first)
				c.leader()
				c.awaitSame(second)
				if lost.Image().TopicByID(topicID(200)) != nil {
					t.Error("what was never committed is in the image")
				}
				c.crash(first)
				c.start(first)
				c.leader()
				c.awaitSame(second)
				if e := c.nodes[first].q.Evidence(); len(e.Proofs) > 0 {
					t.Errorf("entries that were cut off are missed: %+v", e.Proofs)
				}
			})
		})
	}
}

func mustBatch(t testing.TB, epoch int32, records []metadata.Record) []byte {
	t.Helper()
	b, err := proposedBatch(records, metadata.LevelCurrent, epoch, time.Now().UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Voters in the log: they come from the bootstrap checkpoint, change by an entry that is KRAFT_VOTERS
// in Kafka's log, and are the same after a start and in a snapshot.
func TestVotersInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 2, 3)
		defer c.stop()
		for _, id := range c.ids {
			formatVoters(t, c.nodes[id], 1, 2, 3)
		}
		c.start(1, 2, 3)
		leader := c.leader()
		gone := c.ids[leader%3]
		stays := c.ids[(leader+1)%3]
		c.nodes[leader].q.log.introduce(voterRecord(gone, 7))
		if err := c.nodes[leader].q.raft.RemoveServer(raft.ServerID(addressOf(gone)), 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.createTopics(leader, 0, 2)
		c.crash(gone)
		want := []int32{min(leader, stays), max(leader, stays)}
		check := func(when string) {
			t.Helper()
			for _, id := range want {
				q := c.nodes[id].q
				if got := slices.Sorted(slices.Values(idsOf(q.log.configuration()))); !slices.Equal(got, want) {
					t.Errorf("%s: node %d has the voters %v, want %v", when, id, got, want)
				}
				for _, v := range q.log.voters().Voters {
					if v.VoterDirectoryID != voterRecord(v.VoterID, 1).VoterDirectoryID || len(v.Endpoints) != 1 {
						t.Errorf("%s: VotersRecord has lost what it said of node %d: %+v", when, v.VoterID, v)
					}
				}
			}
		}
		restart := func() {
			for _, id := range want {
				c.crash(id)
			}
			c.start(want...)
		}
		c.leader()
		c.awaitSame(leader)
		check("changed")
		restart()
		leader = c.leader()
		check("after a start")
		c.createTopics(leader, 2, 40)
		c.await("the log before the snapshot is gone", func() bool { return c.nodes[leader].q.log.start() > 20 })
		c.awaitSame(leader)
		restart()
		leader = c.leader()
		check("in a snapshot")

		// The other one comes back: it gets a snapshot, and its vote.
		c.start(gone)
		c.nodes[leader].q.log.introduce(voterRecord(gone, 1))
		if err := c.nodes[leader].q.raft.AddVoter(raft.ServerID(addressOf(gone)), addressOf(gone), 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		want = c.ids
		c.createTopics(leader, 40, 42)
		c.leader()
		c.awaitSame(leader)
		check("after joining")
		checkVote(t, c)
	})
}

// voterRecord is what VotersRecord says of a node.
func voterRecord(id int32, directory byte) metadata.VotersRecordVoter {
	return metadata.VotersRecordVoter{
		VoterID: id, VoterDirectoryID: uuid.UUID{byte(id), directory},
		Endpoints:           []metadata.Endpoint{{Name: "CONTROLLER", Host: "h", Port: uint16(id)}},
		KRaftVersionFeature: metadata.KRaftVersionFeature{MaxSupportedVersion: 1},
	}
}

// formatVoters writes what kafka-storage format --initial-controllers does.
func formatVoters(t *testing.T, n *voterNode, ids ...int32) {
	t.Helper()
	c := checkpointData{kraftVersion: &metadata.KRaftVersionRecord{KRaftVersion: 1}, voters: new(metadata.VotersRecord)}
	for _, id := range ids {
		c.voters.Voters = append(c.voters.Voters, voterRecord(id, 1))
	}
	var b bytes.Buffer
	err := writeCheckpoint(&b, c, slices.Values(firstRecords()), metadata.LevelCurrent, 0, 1)
	if err := errors.Join(err, vfs.MkdirAll(n.fs, logDir(n.dir), 0o755), n.fs.SyncDir(n.dir)); err != nil {
		t.Fatal(err)
	}
	overwriteFile(t, n.fs, filepath.Join(logDir(n.dir), bootstrapID.String()+checkpoint.SnapshotSuffix), b.Bytes())
}

// checkVote wants the votes to be for a directory.
func checkVote(t *testing.T, c *cluster) {
	t.Helper()
	for id, n := range c.nodes {
		b, err := vfs.ReadFile(n.fs, n.q.state.path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		d, err := parseQuorumState(b)
		if err != nil || d.VotedID != nobody && *d.VotedDirectoryID != uuidText(voterRecord(d.VotedID, 1).VoterDirectoryID.String()) {
			t.Errorf("node %d: %s, %v", id, b, err)
		}
	}
}

func tryPropose(q *Quorum, records ...metadata.Record) error {
	_, err := propose(context.Background(), q, records)
	return err
}

// Whatever happens to three voters, what was acknowledged is there in the end, once, on all of them, and
// their logs are the same. Nodes crash, start again, and are cut off.
func TestThreeVotersInTrouble(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1, 2, 3)
				defer c.stop()
				c.rng = rand.New(rand.NewPCG(seed, 3))
				c.start(1, 2, 3)
				c.leader()
				acknowledged := map[int]bool{}
				for n := range 60 {
					for id, node := range c.nodes {
						if node.q != nil && node.q.Leads() && c.tryFor(id, topicRecords(n)) {
							acknowledged[n] = true
							break
						}
					}
					c.trouble()
				}
				for _, id := range c.ids {
					if c.nodes[id].q == nil {
						c.start(id)
					}
					c.connect(id)
				}
				leader := c.leader()
				c.createTopics(leader, 100, 102)
				c.awaitSame(leader)
				for n := range acknowledged {
					if c.nodes[leader].q.Image().TopicByID(topicID(n)) == nil {
						t.Errorf("topic %d was acknowledged and is lost", n)
					}
				}
				t.Logf("%d of 60 acknowledged, epoch %d", len(acknowledged), c.nodes[leader].q.state.epoch())
			})
		})
	}
}

// tryFor proposes records, and reports whether they were committed before long.
func (c *cluster) tryFor(id int32, records []metadata.Record) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := propose(ctx, c.nodes[id].q, records)
	return err == nil
}

// trouble lets one thing happen, most often nothing.
func (c *cluster) trouble() {
	id := c.ids[c.rng.IntN(len(c.ids))]
	n := c.nodes[id]
	switch c.rng.IntN(8) {
	case 0, 1:
		if n.q != nil {
			c.crash(id)
		} else {
			c.start(id)
		}
	case 2:
		if n.q != nil {
			c.isolate(id)
		}
	case 3, 4:
		if n.q != nil {
			c.connect(id)
		}
	}
	time.Sleep(time.Duration(c.rng.IntN(1500)) * time.Millisecond)
}
