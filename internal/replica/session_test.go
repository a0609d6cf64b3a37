package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

func fetchOf(names ...string) (list []FetchPartition) {
	for _, n := range names {
		list = append(list, FetchPartition{Name: []byte(n), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1})
	}
	return list
}

func order(s *Session) string {
	var names []string
	for _, f := range s.Append(nil) {
		names = append(names, string(f.Name))
	}
	return fmt.Sprint(names)
}

func TestSessionOrder(t *testing.T) {
	c := NewSessions(SessionOptions{Slots: 1, EvictionAge: time.Minute})
	s := c.Open(fetchOf("a", "b", "c"), false, false)
	f := func(want string) {
		t.Helper()
		if got := order(s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("[a b c]")
	s.Forget([]byte("b"), topicID(0), 0)
	s.Forget([]byte("nobody"), topicID(0), 0)
	f("[a c]")
	d := fetchOf("d")
	s.Update(&d[0])
	f("[a c d]")
	s.Forget([]byte("a"), topicID(0), 0)
	s.Forget([]byte("d"), topicID(0), 0)
	f("[c]")
	s.Forget([]byte("c"), topicID(0), 0)
	f("[]")
	if id := c.Done(s); id != 0 || c.Stats().Sessions != 0 {
		t.Errorf("an empty session is kept as %d", id)
	}
}

func TestSessionEpochs(t *testing.T) {
	c := NewSessions(SessionOptions{Slots: 1, EvictionAge: time.Minute})
	s := c.Open(fetchOf("a"), false, false)
	_, err := c.Acquire(s.ID, 1, false)
	wantError(t, err, ErrSessionEpoch) // still in use by the request that opened it
	c.Done(s)
	s.epoch = 1<<31 - 1
	for _, epoch := range []int32{1<<31 - 1, 1, 2} {
		if _, err := c.Acquire(s.ID, epoch+1, false); err == nil {
			t.Errorf("epoch %d is accepted, want %d", epoch+1, epoch)
		}
		got, err := c.Acquire(s.ID, epoch, false)
		if err != nil {
			t.Fatalf("epoch %d: %v", epoch, err)
		}
		c.Done(got)
	}
	_, err = c.Acquire(s.ID, 3, true)
	wantError(t, err, ErrSessionTopicID)
	_, err = c.Acquire(s.ID, 3, false)
	wantError(t, err, ErrSessionNotFound)
}

func TestSessionEviction(t *testing.T) {
	now := time.Unix(1000, 0)
	c := NewSessions(SessionOptions{Slots: 2, EvictionAge: time.Minute, Now: func() time.Time { return now }})
	open := func(privileged bool, names ...string) *Session {
		s := c.Open(fetchOf(names...), false, privileged)
		if s != nil {
			c.Done(s)
		}
		return s
	}
	small, large := open(false, "a"), open(false, "a", "b", "c")
	if open(false, "a", "b") != nil {
		t.Error("a young session was evicted")
	}
	now = now.Add(30 * time.Second)
	follower := open(true, "a")
	if follower == nil {
		t.Fatal("a follower got no session")
	}
	if _, err := c.Acquire(small.ID, 1, false); err != ErrSessionNotFound {
		t.Errorf("the smallest session was not the one to go: %v", err)
	}
	now = now.Add(50 * time.Second) // large is 80 s old and 80 s unused
	if open(false, "a") == nil {
		t.Fatal("a session that was not used for long was not evicted")
	}
	if _, err := c.Acquire(large.ID, 1, false); err != ErrSessionNotFound {
		t.Errorf("the stale session was not the one to go: %v", err)
	}
	if got, want := c.Stats(), (SessionStats{Sessions: 2, Partitions: 2, Evictions: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if NewSessions(SessionOptions{}).Open(fetchOf("a"), false, false) != nil {
		t.Error("a cache without slots gave one")
	}
}

func TestSessionChanged(t *testing.T) {
	c := NewSessions(SessionOptions{Slots: 1})
	s := c.Open(fetchOf("a", "b"), false, false)
	f := s.Append(nil)[0]
	at := func(hw, start int64) {
		f.Result = FetchResult{Read: commitlog.ReadResult{Offsets: &commitlog.Offsets{HighWatermark: hw, LogStart: start}}}
	}
	want := func(want bool) {
		t.Helper()
		if got := f.Changed(); got != want {
			t.Errorf("Changed() = %t, want %t", got, want)
		}
		if want {
			s.Sent(f)
		}
	}
	at(5, 0)
	want(true)
	want(false)
	at(6, 0)
	want(true)
	at(6, 1)
	want(true)
	want(false)
	f.Result = FetchResult{Err: ErrNotLeaderOrFollower}
	want(true)
	want(true)
	at(6, 1)
	want(true) // after an error, once more
	want(false)
}

// A partition that had records is read last the next time.
func TestSessionTurns(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	for i, name := range []string{"a", "b", "c"} {
		b.create(name, byte(i+1), testNode, one, one)
		mustAppend(t, b.partition(name), "v")
	}
	s := NewSessions(SessionOptions{Slots: 1}).Open(fetchOf("a", "b", "c"), false, false)
	f := func(name string, maxBytes int, want string) {
		t.Helper()
		for _, p := range s.Append(nil) {
			p.MaxBytes, p.LeaderEpoch, p.LastFetchedEpoch = maxBytes, NoEpoch, -1
			if string(p.Name) != name {
				continue
			}
			if err := b.Fetch(t.Context(), &FetchRequest{MaxBytes: maxBytes}, []*FetchPartition{p}); err != nil {
				t.Fatal(err)
			}
			if !p.Changed() {
				t.Errorf("%s: nothing new", name)
			}
			s.Sent(p)
			p.Result.Read.Slice.Release()
		}
		if got := order(s); got != want {
			t.Errorf("after %s: got %s, want %s", name, got, want)
		}
	}
	f("a", 1000, "[b c a]")
	f("a", 1000, "[b c a]")
	f("c", 1000, "[b a c]")
	f("b", 1000, "[a c b]")
}

// A session is made for one partition at least, and for as many as there may be.
func TestSessionSizes(t *testing.T) {
	c := NewSessions(SessionOptions{Slots: 10})
	f := func(n int, want bool) {
		t.Helper()
		parts := make([]FetchPartition, n)
		for i := range parts {
			parts[i] = FetchPartition{Name: []byte("t"), Index: int32(i)}
		}
		s := c.Open(parts, false, false)
		if (s != nil) != want {
			t.Fatalf("%d partitions: got a session: %v", n, s != nil)
		}
		if s == nil {
			return
		}
		if s.ID <= 0 || c.Done(s) != s.ID {
			t.Errorf("%d partitions: session %d", n, s.ID)
		}
		extra := FetchPartition{Name: []byte("t"), Index: int32(n)}
		s.Update(&extra)
		if kept := c.Done(s) != 0; kept != (n < sessionPartitionsMax) {
			t.Errorf("with %d partitions it is kept: %v", n+1, kept)
		}
	}
	f(0, false)
	f(1, true)
	f(sessionPartitionsMax-1, true)
	f(sessionPartitionsMax, true)
	f(sessionPartitionsMax+1, false)
}

// Who may take whose slot: after EvictionAge any, else a follower that of a consumer, and a larger one that
// of a smaller one that is old. To the millisecond.
func TestSessionEvictionAge(t *testing.T) {
	const age = time.Minute
	f := func(name string, oldSize int, oldPrivileged bool, created, used time.Duration, size int, privileged, want bool) {
		t.Helper()
		now := time.Unix(1000, 0)
		c := NewSessions(SessionOptions{Slots: 1, EvictionAge: age, Now: func() time.Time { return now }})
		old := c.Open(fetchOf("a", "b", "c")[:oldSize], false, oldPrivileged)
		now = now.Add(created - used)
		c.Done(old)
		now = now.Add(used)
		if got := c.Open(fetchOf("a", "b", "c")[:size], false, privileged) != nil; got != want {
			t.Errorf("%s: got a session: %v", name, got)
		}
	}
	f("unused for long", 1, true, 2*age, age+1, 1, false, true)
	f("unused, but not for long", 1, true, 2*age, age, 1, false, false)
	f("larger, the other old", 1, false, age+1, 0, 2, false, true)
	f("larger, the other not old", 1, false, age, 0, 2, false, false)
	f("as large, the other old", 2, false, 2*age, 0, 2, false, false)
	f("smaller, the other old", 2, false, 2*age, 0, 1, false, false)
	f("a follower, the other new", 3, false, 0, 0, 1, true, true)
	f("a larger follower, the other a new one", 1, true, 0, 0, 3, true, false)
	f("a larger follower, the other an old one", 1, true, 2*age, 0, 3, true, true)
	f("a consumer, the other a follower", 1, true, 2*age, 0, 3, false, false)
}

// A partition without news keeps its turn.
func TestSessionKeepsTurns(t *testing.T) {
	s := NewSessions(SessionOptions{Slots: 1}).Open(fetchOf("a", "b"), false, false)
	f := s.Append(nil)[0]
	f.Result = FetchResult{Read: commitlog.ReadResult{Offsets: &commitlog.Offsets{HighWatermark: 5}}}
	s.Sent(f)
	if got := order(s); got != "[a b]" {
		t.Errorf("got %s", got)
	}
}

// Forgetting one partition of a topic leaves the others in their places.
func TestSessionForgetsOneOfTwo(t *testing.T) {
	s := NewSessions(SessionOptions{Slots: 1}).Open([]FetchPartition{{Name: []byte("t")}, {Name: []byte("t"), Index: 1}}, false, false)
	s.Forget([]byte("t"), topicID(0), 0)
	f := FetchPartition{Name: []byte("t"), Index: 1, Offset: 5}
	s.Update(&f)
	if list := s.Append(nil); len(list) != 1 || list[0].Offset != 5 || len(s.byName) != 1 {
		t.Errorf("got %d partitions, %d topics", len(list), len(s.byName))
	}
	s.Forget([]byte("t"), topicID(0), 1)
	if len(s.byName)+len(s.byID) > 0 {
		t.Error("a topic without partitions is kept")
	}
}
