package compaction

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

// Reports about compaction, by Kafka's numbers (see knownbugs_test.go of package commitlog for
// those about logs).

// All records of a producer's last batch are superseded: its header stays, and a retry is still
// known after a restart, and after a cleaning without the snapshot.
func TestKAFKA5490LastBatchOfAProducerStays(t *testing.T) {
	g := newLedger(t)
	retry := g.batch(kind{producer: 9, epoch: 1}, "a=1", "b=1")
	g.put(kind{producer: 9, epoch: 1}, "a=1", "b=1")
	g.put(kind{}, "a=2", "b=2")
	g.roll()
	g.clean()
	g.wantBatches("0-1:0 2-3:2 |")
	for range 2 {
		g.reopen()
		info, err := g.log.AppendAsLeader(record.Batch(retry), 0, commitlog.AppendOptions{})
		if err != nil || !info.Duplicate || info.FirstOffset != 0 {
			t.Errorf("retry: %+v, %v", info, err)
		}
		g.again()
	}
}

// The same sequence comes again under another epoch: what counts is the offset of the last
// batch, not its sequence.
func TestKAFKA8335SameSequenceOfAnotherEpoch(t *testing.T) {
	g := newLedger(t)
	g.put(kind{producer: 9, epoch: 0}, "a=1")
	g.sequences[9] = 0
	g.put(kind{producer: 9, epoch: 1}, "a=2")
	g.put(kind{}, "a=3")
	g.roll()
	g.clean()
	g.wantBatches("1-1:0 2-2:1 |")
}

// Keys of users that have the bytes of a marker's key do not supersede markers.
func TestKAFKA14055KeysLikeMarkers(t *testing.T) {
	g := newLedger(t)
	g.put(kind{producer: 9, txn: true}, "a=1")
	g.end(9, 0, record.ControlCommit)
	g.put(kind{producer: 8, txn: true}, "b=1")
	g.end(8, 0, record.ControlAbort)
	g.put(kind{}, string(record.ControlKey(record.ControlCommit))+"=x", string(record.ControlKey(record.ControlAbort))+"=y")
	g.put(kind{producer: 8}, "z=1")
	g.roll()
	g.clean()
	g.wantBatches("0-0:1 1-1:1c 3-3:1c 4-5:2 6-6:1 |")
}

// Nothing at or above the high watermark is cleaned, nor does it supersede anything, also if a
// plan says so that was made when the high watermark was higher.
func TestKAFKA13194HighWatermarkInASealedSegment(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1")
	g.roll()
	g.put(kind{}, "a=2")
	g.roll()
	p := g.plan()
	g.log.SetHighWatermark(1)
	if _, err := New(g.options).Clean(t.Context(), g.log, p); !errors.Is(err, commitlog.ErrSegmentsChanged) {
		t.Errorf("got %v", err)
	}
	g.clean()
	g.wantBatches("0-0:1 | 1-1:1 |")
}

// A batch is larger than the buffers and than max.message.bytes is today.
func TestKAFKA6834LargeBatch(t *testing.T) {
	g := newLedger(t)
	large := strings.Repeat("x", 100_000)
	g.put(kind{}, "a=1", "b="+large)
	g.put(kind{}, "c="+large)
	g.config.MaxMessageBytes = 1000
	g.log.SetConfig(g.config)
	g.options.BufferBytes, g.options.MaxMessageBytes = 2000, 1000
	g.put(kind{}, "a=2")
	g.roll()
	g.clean()
	g.wantBatches("0-1:1 2-2:1 3-3:1 |")
}

// Chunks that have nothing but batches of aborted transactions are no reason to stop.
func TestKAFKA6854OnlyDiscardedBatches(t *testing.T) {
	g := newLedger(t)
	g.options.BufferBytes = 1
	for range 20 {
		g.put(kind{producer: 9, txn: true}, "a="+strings.Repeat("x", 500))
	}
	g.end(9, 0, record.ControlAbort)
	g.put(kind{}, "b=1")
	g.roll()
	if r := g.clean(); r.Aborted != 20 {
		t.Errorf("result %+v", r)
	}
	g.wantBatches("19-19:0 20-20:1c 21-21:1 |")
}

// The log start has moved past whole segments and into one: those below go, and the cleaning
// begins at the start.
func TestKAFKA7400LogStartBeyondSegments(t *testing.T) {
	g := newLedger(t)
	for range 3 {
		g.put(kind{}, "a=1", "b=1")
		g.roll()
	}
	must(t, g.log.IncrementLogStart(3))
	if n, err := g.log.DeleteOldSegments(g.now); n != 1 || err != nil {
		t.Errorf("%d segments deleted, %v", n, err)
	}
	g.clean()
	g.wantRecords("4:a=1 5:b=1")
	if o := g.log.Offsets(); o.LogStart != 3 {
		t.Errorf("log start %d", o.LogStart)
	}
}

// Offsets have holes, also at the ends of segments: a cleaning ends where the next begins.
func TestKAFKA8764Holes(t *testing.T) {
	g := newLedger(t)
	for _, base := range []int64{10, 20, 30} {
		b := record.Batch(g.batch(kind{}, "a=1", "b=1"))
		b.SetBaseOffset(base)
		_, err := g.log.AppendAsFollower(b, 0)
		must(t, err)
		g.log.SetHighWatermark(g.log.Offsets().End)
		g.roll()
	}
	if r := g.clean(); r.EndOffset != g.plan().FirstUncleanable {
		t.Errorf("end %d, want %d", r.EndOffset, g.plan().FirstUncleanable)
	}
	g.wantRecords("30:a=1 31:b=1")
}

// Segments that are empty after a cleaning join others, however far their offsets are apart,
// and segments that are not do so only where their offsets fit.
func TestKAFKA12889EmptySegmentsMerge(t *testing.T) {
	g := newLedger(t)
	far := int64(0)
	for range 3 {
		b := record.Batch(g.batch(kind{}, "a=1"))
		b.SetBaseOffset(far)
		_, err := g.log.AppendAsFollower(b, 0)
		must(t, err)
		g.log.SetHighWatermark(g.log.Offsets().End)
		far += math.MaxInt32 + 10
	}
	g.roll()
	g.clean()
	g.again()
	if n := g.log.NumSegments(); n != 3 {
		t.Errorf("%d segments, want one that is empty, that with the record, and the active one: %s", n, g.batches())
	}
	g.reopen()
	g.wantRecords("4294967314:a=1")
}

// Small segments whose offsets are too far apart for the indexes of one stay apart.
func TestKAFKA5413GroupsFitTheIndex(t *testing.T) {
	c := commitlog.DefaultConfig()
	f := func(want int, segments ...weight) {
		t.Helper()
		if got := group(segments, &c); got != want {
			t.Errorf("group of %d, want %d: %+v", got, want, segments)
		}
	}
	f(2, weight{base: 0, next: 10, bytes: 1}, weight{base: 10, next: math.MaxInt32 + 1, bytes: 1})
	f(1, weight{base: 0, next: 10, bytes: 1}, weight{base: 10, next: math.MaxInt32 + 2, bytes: 1})
	f(2, weight{base: 0, next: 10, bytes: 1}, weight{base: 10, next: math.MaxInt32 + 2}, weight{base: math.MaxInt32 + 2, next: math.MaxInt32 + 3, bytes: 1})
	f(1, weight{bytes: 1 << 29}, weight{bytes: 1<<29 + 1})
	f(2, weight{bytes: 1 << 29}, weight{bytes: 1 << 29})
	f(1, weight{offsets: 6 << 20}, weight{offsets: 5 << 20})
	f(1, weight{times: 6 << 20}, weight{times: 5 << 20})
	f(1, weight{damaged: true}, weight{})
	f(1, weight{}, weight{damaged: true})
}

// A tombstone that is old when it is cleaned the first time lives for delete.retention.ms from
// then on.
func TestKAFKA4529OldTombstone(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1")
	g.put(kind{}, "a")
	g.roll()
	g.now = g.now.Add(1000 * time.Hour)
	g.clean()
	g.wantRecords("1:a")
	g.now = g.now.Add(ledgerDelay * time.Millisecond)
	g.again()
	g.wantBatches("1-1:0 |") // the end of the range
}

// Compressed sets of old formats keep format, codec and what they lose nothing of.
func TestKAFKA4298OldFormatsStay(t *testing.T) {
	for magic := range int8(2) {
		g := newLedger(t)
		set := func(first int64, codec record.Codec, records ...string) {
			b, err := record.NewSetBuilder(record.SetOptions{Magic: magic, Codec: codec})
			must(t, err)
			for i, s := range records {
				key, value, _ := strings.Cut(s, "=")
				must(t, b.Append(record.Record{Offset: first + int64(i), Timestamp: 5 + int64(i), Key: []byte(key), Value: []byte(value)}))
			}
			_, err = g.log.AppendAsFollower(b.Build(), 0)
			must(t, err)
			g.log.SetHighWatermark(g.log.Offsets().End)
		}
		set(0, record.Gzip, "a=1", "b=1", "c=1")
		set(3, record.Snappy, "d=1", "e=1")
		set(5, record.None, "a=2", "f=1")
		set(7, record.LZ4, "c=2", "g=1")
		g.roll()
		g.clean()
		g.wantRecords("1:b=1 3:d=1 4:e=1 5:a=2 6:f=1 7:c=2 8:g=1")
		var codecs []record.Codec
		for l, err := range g.log.Offsets().CleanSegments()[0].Batches(0, math.MaxInt64) {
			must(t, err)
			must(t, l.Batch.Verify())
			if l.Batch.Magic() != magic {
				t.Errorf("magic %d, want %d", l.Batch.Magic(), magic)
			}
			codecs = append(codecs, l.Batch.Codec())
		}
		if len(codecs) != 5 || codecs[0] != record.Gzip || codecs[1] != record.Snappy || codecs[2] != record.None || codecs[4] != record.LZ4 {
			t.Errorf("codecs %v", codecs)
		}
	}
}
