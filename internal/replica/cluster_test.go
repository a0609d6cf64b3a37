package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A cluster is any number of brokers with a replica of one partition, and their controller, as PartitionStates and
// logs of nothing but leader epochs. Everything happens when a test says so: metadata arrives, a fetch is answered, the
// controller is asked.
type cluster struct {
	nowMs   int64
	lagMs   int64
	minISR  int
	brokers map[int32]*metadata.Broker
	nodes   map[int32]*simNode
	meta    *metadata.Partition // the controller's
	serial  int                 // of the last record
}

// A simNode is a broker's replica.
type simNode struct {
	id    int32
	c     *cluster
	state *PartitionState
	log   simLog
}

// A simLog is a log of which only who wrote what is known.
type simLog struct {
	records []simRecord // from offset 0 on, whatever start says
	epochs  []EpochEnd  // that began at End, ascending
	start   int64
	hw      int64
}

type simRecord struct {
	epoch  int32
	serial int
}

func newCluster(n int) *cluster {
	c := &cluster{nowMs: 1_000_000, lagMs: 30_000, minISR: 1, brokers: map[int32]*metadata.Broker{}, nodes: map[int32]*simNode{}}
	for id := int32(1); id <= int32(n); id++ {
		c.brokers[id] = &metadata.Broker{ID: id, Epoch: 100 + int64(id)}
		c.nodes[id] = &simNode{id: id, c: c}
	}
	return c
}

func (c *cluster) Broker(id int32) *metadata.Broker { return c.brokers[id] }

// ids returns the brokers in order.
func (c *cluster) ids() []int32 { return slices.Sorted(maps.Keys(c.nodes)) }

func (n *simNode) view() *View {
	return &View{
		NowMs: n.c.nowMs, LagTimeMaxMs: n.c.lagMs, MinISR: n.c.minISR,
		LogStart: n.log.start, HW: n.log.hw, End: n.log.end(), Brokers: n.c,
	}
}

func (l *simLog) end() int64 { return int64(len(l.records)) }

// enter notes that an epoch begins at the end.
func (l *simLog) enter(epoch int32) {
	if n := len(l.epochs); n > 0 && l.epochs[n-1].Epoch >= epoch {
		return
	}
	for n := len(l.epochs); n > 0 && l.epochs[n-1].End >= l.end(); n-- {
		l.epochs = l.epochs[:n-1]
	}
	l.epochs = append(l.epochs, EpochEnd{epoch, l.end()})
}

func (l *simLog) add(r simRecord) {
	l.enter(r.epoch)
	l.records = append(l.records, r)
}

func (l *simLog) latestEpoch() int32 {
	if len(l.epochs) == 0 {
		return -1
	}
	return l.epochs[len(l.epochs)-1].Epoch
}

// epochEnd is what OffsetForLeaderEpoch answers.
func (l *simLog) epochEnd(epoch int32) EpochEnd {
	switch {
	case epoch < 0 || len(l.epochs) == 0 || epoch > l.latestEpoch():
		return EpochEnd{-1, -1}
	case epoch == l.latestEpoch():
		return EpochEnd{epoch, l.end()}
	case epoch < l.epochs[0].Epoch:
		return EpochEnd{epoch, l.epochs[0].End}
	}
	i := slices.IndexFunc(l.epochs, func(e EpochEnd) bool { return e.Epoch > epoch })
	return EpochEnd{l.epochs[i-1].Epoch, l.epochs[i].End}
}

func (l *simLog) truncate(offset int64) {
	if offset < l.end() {
		l.records = l.records[:offset]
	}
	l.epochs = slices.DeleteFunc(l.epochs, func(e EpochEnd) bool { return e.End >= l.end() })
	l.hw = min(l.hw, l.end())
	l.start = min(l.start, l.end())
}

// wipe begins the log anew.
func (l *simLog) wipe(offset int64) {
	*l = simLog{records: make([]simRecord, offset), start: offset, hw: offset}
}

// learn gives a broker the controller's metadata.
func (n *simNode) learn() {
	n.apply(n.c.meta)
}

func (n *simNode) apply(p *metadata.Partition) {
	if !slices.Contains(p.Replicas, n.id) {
		n.state = nil
		return
	}
	n.state = n.state.Next(p, n.id, n.view())
	if n.state.Leading {
		n.log.enter(n.state.LeaderEpoch)
	}
	n.advance()
}

// advance moves a leader's high watermark.
func (n *simNode) advance() {
	if hw, moves := n.state.HighWatermark(n.view()); moves {
		n.log.hw = hw
	}
}

// change commits a partition record: its epoch is one more, and the leader's too if there is a new one.
func (c *cluster) change(f func(p *metadata.Partition)) {
	p := metadata.Partition{Leader: -1, PartitionEpoch: -1}
	if c.meta != nil {
		p = *c.meta
	}
	old := p
	f(&p)
	p.PartitionEpoch++
	if c.meta != nil && p.Leader != old.Leader && p.LeaderEpoch == old.LeaderEpoch {
		p.LeaderEpoch++
	}
	c.meta = &p
}

// appendTo appends records as the leader.
func (n *simNode) appendTo(count int, epoch int32, all bool) (last simRecord, err error) {
	if n.state == nil {
		return last, ErrUnknownTopicOrPartition
	}
	if err := n.state.CheckAppend(epoch, all, n.c.minISR); err != nil {
		return last, err
	}
	for range count {
		n.c.serial++
		last = simRecord{n.state.LeaderEpoch, n.c.serial}
		n.log.add(last)
	}
	n.advance()
	return last, nil
}

// A simAnswer is a leader's answer to a fetch.
type simAnswer struct {
	err       error
	epoch     int32 // that it was asked in
	from      int64
	records   []simRecord
	diverging *EpochEnd
	start, hw int64
}

// A simFetch is a follower's fetch.
type simFetch struct {
	FollowerFetch
	epoch, lastEpoch int32
}

// ask returns the fetch that a follower sends.
func (n *simNode) ask() simFetch {
	v := n.view()
	f := simFetch{
		FollowerFetch: FollowerFetch{Follower: Follower{n.id, n.c.brokers[n.id].Epoch}, Offset: NextFetch(n.log.latestEpoch(), v), LogStart: n.log.start},
		epoch:         n.state.LeaderEpoch, lastEpoch: n.log.latestEpoch(),
	}
	return f
}

// serve is what Partition does with a follower's fetch.
func (n *simNode) serve(f simFetch, max int) simAnswer {
	a := simAnswer{epoch: f.epoch, from: f.Offset}
	if n.state == nil {
		a.err = ErrUnknownTopicOrPartition
		return a
	}
	v := n.view()
	if a.err = n.state.CheckLeader(f.epoch); a.err != nil {
		return a
	}
	if a.err = n.state.CheckFollower(f.ID, f.epoch); a.err != nil {
		return a
	}
	if f.lastEpoch >= 0 {
		switch e := n.log.epochEnd(f.lastEpoch); {
		case e.Epoch < 0 || f.Offset < v.LogStart:
			a.err = errOutOfRange
			return a
		case e.Epoch < f.lastEpoch || e.End < f.Offset:
			a.diverging = &e
			return a
		}
	}
	if f.Offset < v.LogStart || f.Offset > v.End {
		a.err = errOutOfRange
		return a
	}
	a.records = slices.Clone(n.log.records[f.Offset:min(v.End, f.Offset+int64(max))])
	_, a.err = n.state.Fetched(f.FollowerFetch, v)
	if a.err != nil {
		a.records = nil
		return a
	}
	if next := n.state.ExpandISR(f.ID, n.view()); next != nil {
		n.state = next
	}
	n.advance()
	a.start, a.hw = v.LogStart, v.HW // of the moment of the read, as Kafka
	return a
}

var errOutOfRange = errors.New("offset out of range")

// take is what a follower does with an answer, in the words of what it did.
func (n *simNode) take(a simAnswer, leader *simNode) string {
	if n.state == nil || n.state.Leading || a.epoch != n.state.LeaderEpoch || a.from != NextFetch(n.log.latestEpoch(), n.view()) {
		return "the answer comes too late"
	}
	switch {
	case a.err == errOutOfRange:
		return n.restart(leader)
	case a.err != nil:
		return a.err.Error()
	case a.diverging != nil:
		t := TruncationFor(*a.diverging, n.log.epochEnd(a.diverging.Epoch), n.view())
		n.log.truncate(t.Offset)
		return fmt.Sprintf("diverging epoch=%d end=%d, truncated to %d, final=%t", a.diverging.Epoch, a.diverging.End, t.Offset, t.Final)
	}
	if n.log.latestEpoch() < 0 {
		n.log.truncate(a.from)
	}
	for _, r := range a.records {
		n.log.add(r)
	}
	n.log.hw = FollowerHighWatermark(a.hw, n.view())
	n.log.start = FollowerLogStart(a.start, n.view())
	return fmt.Sprintf("%d records", len(a.records))
}

func (n *simNode) restart(leader *simNode) string {
	r := RestartFor(leader.log.start, leader.log.end(), n.view())
	switch {
	case r.Wipe:
		n.log.wipe(r.Offset)
	case r.Truncate:
		n.log.truncate(r.Offset)
	}
	return fmt.Sprintf("out of range, goes on at %d wipe=%t truncate=%t", r.Offset, r.Wipe, r.Truncate)
}

// decide is the controller's answer to an ISRChange, and what it does about it. (KIP-497; Kafka: ReplicationControlManager.alterPartition)
func (c *cluster) decide(from int32, q *ISRChange) *ISRAnswer {
	refuse := func(err error) *ISRAnswer { return &ISRAnswer{Err: err} }
	p := c.meta
	switch {
	case q.LeaderEpoch > p.LeaderEpoch || q.PartitionEpoch > p.PartitionEpoch:
		return refuse(errors.New("not the controller"))
	case q.LeaderEpoch < p.LeaderEpoch:
		return refuse(ErrFencedLeaderEpoch)
	case p.Leader != from:
		return refuse(ErrInvalidRequest)
	case q.PartitionEpoch < p.PartitionEpoch:
		return refuse(ErrInvalidUpdateVersion)
	}
	for i, id := range q.ISR {
		b := c.brokers[id]
		if !slices.Contains(p.Replicas, id) {
			return refuse(ErrInvalidRequest)
		}
		if !b.Active() || q.BrokerEpochs[i] != NoBrokerEpoch && q.BrokerEpochs[i] != b.Epoch {
			return refuse(ErrIneligibleReplica)
		}
	}
	if !slices.Equal(q.ISR, p.ISR) {
		c.change(func(p *metadata.Partition) { p.ISR = q.ISR })
	}
	return &ISRAnswer{ISR: c.meta.ISR, LeaderEpoch: c.meta.LeaderEpoch, PartitionEpoch: c.meta.PartitionEpoch}
}

// answer gives a leader the controller's answer to what it asked.
func (n *simNode) answer(q *ISRChange, a *ISRAnswer) (again bool) {
	if n.state == nil {
		return false
	}
	n.state, again = n.state.Answered(q, a)
	n.advance()
	return again
}

// String describes a replica.
func (n *simNode) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: ", n.id)
	s := n.state
	switch {
	case s == nil:
		b.WriteString("no replica")
		return b.String()
	case s.Leading:
		fmt.Fprintf(&b, "leader epoch=%d.%d isr=%v", s.LeaderEpoch, s.PartitionEpoch, s.ISR)
		if s.Pending != nil {
			fmt.Fprintf(&b, " pending=%v maximal=%v", s.Pending.ISR, s.MaximalISR())
		}
	default:
		fmt.Fprintf(&b, "follower of %d epoch=%d.%d", s.Leader, s.LeaderEpoch, s.PartitionEpoch)
	}
	fmt.Fprintf(&b, " start=%d hw=%d end=%d", n.log.start, n.log.hw, n.log.end())
	return b.String()
}
