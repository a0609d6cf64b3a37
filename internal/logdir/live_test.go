package logdir

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// Producer ids are counted once a minute, those that have expired not.
func TestProducerCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := DefaultConfig()
		c.FS, c.Dirs, c.ProducerIDExpiration = vfs.NewMem(), []string{"/a"}, 30*time.Minute
		m := mustLoad(t, c)
		m.Start(t.Context())
		for id, p := range []topic.Partition{orders0, orders1, orders1} {
			l := m.Log(p)
			if l == nil {
				l = mustCreate(t, m, p)
			}
			b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: int64(id)}})
			if err := b.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.AppendAsLeader(b.Build(), 0, commitlog.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f := func(after time.Duration, want int64) {
			t.Helper()
			time.Sleep(after)
			if got := m.ProducerCount(); got != want {
				t.Errorf("%d producer ids, want %d", got, want)
			}
		}
		f(0, 0)
		f(2*time.Minute, 3)
		f(time.Hour, 0)
		mustClose(t, m)
	})
}

// What may change at run time is in force at once, for logs that are open and for new ones.
func TestReconfigure(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	now := time.UnixMilli(recordTime)
	c.Now = func() time.Time { return now }
	c.FileDeleteDelay, c.ProducerIDExpiration = time.Hour, 24*time.Hour
	m := mustLoad(t, c)
	produce := func(l *commitlog.Log) {
		t.Helper()
		b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 7}})
		if err := b.Append(record.Record{Timestamp: recordTime, Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.AppendAsLeader(b.Build(), 0, commitlog.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := mustCreate(t, m, orders0)
	produce(before)
	now = now.Add(time.Hour)
	if n := before.ExpireProducers(now); n != 0 {
		t.Errorf("%d producers expired before the change", n)
	}

	c.FileDeleteDelay, c.ProducerIDExpiration, c.RecoveryThreads = time.Second, time.Minute, 7
	m.Reconfigure(c)
	after := mustCreate(t, m, orders1)
	produce(after)
	for _, l := range []*commitlog.Log{before, after} {
		if n := l.ExpireProducers(now); n != 1 {
			t.Errorf("%v: %d producers expired, want 1", l.Partition(), n)
		}
	}
	if err := m.Delete(orders1); err != nil {
		t.Fatal(err)
	}
	m.deletions.removeDue(now.Add(time.Second))
	if left := names(t, fsys, "/a"); slices.Contains(left, "orders-1.ID-delete") {
		t.Errorf("the old delay is in force: %v", left)
	}
	if n := m.live.recoveryThreads.Load(); n != 7 {
		t.Errorf("%d recovery threads, want 7", n)
	}
	mustClose(t, m)
}
