package compaction

import (
	"errors"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

func TestCleanKeepsTheLastOfEachKey(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1", "c=1")
	g.put(kind{}, "a=2", "=x")
	g.roll()
	g.put(kind{}, "b=2", "d=1")
	g.roll()
	g.put(kind{}, "c=2") // active: not looked at
	r := g.clean()
	g.wantRecords("2:c=1 3:a=2 5:b=2 6:d=1 7:c=2")
	g.wantBatches("0-2:1 3-4:1 5-6:2 | 7-7:1")
	if r.Superseded != 2 || r.Keyless != 1 || r.RecordsRead != 7 || r.RecordsWritten != 4 || r.MapEntries != 4 || r.Segments != 2 || r.Groups != 1 {
		t.Errorf("result %+v", r)
	}
	g.reopen()
	g.wantRecords("2:c=1 3:a=2 5:b=2 6:d=1 7:c=2")
}

// Batches that lose nothing are copied as they are, and so are those behind the map's end.
func TestCleanCopiesWhole(t *testing.T) {
	g := newLedger(t)
	for range 100 {
		g.put(kind{codec: record.Zstd}, "a=1", "b=1")
	}
	g.put(kind{codec: record.Zstd}, "c=1", "d=1")
	g.roll()
	if r := g.clean(); r.BatchesCopied != 2 || r.BatchesRead != 101 {
		t.Errorf("result %+v", r)
	}
	g.wantBatches("198-199:2 200-201:2 |")
}

// A tombstone lives for delete.retention.ms after its first cleaning (KIP-534).
func TestCleanTombstone(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1")
	g.put(kind{}, "a", "c=1")
	g.roll()
	g.put(kind{}, "x=1")
	g.now = g.now.Add(time.Hour)
	g.clean()
	g.wantRecords("1:b=1 2:a 3:c=1 4:x=1")
	g.wantBatches("0-1:1 2-3:2h | 4-4:1")
	g.now = g.now.Add(ledgerDelay*time.Millisecond - 1)
	g.again()
	g.wantRecords("1:b=1 2:a 3:c=1 4:x=1")
	g.now = g.now.Add(time.Millisecond)
	if r := g.again(); r.Tombstones != 1 {
		t.Errorf("result %+v", r)
	}
	g.wantRecords("1:b=1 3:c=1 4:x=1")
	g.wantBatches("0-1:1 2-3:1h | 4-4:1")
}

// Records of aborted transactions go at once. Markers go when nothing is left of their
// transaction and their horizon is over, the third time at the earliest.
func TestCleanTransactions(t *testing.T) {
	g := newLedger(t)
	g.put(kind{producer: 1, txn: true}, "a=1", "b=1")
	g.put(kind{}, "c=1")
	g.end(1, 0, record.ControlAbort)
	g.put(kind{producer: 2, txn: true}, "a=2")
	g.end(2, 0, record.ControlCommit)
	g.put(kind{}, "a=3")
	g.put(kind{producer: 1}, "z=1") // so that the batches above are not the last of their producers
	g.put(kind{producer: 2}, "z=2")
	g.roll()
	g.clean()
	g.wantRecords("2:c=1 6:a=3 8:z=2")
	g.wantBatches("2-2:1 3-3:1c 5-5:1c 6-6:1 7-7:0 8-8:1 |") // 7: the last one of producer 1
	if list, _, err := g.log.Offsets().CleanSegments()[0].Aborted(0, 9); err != nil || len(list) != 1 {
		t.Errorf("aborted %v, %v", list, err)
	}
	g.again()
	g.wantBatches("2-2:1 3-3:1ch 5-5:1ch 6-6:1 7-7:0 8-8:1 |")
	if list, _, _ := g.log.Offsets().CleanSegments()[0].Aborted(0, 9); len(list) != 0 {
		t.Errorf("aborted %v", list)
	}
	g.now = g.now.Add(ledgerDelay * time.Millisecond)
	if r := g.again(); r.Markers != 2 {
		t.Errorf("result %+v", r)
	}
	g.wantBatches("2-2:1 6-6:1 7-7:0 8-8:1 |")
}

// The last batch of the range stays, if only its header, so that the offset is not lost.
func TestCleanKeepsTheEnd(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1")
	g.put(kind{}, "=x", "=y")
	g.roll()
	g.clean()
	g.wantBatches("0-0:1 1-2:0 |")
	g.put(kind{}, "b=1")
	g.roll()
	g.clean()
	g.wantBatches("0-0:1 3-3:1 |")
}

func TestCleanInRounds(t *testing.T) {
	g := newLedger(t)
	g.options.MapBytes = 4 * slotSize
	g.put(kind{}, "a=1", "b=1", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1") // more keys than the map has room for
	g.put(kind{}, "a=2", "b=2")
	g.roll()
	rounds := 0
	for g.plan().FirstDirty < g.plan().FirstUncleanable {
		g.clean()
		rounds++
	}
	g.wantRecords("2:c=1 3:d=1 4:e=1 5:f=1 6:g=1 7:h=1 8:a=2 9:b=2")
	if rounds != 4 {
		t.Errorf("%d rounds, want 4", rounds)
	}
}

// A full map ends the round, also if segments behind have keys that are in it.
func TestCleanInRoundsOverSegments(t *testing.T) {
	g := newLedger(t)
	g.options.MapBytes = 4 * slotSize
	g.put(kind{}, "a=1", "b=1", "c=1", "d=1", "e=1")
	g.roll()
	g.put(kind{}, "a=2", "b=2")
	g.roll()
	if r := g.clean(); r.EndOffset != 3 || r.MapEntries != 3 {
		t.Errorf("the map ends at %d with %d keys", r.EndOffset, r.MapEntries)
	}
	g.wantRecords("0:a=1 1:b=1 2:c=1 3:d=1 4:e=1 5:a=2 6:b=2")
}

// A plan is refused if its end is no segment's, not decided, or not behind its beginning.
func TestCleanRefusesPlans(t *testing.T) {
	f := func(dirty, uncleanable int64, want error) {
		t.Helper()
		g := newLedger(t)
		g.put(kind{}, "a=1", "a=2") // 0
		g.roll()
		g.put(kind{}, "a=3", "a=4") // 2
		g.roll()
		g.put(kind{producer: 1, txn: true}, "b=1") // 4
		g.roll()
		g.put(kind{}, "c=1") // 5
		if _, err := New(g.options).Clean(t.Context(), g.log, Plan{FirstDirty: dirty, FirstUncleanable: uncleanable}); !errors.Is(err, want) {
			t.Errorf("[%d,%d): got %v, want %v", dirty, uncleanable, err, want)
		}
	}
	f(0, 2, nil)
	f(0, 4, nil)
	f(3, 4, nil)
	f(0, 3, commitlog.ErrSegmentsChanged)
	f(0, 5, commitlog.ErrSegmentsChanged)
	f(2, 2, commitlog.ErrSegmentsChanged)
	f(4, 2, commitlog.ErrSegmentsChanged)
}

// Which record of a key survives is for the topic to say (KIP-280).
func TestCleanStrategies(t *testing.T) {
	f := func(strategy commitlog.CompactionStrategy, want string) {
		t.Helper()
		g := newLedger(t, func(c *commitlog.Config) { c.CompactionStrategy, c.CompactionHeader = strategy, "v" })
		g.put(kind{header: "v=\x00\x00\x00\x00\x00\x00\x00\x09", time: 500}, "a=1", "b=1")
		g.roll()
		g.clean()
		g.put(kind{header: "v=\x00\x00\x00\x00\x00\x00\x00\x05", time: 900}, "a=2", "c=1")
		g.put(kind{header: "v=bad", time: 100}, "b=2", "d=1")
		g.put(kind{time: 100}, "d=2")
		g.roll()
		g.clean()
		g.wantRecords(want)
	}
	f(commitlog.CompactByOffset, "2:a=2 3:c=1 4:b=2 6:d=2")
	f(commitlog.CompactByTimestamp, "1:b=1 2:a=2 3:c=1 5:d=1")
	f(commitlog.CompactByHeader, "0:a=1 1:b=1 3:c=1 6:d=2")
}

// The time of the log decides where the log has the time of its appends.
func TestCleanByAppendTime(t *testing.T) {
	g := newLedger(t, func(c *commitlog.Config) {
		c.CompactionStrategy, c.TimestampType = commitlog.CompactByTimestamp, record.LogAppendTime
	})
	g.put(kind{time: 900}, "a=1", "b=1")
	g.now = g.now.Add(time.Second)
	g.put(kind{time: 100}, "a=2")
	g.roll()
	g.clean()
	g.wantRecords("1:b=1 2:a=2")
}

// Where a range of dirty offsets begins inside of a segment, what is dirty in it is no older version, least
// of all an aborted one.
func TestCleanStrategyInsideASegment(t *testing.T) {
	g := newLedger(t, func(c *commitlog.Config) { c.CompactionStrategy = commitlog.CompactByTimestamp })
	g.put(kind{time: 500}, "a=1", "b=1")                  // 0
	g.put(kind{time: 400}, "a=2", "b=2")                  // 2
	g.put(kind{time: 900, producer: 1, txn: true}, "a=3") // 4
	g.end(1, 0, record.ControlAbort)                      // 5
	g.roll()
	g.cleaned = 2
	g.clean()
	if got := join(consume(t, g.log, 0, commitlog.ReadCommitted)); got != "0:a=1 1:b=1" {
		t.Errorf("got %s", got)
	}
}
