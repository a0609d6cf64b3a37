package commitlog

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// four segments of 100 bytes and 10 offsets, the last one active; times 1000, 2000, ...
func fourStretches() []stretch {
	list := make([]stretch, 4)
	for i := range list {
		list[i] = stretch{base: int64(10 * i), end: int64(10 * (i + 1)), size: 100, largest: int64(1000 * (i + 1)), last: i == 3}
	}
	return list
}

func TestExpired(t *testing.T) {
	off := Config{Delete: true, RetentionBytes: -1, RetentionMs: -1}
	f := func(name string, change func(c *Config, s []stretch), logStart, hw, nowMs int64, want int) {
		t.Helper()
		c, s := off, fourStretches()
		if change != nil {
			change(&c, s)
		}
		if got, reason := expired(s, &c, logStart, hw, time.UnixMilli(nowMs)); got != want {
			t.Errorf("%s: got %d segments (%s), want %d", name, got, reason, want)
		}
	}
	bytes := func(n int64) func(*Config, []stretch) {
		return func(c *Config, _ []stretch) { c.RetentionBytes = n }
	}
	age := func(ms int64) func(*Config, []stretch) {
		return func(c *Config, _ []stretch) { c.RetentionMs = ms }
	}
	f("nothing set", nil, 0, 40, math.MaxInt64, 0)

	f("log start on a boundary", nil, 20, 40, 0, 2)
	f("log start inside a segment", nil, 19, 40, 0, 1)
	f("log start at the end keeps the active segment", nil, 40, 40, 0, 3)
	f("compact only: log start counts", func(c *Config, _ []stretch) { c.Delete, c.Compact = false, true }, 20, 40, 0, 2)
	f("compact only: age does not", func(c *Config, _ []stretch) { c.Delete, c.RetentionMs = false, 0 }, 0, 40, 9999, 0)

	f("size just below the limit", bytes(401), 0, 40, 0, 0)
	f("size at the limit", bytes(400), 0, 40, 0, 0)
	f("remainder may not fall below the limit", bytes(301), 0, 40, 0, 0)
	f("remainder equal to the limit", bytes(300), 0, 40, 0, 1)
	f("size 0 takes all, also the active", bytes(0), 0, 40, 0, 4)
	f("KAFKA-5584: sizes beyond 2^31", func(c *Config, s []stretch) {
		for i := range s {
			s[i].size = 1 << 30
		}
		c.RetentionBytes = 3 << 30
	}, 0, 40, 0, 1)

	f("age equal to the limit", age(1000), 0, 40, 2000, 0)
	f("age above the limit", age(1000), 0, 40, 2001, 1)
	f("all too old", age(1000), 0, 40, 99999, 4)
	f("an empty active segment stays", func(c *Config, s []stretch) { c.RetentionMs, s[3].size = 1000, 0 }, 0, 40, 99999, 3)
	f("a future timestamp blocks what is behind", func(c *Config, s []stretch) { c.RetentionMs, s[1].largest = 1000, 1<<40 }, 0, 40, 99999, 1)

	f("KAFKA-5634: never above the high watermark", age(1000), 0, 25, 99999, 2)
	f("high watermark below the end keeps the active", age(1000), 0, 39, 99999, 3)
	f("KAFKA-12177: log start, then size, then time, in one pass", func(c *Config, s []stretch) {
		c.RetentionBytes, c.RetentionMs = 200, 1000
	}, 10, 40, 4001, 3)
}

func TestMustRoll(t *testing.T) {
	base := rollQuestion{size: 100, setSize: 50, base: 10, last: 20, first: 1000, largest: 1500,
		maxSegmentMs: 1000, maxSegmentSize: 150}
	f := func(want string, change func(q *rollQuestion)) {
		t.Helper()
		q := base
		change(&q)
		if got := q.mustRoll(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", func(*rollQuestion) {})
	f("segment.bytes", func(q *rollQuestion) { q.setSize = 51 })
	f("segment.ms", func(q *rollQuestion) { q.largest = 2001 })
	f("", func(q *rollQuestion) { q.largest = 2000 })
	f("", func(q *rollQuestion) { q.largest = 1 }) // a record from the past delays
	f("index full", func(q *rollQuestion) { q.indexFull = true })
	f("", func(q *rollQuestion) { q.last = 10 + math.MaxInt32 })
	f("offset range", func(q *rollQuestion) { q.last = 11 + math.MaxInt32 })

	created := time.UnixMilli(5000)
	f("segment.ms", func(q *rollQuestion) { q.first, q.created, q.now = -1, created, created.Add(1001*time.Millisecond) })
	f("", func(q *rollQuestion) { q.first, q.created, q.now = math.MaxInt64, created, created.Add(time.Second) })

	// KAFKA-6388: an empty segment is never replaced by an empty segment.
	f("", func(q *rollQuestion) { q.size, q.setSize, q.indexFull, q.largest = 0, 1000, true, 1<<40 })
	f("offset range", func(q *rollQuestion) { q.size, q.last = 0, 1<<40 })
}

// TestRetentionCrash: whatever of a deletion reaches the disk, flushed offsets are not used
// again, also when no file of the new first segment was synced before.
func TestRetentionCrash(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		fsys := vfs.NewMem()
		must(t, vfs.MkdirAll(fsys, "/data/t-0", 0o755))
		must(t, fsys.SyncDir("/data"))
		o := testOptions(fsys)
		o.Background = func(func()) {} // what a roll leaves to be synced
		o.DeleteLater = func(time.Duration, func()) {}
		l, err := Open(o)
		must(t, err)
		for range 1 + rng.IntN(3) {
			mustAppend(t, l, spec{records: 5}.build(t))
			must(t, l.Flush())
			must(t, l.Roll())
		}
		flushed := l.Offsets().End
		must(t, l.IncrementLogStart(flushed))
		left := (*vfs.Mem)(nil)
		countdown := rng.IntN(12)
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind.Changes() {
				countdown--
			}
			if countdown < 0 && left == nil {
				left = fsys.CrashClone(rng)
			}
			return nil
		})
		_, err = l.DeleteOldSegments(testTime)
		must(t, err)
		fsys.SetHook(nil)
		if left == nil {
			left = fsys.CrashClone(rng)
		}
		must(t, l.Close())
		o = testOptions(left)
		o.RecoveryPoint = flushed
		if l, err = Open(o); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if end := l.Offsets().End; end < flushed {
			t.Errorf("seed %d: log end %d after the crash, %d was flushed", seed, end, flushed)
		}
		must(t, l.Close())
	}
}
