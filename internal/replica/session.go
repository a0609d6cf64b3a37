package replica

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Refusals of incremental fetches (KIP-227). The client starts again with a full fetch.
var (
	ErrSessionNotFound = errors.New("no such fetch session")
	ErrSessionEpoch    = errors.New("unexpected epoch of the fetch session, or it is in use")
	ErrSessionTopicID  = errors.New("the fetch session has topics by name and the request by id, or the other way round")
)

// Epochs of a full fetch.
const (
	InitialEpoch int32 = 0  // opens a session
	FinalEpoch   int32 = -1 // wants none
)

// sessionPartitionsMax bounds the memory that one session may hold.
const sessionPartitionsMax = 100_000

// SessionOptions are the bounds of a cache of fetch sessions.
type SessionOptions struct {
	Slots       int              // max.incremental.fetch.session.cache.slots; 0: no sessions
	EvictionAge time.Duration    // min.incremental.fetch.session.eviction.ms; 0: Kafka's 2 minutes
	Now         func() time.Time // nil: time.Now
	Random      io.Reader        // of ids; nil is the host's; never fails
}

// Sessions remembers what clients fetch, so that they only send what changes. (Kafka class
// FetchSessionCache.)
type Sessions struct {
	o SessionOptions

	// mu guards the map, and in every Session the fields that say so. It is held for moments.
	mu struct {
		sync.Mutex
		byID      map[int32]*Session
		evictions int64
	}
}

// SessionStats describes a cache of fetch sessions.
type SessionStats struct {
	Sessions   int
	Partitions int   // of all sessions, when they were last used
	Evictions  int64 // of sessions that had to make room
}

// NewSessions returns an empty cache.
func NewSessions(o SessionOptions) *Sessions {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = random.Host("fetch sessions")
	}
	if o.EvictionAge == 0 {
		o.EvictionAge = 2 * time.Minute
	}
	c := &Sessions{o: o}
	c.mu.byID = map[int32]*Session{}
	return c
}

// Stats counts the sessions.
func (c *Sessions) Stats() SessionStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := SessionStats{Sessions: len(c.mu.byID), Evictions: c.mu.evictions}
	for _, s := range c.mu.byID {
		stats.Partitions += s.size
	}
	return stats
}

// A Session is the partitions that one client fetches, in the order in which they are read.
// From Open or Acquire until Done it belongs to one request.
type Session struct {
	ID     int32
	useIDs bool // topics go by id: Fetch 13 and later

	byName map[string]*sessionTopic
	byID   map[uuid.UUID]*sessionTopic
	first  *FetchPartition // of a list that is linked through FetchPartition.session
	last   *FetchPartition
	count  int

	// Guarded by Sessions.mu.
	epoch      int32 // that the next request must have
	busy       bool
	privileged bool // a follower's
	size       int  // count at the last Done
	created    time.Time
	lastUsed   time.Time
}

type sessionTopic struct {
	name  []byte
	id    uuid.UUID
	parts map[int32]*FetchPartition
}

// sessionLinks is what a session remembers of a partition.
type sessionLinks struct {
	prev, next *FetchPartition
	topic      *sessionTopic
	known      string // the topic's name, once its id was resolved

	// What the client was told last; -1 after an error, so that the next answer counts.
	highWatermark, logStart int64
}

// Open starts a session with the partitions of a full fetch, which are copied, or returns
// nil when there is no slot for it. The first incremental request has epoch 1.
func (c *Sessions) Open(parts []FetchPartition, useIDs, privileged bool) *Session {
	if len(parts) == 0 || len(parts) > sessionPartitionsMax {
		return nil
	}
	now := c.o.Now()
	s := &Session{useIDs: useIDs, epoch: 1, busy: true, privileged: privileged, size: len(parts), created: now, lastUsed: now}
	if !c.add(s) {
		return nil
	}
	s.byName, s.byID = map[string]*sessionTopic{}, map[uuid.UUID]*sessionTopic{}
	for i := range parts {
		s.Update(&parts[i])
	}
	return s
}

func (c *Sessions) add(s *Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.byID) >= c.o.Slots && !c.evictLocked(s) {
		return false
	}
	for s.ID == 0 || c.mu.byID[s.ID] != nil {
		s.ID = int32(random.Uint64(c.o.Random) >> 33)
	}
	c.mu.byID[s.ID] = s
	return true
}

// evictLocked makes a slot for s, at the cost of a session that was not used for long, else
// of one that counts less than s and is not young.
func (c *Sessions) evictLocked(s *Session) bool {
	var stale, least *Session
	for _, o := range c.mu.byID {
		if stale == nil || o.lastUsed.Before(stale.lastUsed) {
			stale = o
		}
		if least == nil || o.countsLess(least) {
			least = o
		}
	}
	switch {
	case stale == nil:
		return false
	case s.created.Sub(stale.lastUsed) > c.o.EvictionAge:
		delete(c.mu.byID, stale.ID)
	case least.countsLess(s) && (s.privileged && !least.privileged || s.created.Sub(least.created) > c.o.EvictionAge):
		delete(c.mu.byID, least.ID)
	default:
		return false
	}
	c.mu.evictions++
	return true
}

func (s *Session) countsLess(o *Session) bool {
	if s.privileged != o.privileged {
		return o.privileged
	}
	return s.size < o.size
}

// Acquire returns a session for the next incremental fetch.
func (c *Sessions) Acquire(id, epoch int32, useIDs bool) (*Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.byID[id]
	switch {
	case s == nil:
		return nil, ErrSessionNotFound
	case s.useIDs != useIDs:
		delete(c.mu.byID, id)
		return nil, ErrSessionTopicID
	case s.busy || s.epoch != epoch:
		return nil, ErrSessionEpoch
	}
	s.busy = true
	if s.epoch == math.MaxInt32 {
		s.epoch = 0
	}
	s.epoch++
	return s, nil
}

// Done ends the use of a session by a request and returns its id, which is 0 when the
// session has become useless and is gone.
func (c *Sessions) Done(s *Session) int32 {
	for f := s.first; f != nil; f = f.session.next {
		f.Result = FetchResult{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.busy, s.size, s.lastUsed = false, s.count, c.o.Now()
	if s.count == 0 || s.count > sessionPartitionsMax {
		delete(c.mu.byID, s.ID)
		return 0
	}
	return s.ID
}

// Close forgets a session, if there is one.
func (c *Sessions) Close(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.byID, id)
}

func (s *Session) topic(name []byte, id uuid.UUID) *sessionTopic {
	if s.useIDs {
		return s.byID[id]
	}
	return s.byName[string(name)]
}

// Update takes over what a request says about a partition, which is copied, or adds it.
func (s *Session) Update(f *FetchPartition) {
	t := s.topic(f.Name, f.TopicID)
	if t == nil {
		t = &sessionTopic{bytes.Clone(f.Name), f.TopicID, map[int32]*FetchPartition{}}
		if s.useIDs {
			s.byID[t.id] = t
		} else {
			s.byName[string(t.name)] = t
		}
	}
	own := t.parts[f.Index]
	if own == nil {
		own = &FetchPartition{Name: t.name, TopicID: t.id, Index: f.Index}
		own.session = sessionLinks{topic: t, highWatermark: -1, logStart: -1}
		t.parts[f.Index] = own
		s.push(own)
		s.count++
	}
	own.Offset, own.LogStart, own.MaxBytes = f.Offset, f.LogStart, f.MaxBytes
	own.LeaderEpoch, own.LastFetchedEpoch = f.LeaderEpoch, f.LastFetchedEpoch
}

// Forget removes a partition.
func (s *Session) Forget(name []byte, id uuid.UUID, index int32) {
	t := s.topic(name, id)
	if t == nil || t.parts[index] == nil {
		return
	}
	s.unlink(t.parts[index])
	s.count--
	delete(t.parts, index)
	if len(t.parts) == 0 {
		delete(s.byID, t.id)
		delete(s.byName, string(t.name))
	}
}

func (s *Session) push(f *FetchPartition) {
	f.session.prev, f.session.next = s.last, nil
	if s.last != nil {
		s.last.session.next = f
	} else {
		s.first = f
	}
	s.last = f
}

func (s *Session) unlink(f *FetchPartition) {
	prev, next := f.session.prev, f.session.next
	if prev != nil {
		prev.session.next = next
	} else {
		s.first = next
	}
	if next != nil {
		next.session.prev = prev
	} else {
		s.last = prev
	}
}

// Append appends the partitions in the order in which they are to be read.
func (s *Session) Append(list []*FetchPartition) []*FetchPartition {
	for f := s.first; f != nil; f = f.session.next {
		list = append(list, f)
	}
	return list
}

// Changed reports whether the result tells the client anything new.
func (f *FetchPartition) Changed() bool {
	r := &f.Result
	if r.Err != nil || r.Diverging || r.Elsewhere || r.Read.Slice.Size() > 0 {
		return true
	}
	o := r.Read.Offsets
	return o.HighWatermark != f.session.highWatermark || o.LogStart != f.session.logStart
}

// Sent notes that the client gets the result. A partition that had records is read last the
// next time, so that all get their turn.
func (s *Session) Sent(f *FetchPartition) {
	r := &f.Result
	if r.Err != nil || r.Diverging { // a client whose log is another one does not take over our watermarks
		f.session.highWatermark = -1
		return
	}
	f.session.highWatermark, f.session.logStart = r.Read.Offsets.HighWatermark, r.Read.Offsets.LogStart
	if r.Read.Slice.Size() > 0 && s.last != f {
		s.unlink(f)
		s.push(f)
	}
}
