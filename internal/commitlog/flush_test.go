package commitlog

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestFlushMessages(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Config.FlushMessages = 3
	l := openLog(t, o)
	for i, want := range []int64{0, 0, 3} {
		if info := mustAppend(t, l, spec{}.build(t)); info.FlushTo != want {
			t.Errorf("append %d: flush to %d, want %d", i, info.FlushTo, want)
		}
	}
	must(t, l.FlushTo(3))
	if l.RecoveryPoint() != 3 {
		t.Errorf("recovery point %d, want 3", l.RecoveryPoint())
	}
	if info := mustAppend(t, l, spec{}.build(t)); info.FlushTo != 0 {
		t.Errorf("flush to %d, want none", info.FlushTo)
	}
	must(t, l.FlushTo(1000)) // beyond the end: all there is
	if l.RecoveryPoint() != 4 {
		t.Errorf("recovery point %d, want 4", l.RecoveryPoint())
	}
}

// A sync counts if there was anything to write.
func TestObserveFlushes(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	var times metrics.Histogram
	l.ObserveFlushes(&times)
	f := func(want int64) {
		t.Helper()
		if got := times.Count(); got != want {
			t.Errorf("%d syncs, want %d", got, want)
		}
	}
	must(t, l.Flush())
	f(0)
	mustAppend(t, l, spec{}.build(t))
	must(t, l.FlushTo(1))
	f(1)
	must(t, l.FlushTo(1))
	must(t, l.Flush())
	f(1)
	mustAppend(t, l, spec{}.build(t))
	must(t, l.Roll())
	must(t, l.Flush()) // the segment that was rolled may be synced before it
	if got := times.Count(); got < 2 || got > 3 {
		t.Errorf("%d syncs, want 2 or 3", got)
	}
}

// Whoever comes while a sync runs shares the next one: one sync in flight, and the others
// wait for exactly one more.
func TestGroupCommit(t *testing.T) {
	const callers = 20
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	mustAppend(t, l, spec{}.build(t))
	must(t, l.Flush())

	var syncs, running atomic.Int32
	first, proceed := make(chan struct{}), make(chan struct{})
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind != vfs.OpSync || filepath.Ext(op.Name) != ".log" {
			return nil
		}
		if running.Add(1) > 1 {
			t.Error("two syncs at once")
		}
		defer running.Add(-1)
		if syncs.Add(1) == 1 {
			close(first)
			<-proceed
		}
		return nil
	})
	var wg sync.WaitGroup
	flush := func() {
		info, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})
		if err != nil {
			t.Error(err)
		}
		wg.Go(func() {
			if err := l.FlushTo(info.LastOffset + 1); err != nil {
				t.Error(err)
			}
			if l.RecoveryPoint() <= info.LastOffset {
				t.Errorf("acknowledged offset %d with recovery point %d", info.LastOffset, l.RecoveryPoint())
			}
		})
	}
	flush()
	<-first
	for range callers {
		flush()
	}
	close(proceed)
	wg.Wait()
	mem.SetHook(nil)
	if n := syncs.Load(); n != 2 {
		t.Errorf("%d syncs for %d callers, want 2", n, callers+1)
	}
}

// A sync that runs while a write is under way must not count for it.
func TestSyncDuringWrite(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	mustAppend(t, l, spec{}.build(t))
	first, last := l.Offsets().active(), 0
	mem.SetHook(func(op vfs.Op) error {
		switch {
		case filepath.Ext(op.Name) != ".log":
		case op.Kind == vfs.OpWrite && op.Size > 0:
			return first.Flush() // of what is published
		case op.Kind == vfs.OpSync:
			last++
		}
		return nil
	})
	mustAppend(t, l, spec{}.build(t))
	before := last
	must(t, l.FlushTo(2))
	mem.SetHook(nil)
	if last != before+1 {
		t.Error("the second append was acknowledged without a sync after its write")
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	var failures []error
	o.OnFailure = func(err error) { failures = append(failures, err) }
	l := openLog(t, o)
	mustAppend(t, l, spec{}.build(t))
	broken := errors.New("input/output error")
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return broken
		}
		return nil
	})
	if err := l.FlushTo(1); !errors.Is(err, ErrStorage) || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	mem.SetHook(nil)
	if err := l.FlushTo(1); !errors.Is(err, broken) {
		t.Errorf("a second sync must not prove anything: %v", err)
	}
	if _, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, _ := readAll(t, l, 0, ReadUncommitted); len(got) != 1 {
		t.Errorf("reads go on: got %v", got)
	}
	if len(failures) != 1 || !errors.Is(failures[0], broken) {
		t.Errorf("reported %v", failures)
	}
}

func TestShortWritePoisons(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	mustAppend(t, l, spec{tag: "whole"}.build(t))
	full := errors.New("no space left on device")
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && filepath.Ext(op.Name) == ".log" {
			return &vfs.ShortWrite{N: 10, Err: full}
		}
		return nil
	})
	if _, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{}); !errors.Is(err, full) || !errors.Is(err, ErrStorage) {
		t.Errorf("got %v", err)
	}
	mem.SetHook(nil)
	if _, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	wantOffsets(t, l, 0, 1, 1, 1)
	if err := l.Close(); !errors.Is(err, full) {
		t.Errorf("a stop after a failure is not clean: %v", err)
	}
	again := openLog(t, testOptions(mem))
	wantOffsets(t, again, 0, 0, 0, 1)
	mustAppend(t, again, spec{}.build(t))
}
