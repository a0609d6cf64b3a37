package replica

import (
	"context"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/purgatory"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A FetchRequest is what a fetch says about all its partitions.
type FetchRequest struct {
	MaxWait   time.Duration
	MinBytes  int
	MaxBytes  int
	Isolation commitlog.Isolation

	// Follower is the broker that fetches; nil: a consumer does.
	Follower *Follower
	// AnyReplica lets a consumer read from a follower, up to the follower's high watermark (KIP-392).
	AnyReplica bool
	// Rack is where a consumer is that may read from a follower; empty: nowhere. It is a view of the request.
	Rack []byte
	// Output, if not nil, is flushed once before the fetch waits. An error ends the fetch.
	Output interface{ Flush() error }

	last *Topic // that was found: a good guess for the next partition, or the next fetch
}

// Reset makes a request anew for another use, which may find the same topic.
func (r *FetchRequest) Reset() { *r = FetchRequest{last: r.last} }

// A Follower is a broker that fetches.
type Follower struct {
	ID          int32
	BrokerEpoch int64 // its life, or NoBrokerEpoch
}

// A FetchPartition is what a fetch asks of one partition, and what it gets.
type FetchPartition struct {
	Name    []byte    // of the topic, unless it goes by its id
	TopicID uuid.UUID // zero where the topic goes by its name
	Index   int32

	Offset           int64
	LogStart         int64 // of a follower
	LeaderEpoch      int32 // as the client knows it, or NoEpoch
	LastFetchedEpoch int32 // of the record before Offset, or -1
	MaxBytes         int

	Result FetchResult

	partition  *Partition // nil: unresolved says why
	unresolved error
	session    sessionLinks
}

// Partition returns the partition that was read, or nil if it was not found.
func (f *FetchPartition) Partition() *Partition { return f.partition }

// A FetchResult is the answer for one partition. The slice in Read belongs to whoever asked.
type FetchResult struct {
	Err  error // nothing else counts if it is set
	Read commitlog.ReadResult

	// Diverging says that the client's log has records that ours has not: our last epoch up
	// to LastFetchedEpoch ended at DivergingEnd.
	Diverging      bool
	DivergingEpoch int32
	DivergingEnd   int64

	// Elsewhere says that there are no records here, since the consumer is to read from the replica Preferred.
	Elsewhere bool
	Preferred int32
}

// Fetch reads the partitions in order, and waits if they have too little, until they have
// more, something else happens to one of them, MaxWait is over or ctx ends. The results
// are then in the elements of parts; their slices belong to the caller.
func (m *Manager) Fetch(ctx context.Context, req *FetchRequest, parts []*FetchPartition) error {
	for _, f := range parts {
		m.resolve(req, f)
	}
	bytes, answer := read(req, parts, true)
	if answer || bytes >= req.MinBytes || req.MaxWait <= 0 || len(parts) == 0 {
		return nil
	}
	if req.Output != nil {
		if err := req.Output.Flush(); err != nil {
			Release(parts)
			return err
		}
	}
	m.delayedFetches.Add(1)
	defer m.delayedFetches.Add(-1)
	deadline := time.Now().Add(req.MaxWait)
	op := m.operations.Get().(*purgatory.Operation)
	op.Start(len(parts))
	for _, p := range parts {
		op.Watch(&p.partition.fetches)
	}
	defer m.operations.Put(op)
	defer op.Stop()
	for reason := purgatory.Signalled; ; {
		Release(parts)
		bytes, answer = read(req, parts, false)
		if answer || bytes >= req.MinBytes || reason != purgatory.Signalled {
			return nil
		}
		op.Expect(int64(req.MinBytes - bytes))
		reason = op.Wait(ctx, deadline)
	}
}

// resolve finds the partition, unless it is known and still there.
func (m *Manager) resolve(req *FetchRequest, f *FetchPartition) {
	if f.partition != nil && !f.partition.State().Removed {
		return
	}
	t := req.last
	if t == nil || t.manager != m || !f.isOf(t) || t.Partition(f.Index) == nil { // of one that is deleted there is none
		t = m.find(f)
		req.last = t
	}
	f.partition, f.unresolved = nil, nil
	if t != nil {
		f.session.known = t.Name
		f.partition = t.Partition(f.Index)
	}
	if f.partition == nil {
		f.unresolved = m.unresolved(f)
	}
}

func (m *Manager) find(f *FetchPartition) *Topic {
	if f.TopicID.IsZero() {
		return m.topics.find(f.Name)
	}
	return m.topics.findID(f.TopicID)
}

// isOf reports whether the partition is one of t.
func (f *FetchPartition) isOf(t *Topic) bool {
	if f.TopicID.IsZero() {
		return string(f.Name) == t.Name
	}
	return f.TopicID == t.ID
}

func (m *Manager) unresolved(f *FetchPartition) error {
	if f.Name != nil {
		return m.Missing(f.Name, f.Index)
	}
	err := m.MissingID(f.TopicID, f.Index)
	if err != ErrUnknownTopicID || f.session.known == "" {
		return err
	}
	// The session saw the topic, so it was deleted.
	if m.Image().Topic(f.session.known) != nil {
		return ErrInconsistentTopicID
	}
	return ErrUnknownTopicOrPartition
}

// Release gives back the slices of results that nobody will send.
func Release(parts []*FetchPartition) {
	for _, p := range parts {
		p.Result.Read.Slice.Release()
		p.Result = FetchResult{}
	}
}

// read reads the partitions. answer says that there is something to tell the client
// whatever the number of bytes. The first time it tells the partitions where the follower is.
func read(req *FetchRequest, parts []*FetchPartition, first bool) (bytes int, answer bool) {
	left := req.MaxBytes
	for _, p := range parts {
		p.Result = FetchResult{}
		if p.partition == nil {
			p.Result.Err = p.unresolved
		} else {
			p.partition.fetch(p, req, min(max(p.MaxBytes, 0), max(left, 0)), segment.FirstBatch(bytes == 0))
			if first && req.Follower != nil {
				p.note(*req.Follower)
			}
		}
		r := &p.Result
		answer = answer || r.Err != nil || r.Diverging || r.Elsewhere
		n := r.Read.Slice.Size()
		bytes += n
		left -= n
	}
	return bytes, answer
}

// note tells the partition where the follower is, unless the read says that it is elsewhere.
func (f *FetchPartition) note(from Follower) {
	r := &f.Result
	if r.Err != nil || r.Diverging {
		return
	}
	fetch := FollowerFetch{Follower: from, Offset: f.Offset, LogStart: f.LogStart}
	if err := f.partition.fetched(fetch, f.LeaderEpoch, r.Read.Offsets.End); err != nil {
		r.Read.Slice.Release()
		*r = FetchResult{Err: err}
	}
}

// checkFetch says why this broker does not answer a fetch.
func (s *PartitionState) checkFetch(req *FetchRequest, epoch int32) error {
	err := s.CheckLeader(epoch)
	switch {
	case err == nil && req.Follower != nil:
		return s.CheckFollower(req.Follower.ID, epoch)
	case err == ErrNotLeaderOrFollower && req.AnyReplica:
		return nil
	}
	return err
}

// fetch reads one partition into f.Result.
func (p *Partition) fetch(f *FetchPartition, req *FetchRequest, maxBytes int, first segment.FirstBatch) {
	r := &f.Result
	log, s, err := p.hosted()
	if err == nil {
		err = s.checkFetch(req, f.LeaderEpoch)
	}
	if err == nil && f.LastFetchedEpoch >= 0 {
		err = p.checkDivergence(log, f)
	}
	if err == nil && len(req.Rack) > 0 && s.leadership != nil {
		p.prefer(log, f, req)
	}
	if err != nil || r.Diverging || r.Elsewhere {
		r.Err = err
		return
	}
	r.Read, r.Err = log.Read(f.Offset, maxBytes, req.Isolation, first)
	if r.Read.Slice.FirstBatchIncomplete() {
		// A piece of a batch is of no use to anybody: the next fetch has it first.
		r.Read.Slice.Release()
		r.Read.Slice = segment.Slice{}
	}
}

// prefer finds out whether a consumer is to read from another replica.
func (p *Partition) prefer(log *commitlog.Log, f *FetchPartition, req *FetchRequest) {
	if !p.topic.manager.o.RackAware || !req.AnyReplica {
		return
	}
	p.followers.Lock()
	defer p.followers.Unlock()
	s, o := p.state.Load(), log.Offsets()
	v := p.wideView(log, o)
	if id := s.PreferredReplica(req.Rack, f.Offset, &v); s.Leading && id != s.Leader {
		f.Result.Elsewhere, f.Result.Preferred, f.Result.Read.Offsets = true, id, o
	}
}

// checkDivergence compares the client's last record with our log.
func (p *Partition) checkDivergence(log *commitlog.Log, f *FetchPartition) error {
	r := &f.Result
	o := log.Offsets()
	epoch, end := log.EpochEndOffset(f.LastFetchedEpoch)
	if epoch < 0 || f.Offset < o.LogStart {
		return commitlog.ErrOffsetOutOfRange
	}
	if epoch < f.LastFetchedEpoch || end < f.Offset {
		r.Diverging, r.DivergingEpoch, r.DivergingEnd = true, epoch, end
		r.Read.Offsets = o
	}
	return nil
}

// EndOffset answers OffsetForLeaderEpoch: the largest leader epoch up to the asked one and
// its end; -1, -1 when the log cannot tell.
func (p *Partition) EndOffset(clientEpoch, epoch int32) (int32, int64, error) {
	log, _, err := p.leading(clientEpoch)
	if err != nil {
		return -1, -1, err
	}
	e, end := log.EpochEndOffset(epoch)
	return e, end, nil
}
