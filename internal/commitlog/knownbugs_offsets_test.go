package commitlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// Reports about offsets, sizes and transactions, by their numbers.

// A partition of more than 2^31 bytes: its size is right, and retention goes by it.
func TestKAFKA5584(t *testing.T) {
	o := testOptions(vfs.OS)
	o.Dir = filepath.Join(t.TempDir(), "t-0")
	l := openLog(t, o)
	for range 3 {
		mustAppend(t, l, spec{}.build(t))
		must(t, l.Roll())
	}
	mustAppend(t, l, spec{}.build(t))
	must(t, l.Close())
	for base := range int64(3) { // a batch and a hole
		must(t, os.Truncate(filepath.Join(o.Dir, logName(base)), 1<<30))
	}
	o.Clean, o.RecoveryPoint = true, 4
	l, err := Open(o)
	must(t, err)
	if size := l.Size(); size <= 3<<30 || size > 3<<30+1000 {
		t.Errorf("got size %d, want a bit more than 3 GiB", size)
	}
	l.SetHighWatermark(4)
	c := l.Config()
	c.RetentionMs, c.RetentionBytes = -1, 1<<30
	l.SetConfig(c)
	if n, err := l.DeleteOldSegments(testTime); err != nil || n != 2 {
		t.Errorf("deleted %d segments, %v, want 2", n, err)
	}
	must(t, l.Close())
}

// Checkpoints that do not fit the log: offsets are bounded by what is there, epochs and producers
// are made from the batches, and no crash moves the recovery point forward.
func TestKAFKA10101(t *testing.T) {
	f := func(name string, point, logStart, wantStart, wantEnd, wantPoint int64, producers int) {
		t.Helper()
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.RecoveryPoint, o.LogStartOffset = point, logStart
		must(t, mem.Remove(dir+"leader-epoch-checkpoint"))
		l := openLog(t, o)
		wantOffsets(t, l, wantStart, wantStart, wantStart, wantEnd)
		if l.RecoveryPoint() != wantPoint || len(l.Producers()) != producers {
			t.Errorf("%s: got recovery point %d and producers %v, want %d and %d", name, l.RecoveryPoint(), l.Producers(), wantPoint, producers)
		}
		if info := mustAppend(t, l, spec{}.build(t)); info.FirstOffset != wantEnd {
			t.Errorf("%s: next append gets %d, want %d", name, info.FirstOffset, wantEnd)
		}
	}
	f("recovery point beyond the end", 1000, 0, 0, 6, 6, 1)
	f("log start beyond the end", 6, 500, 500, 500, 500, 0)
	f("both", 1000, 500, 500, 500, 500, 0)
	f("nothing to clamp", 2, 0, 0, 6, 2, 1)
}

// openTxn is a log of a plain record, one of a transaction that is open, and a plain one.
func openTxn(t *testing.T) *Log {
	t.Helper()
	l := openLog(t, testOptions(vfs.NewMem()))
	at := testTime.UnixMilli()
	mustAppend(t, l, spec{tag: "before", timestamp: at}.build(t))
	mustAppend(t, l, spec{tag: "open", timestamp: at + 10, producer: &record.Producer{ID: 1}, txn: true}.build(t))
	mustAppend(t, l, spec{tag: "behind", timestamp: at + 20}.build(t))
	return l
}

// A lookup by time with read_committed ends at the last stable offset (also redpanda#3161).
func TestKAFKA5522(t *testing.T) {
	l := openTxn(t)
	at := testTime.UnixMilli()
	f := func(isolation Isolation, timestamp, want int64) {
		t.Helper()
		got, ok, err := l.Lookup(LookupRequest{timestamp, isolation})
		if !ok {
			got.Offset = -1
		}
		if err != nil || got.Offset != want {
			t.Errorf("isolation %d, time %d: got %d, %v, want %d", isolation, timestamp-at, got.Offset, err, want)
		}
	}
	f(ReadCommitted, at, 0)
	f(ReadCommitted, at+1, -1)
	f(ReadCommitted, at+11, -1)
	f(ReadCommitted, Latest, 1)
	f(ReadUncommitted, at+1, 1)
	f(ReadUncommitted, at+11, 2)
	mustMark(t, l, marker(1, 0, false, 0))
	f(ReadCommitted, at+1, 1)
	f(ReadCommitted, at+11, 2)
}

// The first record of an open transaction is not visible to read_committed.
func TestRedpanda3036(t *testing.T) {
	l := openTxn(t)
	if got, end := readAll(t, l, 0, ReadCommitted); len(got) != 1 || got[0] != "0:before0" || end != 1 {
		t.Errorf("got %v up to %d, want the record before the transaction", got, end)
	}
	if got, _ := readAll(t, l, 1, ReadCommitted); len(got) != 0 {
		t.Errorf("got %v from the last stable offset on, want nothing", got)
	}
}

// Records of an aborted transaction are returned to read_uncommitted, and nobody is told to leave
// them out.
func TestRedpanda6630(t *testing.T) {
	l := openTxn(t)
	mustMark(t, l, marker(1, 0, true, 0))
	if got, _ := readAll(t, l, 0, ReadUncommitted); len(got) != 3 {
		t.Errorf("got %v, want three records", got)
	}
	r, err := l.Read(0, 1<<20, ReadUncommitted, true)
	must(t, err)
	r.Slice.Release()
	if r.Aborted != nil {
		t.Errorf("read_uncommitted is told of %v", r.Aborted)
	}
}

// Retention never goes above the high watermark, whatever the rule.
func TestKAFKA5634(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"time": func(c *Config) { c.RetentionMs = 1 },
		"size": func(c *Config) { c.RetentionBytes = 1 },
	} {
		o := testOptions(vfs.NewMem())
		change(&o.Config)
		l := openLog(t, o)
		for range 4 {
			_, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})
			must(t, err)
			must(t, l.Roll())
		}
		l.SetHighWatermark(2)
		n, err := l.DeleteOldSegments(testTime.Add(time.Hour))
		if start := l.Offsets().LogStart; err != nil || n != 2 || start != 2 {
			t.Errorf("%s: deleted %d, %v, log start %d, want 2 up to the high watermark 2", name, n, err, start)
		}
	}
}

// The rule of the log start comes first, then the others, and one pass is enough.
func TestKAFKA12177(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l := openLog(t, o)
	size := int64(0)
	for i := range int64(6) {
		mustAppend(t, l, spec{timestamp: testTime.UnixMilli() + 1000*i}.build(t))
		size = l.Size() / (i + 1)
		must(t, l.Roll())
	}
	must(t, l.IncrementLogStart(2))
	c := l.Config()
	c.RetentionBytes, c.RetentionMs = 3*size, 5000
	l.SetConfig(c)
	// Two below the log start, one by size, one more by time.
	n, err := l.DeleteOldSegments(testTime.Add(8500 * time.Millisecond))
	if start := l.Offsets().LogStart; err != nil || n != 4 || start != 4 {
		t.Errorf("first pass: deleted %d, %v, log start %d, want 4 and 4", n, err, start)
	}
	if n, err = l.DeleteOldSegments(testTime.Add(8500 * time.Millisecond)); n != 0 || err != nil {
		t.Errorf("second pass: deleted %d, %v, want none", n, err)
	}
}

// A follower with an epoch that the leader never saw steps back until the logs agree. (What a
// fetcher does, without the network.)
func TestKAFKA6361(t *testing.T) {
	build := func(epochs ...int32) *Log {
		l := openLog(t, testOptions(vfs.NewMem()))
		for _, e := range epochs {
			_, err := l.AppendAsLeader(spec{tag: "x"}.build(t), e, AppendOptions{})
			must(t, err)
		}
		return l
	}
	leader := build(0, 0, 2, 2, 5)
	follower := build(0, 0, 2, 3, 3, 4) // 3 and 4 were never the leader's
	steps := 0
	for ; steps < 10; steps++ {
		asked := follower.LatestEpoch()
		epoch, end := leader.EpochEndOffset(asked)
		if epoch < asked { // the follower's own end of the epoch that both know
			_, own := follower.EpochEndOffset(epoch)
			end = min(end, own)
		}
		if end >= follower.Offsets().End {
			break
		}
		must(t, follower.TruncateTo(end))
	}
	if end, epoch := follower.Offsets().End, follower.LatestEpoch(); end != 3 || epoch != 2 {
		t.Fatalf("after %d steps: end %d, epoch %d, want 3 and 2", steps, end, epoch)
	}
	r, err := leader.Read(3, 1<<20, ReadLogEnd, true)
	must(t, err)
	_, err = follower.AppendAsFollower(contents(t, r), 5)
	must(t, err)
	want, _ := readAll(t, leader, 0, ReadLogEnd)
	if got, _ := readAll(t, follower, 0, ReadLogEnd); len(got) != 5 || len(want) != 5 || leader.Size() != follower.Size() {
		t.Errorf("got %v, %d bytes, want %v, %d bytes", got, follower.Size(), want, leader.Size())
	}
}

// An old leader that truncates its tail shows nothing of it, whatever high watermark it is told.
func TestKAFKA14704(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	for range 5 {
		_, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})
		must(t, err)
	}
	l.SetHighWatermark(2)
	must(t, l.TruncateTo(3))
	if hw := l.SetHighWatermark(5); hw != 3 {
		t.Errorf("high watermark %d, want 3, the log end", hw)
	}
	if got, _ := readAll(t, l, 0, ReadUncommitted); len(got) != 3 {
		t.Errorf("read %v, want three records", got)
	}
	if _, err := l.Read(4, 1000, ReadUncommitted, true); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Errorf("a record that was truncated: got %v", err)
	}
}
