package group

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// An emptyLog begins empty and forgets what is appended.
type emptyLog struct {
	mu  sync.Mutex
	end int64
}

func (l *emptyLog) Append(_ context.Context, _ topic.Partition, _ int32, batch []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	base := l.end
	l.end += int64(record.Batch(batch).Count())
	return base, nil
}

func (l *emptyLog) AwaitCommitted(context.Context, topic.Partition) error { return nil }

func (l *emptyLog) Replay(context.Context, topic.Partition, func(record.Batch) error) error {
	return nil
}

// sevens is randomness that is none.
type sevens struct{}

func (sevens) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0x77
	}
	return len(b), nil
}

func joinFirst(ctx context.Context, c *Coordinator, group string) *JoinResponse {
	return c.Join(ctx, &JoinRequest{
		Group: group, ClientID: "c", SessionTimeout: 10 * time.Second, RebalanceTimeout: time.Minute,
		ProtocolType: consumerType, Protocols: []Protocol{{"range", subscriptionTo("t")}},
	})
}

// newEmpty returns a coordinator that leads the one partition, which is loaded.
func newEmpty(t *testing.T, o Options) *Coordinator {
	t.Helper()
	o.Config, o.Log = DefaultConfig(), &emptyLog{}
	o.Partitions = func() int32 { return 1 }
	c := New(o)
	t.Cleanup(c.Close)
	c.Lead(0, 0)
	synctest.Wait()
	return c
}

// Without a logger and without randomness of its own a coordinator makes do: member ids differ.
func TestCoordinatorDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEmpty(t, Options{})
		a, b := joinFirst(t.Context(), c, "g"), joinFirst(t.Context(), c, "h")
		if a.Err != nil || b.Err != nil || a.MemberID == b.MemberID {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
}

// The unique part of a member id comes from the randomness that was given.
func TestCoordinatorRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEmpty(t, Options{Random: func(int32) io.Reader { return sevens{} }})
		if r := joinFirst(t.Context(), c, "g"); r.Err != nil || !strings.HasPrefix(r.MemberID, "c-77777777-7777-") {
			t.Errorf("got %+v", r)
		}
	})
}

// Members need a group with a name, offsets alone do not; and the topic has to be there.
func TestCoordinatorRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEmpty(t, Options{})
		if r := joinFirst(t.Context(), c, ""); r.Err != ErrInvalidGroupID {
			t.Errorf("join: got %v", r.Err)
		}
		if r := c.Sync(t.Context(), &SyncRequest{}); r.Err != ErrInvalidGroupID {
			t.Errorf("sync: got %v", r.Err)
		}
		if _, err := c.Leave(t.Context(), "", []Leaver{{}}); err != ErrInvalidGroupID {
			t.Errorf("leave: got %v", err)
		}
		if errs, err := c.Commit(t.Context(), &CommitRequest{Generation: -1, RetentionMs: -1, Offsets: []CommitOffset{{Topic: "t"}}}); err != nil || errs[0] != nil {
			t.Errorf("commit: got %v, %v", errs, err)
		}
		count := int32(0)
		c.partitions = func() int32 { return count }
		if _, err := c.Fetch(t.Context(), &FetchRequest{Group: "g"}); err != ErrCoordinatorNotAvailable {
			t.Errorf("fetch without a topic: got %v", err)
		}
	})
}

// Who goes away while the join waits is told to look for the coordinator again.
func TestCoordinatorGoneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEmpty(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the first generation takes longer
		defer cancel()
		if r := joinFirst(ctx, c, "g"); !errors.Is(r.Err, coordinator.ErrClosed) {
			t.Errorf("got %v", r.Err)
		}
	})
}
