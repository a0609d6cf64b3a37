package api

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// Bounds of one request: partitions, and how large the reader of the requests of all
// clients keeps its memory between them.
const (
	fetchPartitionsMax = 200_000
	fetchPooledMax     = 4096
)

// A fetchWork is the work on one Fetch request. What it holds are views of the request, or
// belongs to the session. It is pooled.
type fetchWork struct {
	s        *Server
	version  int16
	flexible bool
	listener string

	follower         replica.Follower // its ID is below 0 for a consumer
	sessionID, epoch int32
	req              replica.FetchRequest
	output           fetchOutput
	parts            []replica.FetchPartition  // as the request has them
	forgotten        wire.Decoder              // the rest of the body from the forgotten topics on
	session          *replica.Session          // nil: none
	incremental      bool                      // the answer has only what changed
	refs             []*replica.FetchPartition // what is read, in order
	answered         []*replica.FetchPartition // what the answer has, in order
	twice            twiceFinder               // partitions of a request without a session
	leaders          []int32                   // that the answer names

	old         []oldRecords // of refs, for clients before version 4
	oldWritten  int          // how many of them are in the answer
	conversions int          // batches converted for them
}

// A fetchOutput is told that a fetch is going to wait.
type fetchOutput struct {
	r *Request
	w *wire.Response
}

func (o *fetchOutput) Flush() error {
	o.r.BeginWait()
	return o.w.Flush()
}

var fetchPool = sync.Pool{New: func() any { return new(fetchWork) }}

func (s *Server) fetch(ctx context.Context, r *Request, w *wire.Response) error {
	f := fetchPool.Get().(*fetchWork)
	defer f.release()
	f.s, f.version, f.flexible, f.listener = s, r.Version, r.Flexible(), r.Listener
	f.output = fetchOutput{r, w}
	if !f.read(r.Body) {
		return errMalformed
	}
	if err := f.open(); err != nil {
		f.writeRefusal(w, err)
		return nil
	}
	defer f.close()
	f.limit()
	f.req.Output = &f.output
	if err := f.fetch(ctx); err != nil {
		return err
	}
	f.write(w)
	if f.version < 4 {
		s.noteOldClient(r, f.conversions)
	}
	return nil
}

func (f *fetchWork) fetch(ctx context.Context) error {
	if f.version < 4 {
		return f.fetchOld(ctx)
	}
	return f.s.Replicas.Fetch(ctx, &f.req, f.refs)
}

func (f *fetchWork) release() {
	if cap(f.parts) > fetchPooledMax || cap(f.refs) > fetchPooledMax {
		return
	}
	clear(f.parts)
	clear(f.refs)
	clear(f.answered)
	clear(f.old)
	f.req.Reset()
	*f = fetchWork{parts: f.parts[:0], refs: f.refs[:0], answered: f.answered[:0], twice: f.twice.emptied(),
		leaders: f.leaders[:0], old: f.old[:0], req: f.req}
	fetchPool.Put(f)
}

// read takes the request apart, and reports whether it is one from its first byte to its
// last.
func (f *fetchWork) read(body []byte) bool {
	d := wire.NewDecoder(body)
	f.follower = replica.Follower{ID: -1, BrokerEpoch: replica.NoBrokerEpoch}
	if f.version <= 14 {
		f.follower.ID = d.Int32()
	}
	f.req.MaxWait = time.Duration(d.Int32()) * time.Millisecond
	f.req.MinBytes = int(d.Int32())
	f.req.MaxBytes = math.MaxInt32
	if f.version >= 3 {
		f.req.MaxBytes = int(d.Int32())
	}
	if f.version >= 4 {
		f.req.Isolation = commitlog.Isolation(d.Int8())
	}
	f.epoch = replica.FinalEpoch
	if f.version >= 7 {
		f.sessionID, f.epoch = d.Int32(), d.Int32()
	}
	f.readTopics(&d)
	f.forgotten = d
	if f.version >= 7 {
		f.eachForgotten(&d, func([]byte, uuid.UUID, int32) {})
	}
	if f.version >= 11 {
		f.req.Rack = d.String(f.flexible)
	}
	if f.flexible {
		f.readTags(&d)
	}
	f.req.AnyReplica = f.version >= 11 && f.follower.ID < 0
	isolated := f.req.Isolation == commitlog.ReadUncommitted || f.req.Isolation == commitlog.ReadCommitted
	return !d.Bad() && d.Len() == 0 && isolated && len(f.parts) <= fetchPartitionsMax
}

func (f *fetchWork) readTopics(d *wire.Decoder) {
	for range d.ArrayLen(f.flexible, 2) {
		name, id := f.readTopic(d)
		for range d.ArrayLen(f.flexible, 16) {
			if d.Bad() || len(f.parts) > fetchPartitionsMax {
				return
			}
			f.parts = append(f.parts, replica.FetchPartition{})
			p := &f.parts[len(f.parts)-1]
			p.Name, p.TopicID = name, id
			f.readPartition(d, p)
		}
		if f.flexible {
			d.SkipTags()
		}
		if d.Bad() {
			return
		}
	}
}

func (f *fetchWork) readTopic(d *wire.Decoder) (name []byte, id uuid.UUID) {
	if f.version < 13 {
		return d.String(f.flexible), id
	}
	copy(id[:], d.Take(len(id)))
	return nil, id
}

func (f *fetchWork) readPartition(d *wire.Decoder, p *replica.FetchPartition) {
	p.Index = d.Int32()
	p.LeaderEpoch, p.LastFetchedEpoch = replica.NoEpoch, -1
	if f.version >= 9 {
		p.LeaderEpoch = d.Int32()
	}
	p.Offset = d.Int64()
	if f.version >= 12 {
		p.LastFetchedEpoch = d.Int32()
	}
	if f.version >= 5 {
		p.LogStart = d.Int64()
	}
	p.MaxBytes = int(d.Int32())
	if f.flexible {
		d.SkipTags()
	}
}

// eachForgotten calls do for each partition that the client is no longer interested in.
func (f *fetchWork) eachForgotten(d *wire.Decoder, do func(name []byte, id uuid.UUID, index int32)) {
	for range d.ArrayLen(f.flexible, 2) {
		name, id := f.readTopic(d)
		for range d.ArrayLen(f.flexible, 4) {
			do(name, id, d.Int32())
		}
		if f.flexible {
			d.SkipTags()
		}
		if d.Bad() {
			return
		}
	}
}

// replicaStateTag is the tagged field that holds the replica id from version 15 on.
const replicaStateTag = 1

func (f *fetchWork) readTags(d *wire.Decoder) {
	for n := d.Uvarint(); n > 0 && !d.Bad(); n-- {
		tag, value := d.Tag()
		if tag == replicaStateTag && f.version >= 15 {
			state := wire.NewDecoder(value)
			f.follower.ID, f.follower.BrokerEpoch = state.Int32(), state.Int64()
		}
	}
}

// open finds out what to read: what the request lists, or what its session has with the
// changes that the request lists.
func (f *fetchWork) open() error {
	sessions := f.s.Sessions
	if f.epoch != replica.InitialEpoch && f.epoch != replica.FinalEpoch {
		session, err := sessions.Acquire(f.sessionID, f.epoch, f.version >= 13)
		if err != nil {
			return err
		}
		f.session, f.incremental = session, true
		for i := range f.parts {
			session.Update(&f.parts[i])
		}
		d := f.forgotten
		f.eachForgotten(&d, session.Forget)
		f.refs = session.Append(f.refs)
		return nil
	}
	if f.sessionID != 0 {
		sessions.Close(f.sessionID)
	}
	if f.epoch == replica.InitialEpoch {
		f.session = sessions.Open(f.parts, f.version >= 13, f.follower.ID >= 0)
	}
	if f.session != nil {
		f.refs = f.session.Append(f.refs)
		return nil
	}
	f.listParts()
	return nil
}

// listParts lists what the request has: a partition that is there twice once, where it came first,
// with what was said last, as a session has it.
func (f *fetchWork) listParts() {
	if len(f.parts) == 1 {
		f.refs = append(f.refs, &f.parts[0])
		return
	}
	for i := range f.parts {
		p := &f.parts[i]
		if i == 0 || p.TopicID != f.parts[i-1].TopicID || !sameView(p.Name, f.parts[i-1].Name) {
			f.twice.inTopic(p.Name, p.TopicID)
		}
		f.twice.add(p.Index)
		f.refs = append(f.refs, p)
	}
	if !f.twice.found() {
		return
	}
	var once merged[*replica.FetchPartition]
	for _, p := range f.refs {
		name := string(p.Name)
		if p.Name == nil {
			name = string(p.TopicID[:])
		}
		once.add(name, p.Index, p)
	}
	f.refs = f.refs[:0]
	for _, t := range once.topics {
		for _, p := range t.partitions {
			f.refs = append(f.refs, p.said)
		}
	}
}

// sameView reports whether a and b are the same bytes in memory.
func sameView(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// close lets go of the session.
func (f *fetchWork) close() {
	if f.session != nil {
		f.s.Sessions.Done(f.session)
	}
}

// limit applies the broker's bounds to the request's. A follower sees the whole log and has no bounds but its own.
func (f *fetchWork) limit() {
	if f.follower.ID >= 0 {
		f.req.Follower, f.req.Isolation = &f.follower, commitlog.ReadLogEnd
	} else {
		f.req.MaxBytes = min(f.req.MaxBytes, f.s.fetchMaxBytes)
	}
	f.req.MinBytes = min(f.req.MinBytes, f.req.MaxBytes)
}

// fetchCode is code for one partition of a fetch: old clients do not know all codes.
func (f *fetchWork) fetchCode(err error) int16 {
	c := code(err)
	if c == kerr.KafkaStorageError.Code && f.version <= 5 {
		return kerr.NotLeaderForPartition.Code
	}
	return c
}

// namesLeader reports whether an answer with err says who the leader is.
func (f *fetchWork) namesLeader(err error) bool {
	return f.version >= 12 && (errors.Is(err, replica.ErrNotLeaderOrFollower) || errors.Is(err, replica.ErrFencedLeaderEpoch))
}
