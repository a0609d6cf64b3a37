package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A model is what a log should be: the records by offset.
type model struct {
	t        *rapid.T
	fs       *vfs.Mem
	log      *Log
	config   Config
	records  map[int64]string
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
		m := &model{t: rt, fs: vfs.NewMem(), config: c, records: map[int64]string{}}
		m.open(0, true)
		rt.Repeat(map[string]func(*rapid.T){
			"append":     m.append,
			"replicate":  m.replicate,
			"truncate":   m.truncate,
			"roll":       func(*rapid.T) { m.must(m.log.Roll()) },
			"flush":      func(*rapid.T) { m.must(m.log.Flush()) },
			"log start":  m.raiseStart,
			"retention":  func(*rapid.T) { m.must(second2(m.log.DeleteOldSegments(testTime))) },
			"reopen":     m.reopen,
			"kill":       func(*rapid.T) { m.open(m.log.RecoveryPoint(), false) },
			"start over": m.startOver,
			"":           func(*rapid.T) { m.compare() },
		})
	})
}

func second2(_ int, err error) error { return err }

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

func (m *model) batch(t *rapid.T) (record.Batch, []string) {
	b := record.NewBuilder(record.BuilderOptions{
		Codec: rapid.SampledFrom([]record.Codec{record.None, record.LZ4, record.Zstd}).Draw(t, "codec"), LeaderEpoch: 0,
	})
	var values []string
	for i := range int64(rapid.IntRange(1, 5).Draw(t, "records")) {
		m.nextName++
		values = append(values, fmt.Sprint("v", m.nextName))
		value := append([]byte(values[i]), make([]byte, rapid.IntRange(0, 60).Draw(t, "size"))...)
		m.must(b.Append(record.Record{Offset: i, Timestamp: testTime.UnixMilli() + m.end + i, Value: value}))
	}
	return b.Build(), values
}

func (m *model) append(t *rapid.T) {
	b, values := m.batch(t)
	info, err := m.log.AppendAsLeader(b, 0, AppendOptions{})
	m.must(err)
	m.appended(info, m.end, values)
}

func (m *model) replicate(t *rapid.T) {
	b, values := m.batch(t)
	first := m.end + rapid.Int64Range(0, 20).Draw(t, "gap")
	b.SetBaseOffset(first)
	info, err := m.log.AppendAsFollower(b, 0)
	m.must(err)
	m.appended(info, first, values)
}

func (m *model) appended(info AppendInfo, first int64, values []string) {
	if info.FirstOffset != first || info.LastOffset != first+int64(len(values))-1 {
		m.t.Fatalf("append got [%d,%d], want %d records at %d", info.FirstOffset, info.LastOffset, len(values), first)
	}
	for i, v := range values {
		m.records[first+int64(i)] = v
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
	r, err := m.log.Read(m.log.Offsets().LogStart, 1<<30, ReadLogEnd, true)
	m.must(err)
	r.Slice.Release()
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
		r, err := m.log.Read(next, 400, ReadUncommitted, true)
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
