package replica

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A hall is brokers with Managers over real logs in memory that follow each other by function calls, and the controller
// that they ask. It is for bubbles of testing/synctest.
type hall struct {
	t      testing.TB
	nodes  map[int32]*hallNode
	config commitlog.Config
	change func(*Options)

	mu  sync.Mutex // guards img
	img *metadata.Image
}

// A hallNode is a broker of a hall.
type hallNode struct {
	h    *hall
	id   int32
	fs   *vfs.Mem
	logs *logdir.Manager

	learning sync.Mutex      // held while metadata is applied; guards what follows
	img      *metadata.Image // that was applied last
	running  *hallLife       // nil: it is down

	wire struct {
		sync.Mutex
		broken  map[int32]bool // leaders that it does not reach
		fetches int
		lose    func() bool // whether an answer is lost; nil: none is
	}
}

// A hallLife is a broker of a hall from its start to its end.
type hallLife struct {
	*Manager
	sessions *Sessions
	epoch    atomic.Int64
	life     context.Context
	end      context.CancelFunc
}

// now returns the life that the broker has, nil if it is down.
func (n *hallNode) now() *hallLife {
	n.learning.Lock()
	defer n.learning.Unlock()
	return n.running
}

var errUnreachable = errors.New("unreachable")

func newHall(t testing.TB, n int, change func(*Options)) *hall {
	t.Helper()
	h := &hall{t: t, nodes: map[int32]*hallNode{}, img: metadata.NewImage("test-cluster"), config: commitlog.DefaultConfig(), change: change}
	for id := int32(1); id <= int32(n); id++ {
		node := &hallNode{h: h, id: id, fs: vfs.NewMem()}
		node.wire.broken = map[int32]bool{}
		h.nodes[id] = node
	}
	for _, id := range h.ids() {
		h.nodes[id].start()
	}
	t.Cleanup(func() {
		for _, id := range h.ids() {
			h.nodes[id].stop(h.t)
		}
	})
	return h
}

func (h *hall) ids() (ids []int32) {
	for id := range h.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// image returns the newest metadata.
func (h *hall) image() *metadata.Image {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.img
}

// commit makes records of what decide returns for the newest metadata; the brokers learn of it.
func (h *hall) commit(decide func(*metadata.Image) []metadata.Record) *metadata.Image {
	h.mu.Lock()
	records := decide(h.img)
	img, _, err := h.img.Apply(records, h.img.Offset+int64(len(records)), 1)
	if err != nil {
		panic(err)
	}
	h.img = img
	h.mu.Unlock()
	for _, id := range h.ids() {
		h.nodes[id].learn()
	}
	return img
}

// learn applies the newest metadata.
func (n *hallNode) learn() {
	n.learning.Lock()
	defer n.learning.Unlock()
	if n.running == nil {
		return
	}
	img := n.h.image()
	if err := n.running.Apply(metadata.Diff(n.img, img)); err != nil {
		n.h.t.Error(err)
	}
	n.img = img
}

func (n *hallNode) start() {
	cfg := logdir.DefaultConfig()
	cfg.FS, cfg.Dirs, cfg.NodeID = n.fs, []string{"data"}, n.id
	logs, err := logdir.Open(cfg)
	if err != nil {
		n.h.t.Fatal(err)
	}
	if err := logs.Load(context.Background(), logdir.LoadOptions{LogConfig: func(string) commitlog.Config { return n.h.config }}); err != nil {
		n.h.t.Fatal(err)
	}
	n.logs = logs
	r := &hallLife{sessions: NewSessions(SessionOptions{Slots: 100})}
	r.life, r.end = context.WithCancel(context.Background())
	o := Options{
		NodeID: n.id, Logs: logs, LogConfig: func(string) commitlog.Config { return n.h.config }, AlterPartition: n.alterPartition,
		Follow: FollowOptions{
			Leader:      func(broker int32, _ int) Leader { return &callLeader{n: n, to: broker} },
			BrokerEpoch: r.epoch.Load,
			MaxWait:     500 * time.Millisecond, MinBytes: 1, MaxBytes: 10 << 20, PartitionMaxBytes: 1 << 20, Backoff: time.Second,
		},
	}
	if n.h.change != nil {
		n.h.change(&o)
	}
	r.Manager = NewManager(o)
	n.learning.Lock()
	n.running, n.img = r, metadata.NewImage("test-cluster")
	n.learning.Unlock()
	n.h.commit(func(img *metadata.Image) []metadata.Record {
		b := metadata.NewRegisterBrokerRecord()
		b.BrokerID, b.BrokerEpoch, b.Fenced = n.id, img.Offset+1, false
		r.epoch.Store(b.BrokerEpoch)
		return append([]metadata.Record{b}, electLeaderless(img, n.id)...)
	})
	r.Start()
}

// stop ends the broker cleanly, if it runs.
func (n *hallNode) stop(t testing.TB) {
	if !n.down() {
		return
	}
	if err := n.logs.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// kill ends the broker. What it had not synced is lost if power is.
func (n *hallNode) kill(power *rand.Rand) {
	old := n.fs
	n.fs = old.Kill()
	n.down()
	n.logs.Close(context.Background())
	if power != nil {
		n.fs = n.fs.CrashClone(power)
	}
	n.h.commit(func(img *metadata.Image) []metadata.Record { return fence(img, n.id) })
}

func (n *hallNode) down() bool {
	n.learning.Lock()
	was := n.running
	n.running = nil
	n.learning.Unlock()
	if was == nil {
		return false
	}
	was.end()
	was.Close()
	return true
}

// fence returns what the controller does when a broker is gone: it leaves all ISRs that have others, and others lead.
func fence(img *metadata.Image, id int32) (list []metadata.Record) {
	c := metadata.NewBrokerRegistrationChangeRecord()
	c.BrokerID, c.BrokerEpoch, c.Fenced = id, img.Broker(id).Epoch, 1
	list = append(list, c)
	for t := range img.Topics() {
		for i, p := range t.Partitions {
			isr := slices.DeleteFunc(slices.Clone(p.ISR), func(r int32) bool { return r == id })
			r := metadata.NewPartitionChangeRecord()
			r.TopicID, r.PartitionID = t.ID, int32(i)
			if len(isr) > 0 {
				r.ISR = isr
			}
			if p.Leader == id {
				r.Leader = liveOf(img, isr, id)
			}
			list = append(list, r)
		}
	}
	return list
}

func liveOf(img *metadata.Image, ids []int32, but int32) int32 {
	for _, id := range ids {
		if b := img.Broker(id); id != but && b.Active() {
			return id
		}
	}
	return -1
}

// electLeaderless makes a broker that comes the leader where nobody leads and it is in sync.
func electLeaderless(img *metadata.Image, id int32) (list []metadata.Record) {
	for t := range img.Topics() {
		for i, p := range t.Partitions {
			if p.Leader < 0 && slices.Contains(p.ISR, id) {
				r := metadata.NewPartitionChangeRecord()
				r.TopicID, r.PartitionID, r.Leader = t.ID, int32(i), id
				list = append(list, r)
			}
		}
	}
	return list
}

// alterPartition is the controller's answer (KIP-497).
func (n *hallNode) alterPartition(_ context.Context, changes []ISRRequest) ([]ISRAnswer, error) {
	answers := make([]ISRAnswer, len(changes))
	img := n.h.commit(func(img *metadata.Image) (list []metadata.Record) {
		for i, c := range changes {
			p := img.TopicByID(c.TopicID).Partitions[c.Index]
			switch {
			case c.LeaderEpoch != p.LeaderEpoch:
				answers[i].Err = ErrFencedLeaderEpoch
			case c.PartitionEpoch != p.PartitionEpoch:
				answers[i].Err = ErrInvalidUpdateVersion
			case slices.ContainsFunc(c.ISR, func(id int32) bool { return !img.Broker(id).Active() }):
				answers[i].Err = ErrIneligibleReplica
			default:
				r := metadata.NewPartitionChangeRecord()
				r.TopicID, r.PartitionID, r.ISR = c.TopicID, c.Index, c.ISR
				list = append(list, r)
			}
		}
		return list
	})
	for i, c := range changes {
		p := img.TopicByID(c.TopicID).Partitions[c.Index]
		answers[i].ISR, answers[i].LeaderEpoch, answers[i].PartitionEpoch = p.ISR, p.LeaderEpoch, p.PartitionEpoch
	}
	return answers, nil
}

// create adds a topic of so many partitions that all brokers have replicas of; the leaders go round.
func (h *hall) create(name string, id byte, partitions int) {
	h.commit(func(*metadata.Image) []metadata.Record {
		t := metadata.NewTopicRecord()
		t.Name, t.TopicID = name, topicID(id)
		list := []metadata.Record{t}
		for i := range partitions {
			p := metadata.NewPartitionRecord()
			p.PartitionID, p.TopicID = int32(i), t.TopicID
			for r := range h.ids() {
				p.Replicas = append(p.Replicas, h.ids()[(i+r)%len(h.ids())])
			}
			p.ISR, p.Leader = p.Replicas, p.Replicas[0]
			p.LeaderEpoch, p.PartitionEpoch = 0, 0
			list = append(list, p)
		}
		return list
	})
}

// lead makes a broker the leader of a partition of t in a new epoch, and others in sync unless there are none given.
func (h *hall) lead(i, leader int32, isr ...int32) {
	h.commit(func(img *metadata.Image) []metadata.Record {
		r := metadata.NewPartitionChangeRecord()
		r.TopicID, r.PartitionID, r.Leader, r.ISR = img.Topic("t").ID, i, leader, isr
		return []metadata.Record{r}
	})
}

// log returns a node's log of a partition of t.
func (n *hallNode) log(i int32) *commitlog.Log {
	p, err := n.now().Partition(topic.Partition{Topic: "t", Partition: i})
	if err != nil {
		n.h.t.Fatal(err)
	}
	log, err := p.Log()
	if err != nil {
		n.h.t.Fatal(err)
	}
	return log
}

// bytes returns what a log has up to an offset, which is where a batch begins.
func logBytes(t testing.TB, log *commitlog.Log, end int64) (all []byte) {
	t.Helper()
	for offset := log.Offsets().LogStart; offset < end; {
		r, err := log.Read(offset, 1<<30, commitlog.ReadLogEnd, segment.WholeFirst)
		if err != nil {
			t.Fatal(err)
		}
		set := make([]byte, r.Slice.Size())
		if _, err := r.Slice.ReadAt(set, 0); err != nil {
			t.Fatal(err)
		}
		r.Slice.Release()
		if len(set) == 0 {
			t.Fatalf("nothing to read at %d below %d", offset, end)
		}
		for b := range record.Batches(set) {
			if b.BaseOffset() >= end {
				return all
			}
			all = append(all, b...)
			offset = b.LastOffset() + 1
		}
	}
	return all
}

// append appends records one by one to the partition's leader, and waits for all in sync.
func (n *hallNode) append(t testing.TB, i int32, values ...string) error {
	r := n.now()
	if r == nil {
		return errUnreachable
	}
	p, err := r.Partition(topic.Partition{Topic: "t", Partition: i})
	if err != nil {
		return err
	}
	all := client
	all.AllInSync = true
	for _, v := range values {
		info, err := p.Append(setOf(t, v), all)
		if err != nil {
			return err
		}
		if err := p.AwaitCommitted(t.Context(), info.LastOffset+1, time.Now().Add(time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

func setOf(t testing.TB, value string) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// A callLeader fetches from another broker of the hall by calling it.
type callLeader struct {
	n  *hallNode
	to int32
}

// reach returns the leader.
func (l *callLeader) reach() (*hallLife, error) {
	l.n.wire.Lock()
	defer l.n.wire.Unlock()
	l.n.wire.fetches++
	to := l.n.h.nodes[l.to].now()
	if l.n.wire.broken[l.to] || to == nil {
		return nil, errUnreachable
	}
	return to, nil
}

func (l *callLeader) lost() bool {
	l.n.wire.Lock()
	defer l.n.wire.Unlock()
	return l.n.wire.lose != nil && l.n.wire.lose()
}

func (l *callLeader) Fetch(ctx context.Context, q *LeaderFetch) (*LeaderAnswer, error) {
	to, err := l.reach()
	if err != nil {
		return nil, err
	}
	if l.lost() { // on its way there
		return nil, errUnreachable
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(to.life, cancel)()
	s, incremental, err := openSession(to.sessions, q)
	if err != nil {
		return &LeaderAnswer{Err: err}, nil
	}
	refs := s.Append(nil)
	follower := q.Follower
	req := &FetchRequest{MaxWait: q.MaxWait, MinBytes: q.MinBytes, MaxBytes: q.MaxBytes, Isolation: commitlog.ReadLogEnd, Follower: &follower}
	if err := to.Manager.Fetch(ctx, req, refs); err != nil {
		return nil, err
	}
	a := &LeaderAnswer{}
	for _, f := range refs {
		if !incremental || f.Changed() {
			a.Partitions = append(a.Partitions, answerOf(f))
			s.Sent(f)
		}
		f.Result.Read.Slice.Release()
	}
	id := s.ID
	if a.SessionID = to.sessions.Done(s); a.SessionID != 0 {
		a.SessionID = id
	}
	if to.life.Err() != nil || l.lost() { // on its way back
		return nil, errUnreachable
	}
	return a, nil
}

func openSession(c *Sessions, q *LeaderFetch) (s *Session, incremental bool, err error) {
	var parts []FetchPartition
	for _, p := range q.Partitions {
		parts = append(parts, FetchPartition{TopicID: p.TopicID, Index: p.Index, Offset: p.Offset, LogStart: p.LogStart, LeaderEpoch: p.LeaderEpoch, LastFetchedEpoch: p.LastEpoch, MaxBytes: q.PartitionMax})
	}
	if q.SessionEpoch == InitialEpoch {
		c.Close(q.SessionID)
		return c.Open(parts, true, true), false, nil
	}
	if s, err = c.Acquire(q.SessionID, q.SessionEpoch, true); err != nil {
		return nil, true, err
	}
	for i := range parts {
		s.Update(&parts[i])
	}
	for _, f := range q.Forgotten {
		s.Forget(nil, f.TopicID, f.Index)
	}
	return s, true, nil
}

func answerOf(f *FetchPartition) AnsweredPartition {
	r := &f.Result
	a := AnsweredPartition{PartitionID: PartitionID{f.TopicID, f.Index}, Err: r.Err}
	if r.Err != nil {
		return a
	}
	if r.Diverging {
		a.Diverging = &EpochEnd{r.DivergingEpoch, r.DivergingEnd}
	}
	a.HighWatermark, a.LogStart = r.Read.Offsets.HighWatermark, r.Read.Offsets.LogStart
	a.Records = make([]byte, r.Read.Slice.Size())
	if len(a.Records) > 0 {
		if _, err := r.Read.Slice.ReadAt(a.Records, 0); err != nil {
			a.Err = err
		}
	}
	return a
}

func (l *callLeader) LogOffsets(_ context.Context, name string, index, epoch int32) (start, end int64, err error) {
	to, err := l.reach()
	if err != nil {
		return -1, -1, err
	}
	p, err := to.Partition(topic.Partition{Topic: name, Partition: index})
	if err != nil {
		return -1, -1, err
	}
	s, err := p.Lookup(Lookup{Timestamp: commitlog.Earliest, Isolation: commitlog.ReadLogEnd, LeaderEpoch: epoch})
	if err != nil {
		return -1, -1, err
	}
	e, err := p.Lookup(Lookup{Timestamp: commitlog.Latest, Isolation: commitlog.ReadLogEnd, LeaderEpoch: epoch})
	return s.Offset, e.Offset, err
}

func (l *callLeader) Close() {}

// inHall runs a test in a bubble.
func inHall(t *testing.T, n int, f func(t *testing.T, h *hall)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, n, nil)
		f(t, h)
		for _, id := range h.ids() { // in the bubble, and before its end
			h.nodes[id].stop(t)
		}
	})
}

// wantEqual checks that all replicas of t's partitions are the same, and all of it is committed.
func (h *hall) wantEqual(partitions int) {
	h.t.Helper()
	for i := range int32(partitions) {
		first := h.nodes[1].log(i)
		for _, id := range h.ids() {
			o := h.nodes[id].log(i).Offsets()
			if f := first.Offsets(); o.End != f.End || o.HighWatermark != o.End || o.LogStart != f.LogStart {
				h.t.Errorf("t-%d on %d: start %d, high watermark %d, end %d; on 1: start %d, end %d", i, id, o.LogStart, o.HighWatermark, o.End, f.LogStart, f.End)
			} else if string(logBytes(h.t, h.nodes[id].log(i), o.End)) != string(logBytes(h.t, first, o.End)) {
				h.t.Errorf("t-%d on %d has other bytes than on 1", i, id)
			}
		}
		if isr := h.img.Topic("t").Partitions[i].ISR; len(isr) != len(h.nodes) {
			h.t.Errorf("t-%d: in sync are %v", i, isr)
		}
	}
}
