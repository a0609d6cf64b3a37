package commitlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A model is what a log should be: the records by offset.
type model struct {
	t        *rapid.T
	fs       *vfs.Mem
	log      *Log
	config   Config
	records  map[int64]string
	times    map[int64]int64 // of records, also of some that are gone
	start    int64
	end      int64
	nextName int
}

// TestModel does random things to a log and to a map of records beside it, with clean and
// unclean reopening, and compares after each.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := DefaultConfig()
		c.SegmentBytes = rapid.IntRange(600, 3000).Draw(rt, "segment bytes")
		c.IndexIntervalBytes = rapid.IntRange(0, 500).Draw(rt, "index interval")
		c.Preallocate = rapid.Bool().Draw(rt, "preallocate")
		c.RetentionMs = -1
		m := &model{t: rt, fs: vfs.NewMem(), config: c, records: map[int64]string{}, times: map[int64]int64{}}
		m.open(0, true)
		rt.Repeat(map[string]func(*rapid.T){
			"append":     m.append,
			"replicate":  m.replicate,
			"truncate":   m.truncate,
			"roll":       func(*rapid.T) { m.must(m.log.Roll()) },
			"flush":      func(*rapid.T) { m.must(m.log.Flush()) },
			"log start":  m.raiseStart,
			"retention":  m.retain,
			"lookup":     m.lookup,
			"reopen":     m.reopen,
			"kill":       func(*rapid.T) { m.open(m.log.RecoveryPoint(), false) },
			"start over": m.startOver,
			"":           func(*rapid.T) { m.compare() },
		})
	})
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) open(point int64, clean bool) {
	if m.log != nil {
		m.log.background.Wait()
	}
	o := testOptions(m.fs)
	o.Config, o.RecoveryPoint, o.LogStartOffset, o.Clean = m.config, point, m.start, clean
	l, err := Open(o)
	m.must(err)
	m.log = l
	if end := l.Offsets().End; end != m.end {
		// An end inside of a batch, or behind a gap, is not known from the files.
		for offset := range m.records {
			if offset >= end {
				m.t.Fatalf("opened: log end %d, want %d", end, m.end)
			}
		}
		m.end = end
		m.start = l.Offsets().LogStart
	}
	l.SetHighWatermark(m.end)
}

// batch builds a batch whose records have times in no order.
func (m *model) batch(t *rapid.T) (b record.Batch, values []string, times []int64) {
	builder := record.NewBuilder(record.BuilderOptions{
		Codec: rapid.SampledFrom([]record.Codec{record.None, record.LZ4, record.Zstd}).Draw(t, "codec"), LeaderEpoch: new(int32(0)),
	})
	for i := range int64(rapid.IntRange(1, 5).Draw(t, "records")) {
		m.nextName++
		values = append(values, fmt.Sprint("v", m.nextName))
		value := append([]byte(values[i]), make([]byte, rapid.IntRange(0, 60).Draw(t, "size"))...)
		times = append(times, testTime.UnixMilli()+rapid.Int64Range(-50, 50).Draw(t, "time"))
		m.must(builder.Append(record.Record{Offset: i, Timestamp: times[i], Value: value}))
	}
	return builder.Build(), values, times
}

func (m *model) append(t *rapid.T) {
	b, values, times := m.batch(t)
	info, err := m.log.AppendAsLeader(b, 0, AppendOptions{})
	m.must(err)
	m.appended(info, m.end, values, times)
}

func (m *model) replicate(t *rapid.T) {
	b, values, times := m.batch(t)
	first := m.end + rapid.Int64Range(0, 20).Draw(t, "gap")
	b.SetBaseOffset(first)
	info, err := m.log.AppendAsFollower(b, 0)
	m.must(err)
	m.appended(info, first, values, times)
}

func (m *model) appended(info AppendInfo, first int64, values []string, times []int64) {
	if info.FirstOffset != first || info.LastOffset != first+int64(len(values))-1 {
		m.t.Fatalf("append got [%d,%d], want %d records at %d", info.FirstOffset, info.LastOffset, len(values), first)
	}
	for i, v := range values {
		m.records[first+int64(i)], m.times[first+int64(i)] = v, times[i]
	}
	m.end = info.LastOffset + 1
	m.log.SetHighWatermark(m.end)
}

func (m *model) truncate(t *rapid.T) {
	to := rapid.Int64Range(m.start, m.end).Draw(t, "to")
	m.must(m.log.TruncateTo(to))
	for offset := range m.records {
		if offset >= to {
			delete(m.records, offset)
		}
	}
	// The batch that holds the offset goes as a whole.
	kept, _ := m.read(m.log.Offsets().LogStart)
	for offset := range m.records {
		if kept[offset] == "" && offset >= m.start && offset >= to-5 {
			delete(m.records, offset)
		}
	}
	m.end = to
	m.log.SetHighWatermark(m.end)
}

func (m *model) raiseStart(t *rapid.T) {
	m.start = rapid.Int64Range(m.start, m.end).Draw(t, "to")
	m.must(m.log.IncrementLogStart(m.start))
}

// retain lets size, age and log start delete, each perhaps. What is left is what the log says, and
// no rule would delete more of it.
func (m *model) retain(t *rapid.T) {
	m.config.RetentionBytes = rapid.SampledFrom([]int64{-1, 0, 500, 2000}).Draw(t, "retention bytes")
	m.config.RetentionMs = rapid.SampledFrom([]int64{-1, 100}).Draw(t, "retention ms")
	m.log.SetConfig(m.config)
	now := testTime.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "now")) * time.Millisecond)
	_, err := m.log.DeleteOldSegments(now)
	m.must(err)
	start := m.log.Offsets().LogStart
	if start < m.start || start > m.end {
		m.t.Fatalf("retention moves the log start from %d to %d, end %d", m.start, start, m.end)
	}
	m.start = start
	segments := m.log.Segments()
	if rest := m.log.Size() - segments[0].Size; len(segments) > 1 && m.config.RetentionBytes >= 0 && rest >= m.config.RetentionBytes {
		m.t.Fatalf("%d bytes are left in %d segments, the first has %d: retention.bytes=%d", m.log.Size(), len(segments), segments[0].Size, m.config.RetentionBytes)
	}
	if n, err := m.log.DeleteOldSegments(now); n > 0 || err != nil {
		m.t.Fatalf("a second pass deletes %d, %v", n, err)
	}
	m.config.RetentionBytes, m.config.RetentionMs = -1, -1
	m.log.SetConfig(m.config)
}

// lookup asks for a time, and for the largest one.
func (m *model) lookup(t *rapid.T) {
	asked := testTime.UnixMilli() + rapid.Int64Range(-55, 55).Draw(t, "time")
	first, largest := int64(-1), int64(-1)
	for _, offset := range slices.Sorted(maps.Keys(m.records)) {
		if offset < m.start {
			continue
		}
		if first < 0 && m.times[offset] >= asked {
			first = offset
		}
		if largest < 0 || m.times[offset] > m.times[largest] {
			largest = offset
		}
	}
	got, ok, err := m.log.Lookup(LookupRequest{asked, ReadUncommitted})
	m.must(err)
	if !ok {
		got = segment.TimestampOffset{Offset: -1}
	}
	if got.Offset != first || first >= 0 && got.Timestamp != m.times[first] {
		m.t.Fatalf("lookup(%d): got %+v, want offset %d", asked, got, first)
	}
	// Below the log start there may be a larger one, in the first segment.
	got, ok, err = m.log.Lookup(LookupRequest{MaxTimestamp, ReadUncommitted})
	m.must(err)
	if ok && got.Offset >= m.start && got.Offset != largest || !ok && largest >= 0 {
		m.t.Fatalf("lookup(max): got %+v, %v, want offset %d", got, ok, largest)
	}
}

func (m *model) reopen(*rapid.T) {
	m.must(m.log.Close())
	m.open(m.log.RecoveryPoint(), true)
}

func (m *model) startOver(t *rapid.T) {
	m.end += rapid.Int64Range(0, 10).Draw(t, "ahead")
	m.start = m.end
	m.must(m.log.TruncateFullyAndStartAt(m.end))
	clear(m.records)
}

// read returns the records from an offset on, in pieces, and whether their offsets increased.
func (m *model) read(from int64) (got map[int64]string, ordered bool) {
	got, ordered = map[int64]string{}, true
	for next := from; ; {
		r, err := m.log.Read(next, 400, ReadUncommitted, segment.WholeFirst)
		if corrupt, ok := errors.AsType[*segment.CorruptError](err); ok && corrupt.End > next {
			next = corrupt.End // what a truncation into a batch took with it, or a gap
			continue
		}
		if errors.Is(err, ErrOffsetOutOfRange) {
			m.t.Fatalf("read at %d: %v, %+v", next, err, r.Offsets)
		}
		m.must(err)
		b := make([]byte, r.Slice.Size())
		_, _ = r.Slice.ReadAt(b, 0)
		r.Slice.Release()
		if len(b) == 0 {
			return got, ordered
		}
		for batch, err := range record.Batches(b) {
			if err != nil {
				break // cut by the limit
			}
			for rec, err := range batch.Records() {
				m.must(err)
				ordered = ordered && got[rec.Offset] == ""
				if rec.Offset >= from {
					got[rec.Offset] = string(rec.Value[:slices.Index(append(rec.Value, 0), 0)])
				}
			}
			next = batch.NextOffset()
		}
	}
}

func (m *model) compare() {
	o := m.log.Offsets()
	if o.LogStart != m.start || o.End != m.end || o.HighWatermark != m.end {
		m.t.Fatalf("log [%d,%d), high watermark %d, want [%d,%d)", o.LogStart, o.End, o.HighWatermark, m.start, m.end)
	}
	got, ordered := m.read(m.start)
	want := 0
	for offset, v := range m.records {
		if offset < m.start {
			continue
		}
		want++
		if got[offset] != v {
			m.t.Fatalf("offset %d: got %q, want %q", offset, got[offset], v)
		}
	}
	if len(got) != want || !ordered {
		m.t.Fatalf("%d records, ordered: %v, want %d", len(got), ordered, want)
	}
	m.must(m.log.Check())
}
