package commitlog

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// Readers, look-ups and flushes run beside appends, rolls and retention. Each reader sees
// whole batches, in order, below the limit it was given.
func TestReadersBesideWriter(t *testing.T) {
	const appends = 300
	o := testOptions(vfs.NewMem())
	o.Config.SegmentBytes = 2000
	o.Config.RetentionBytes = 8000
	o.Config.RetentionMs = -1
	l := openLog(t, o)
	var done atomic.Bool
	var wg sync.WaitGroup
	beside := func(f func()) {
		wg.Go(func() {
			for !done.Load() {
				f()
			}
		})
	}
	for range 3 {
		next := int64(0)
		beside(func() { next = readOnce(t, l, next) })
	}
	beside(func() {
		if _, _, err := l.Lookup(LookupRequest{testTime.UnixMilli(), ReadUncommitted}); err != nil {
			t.Error(err)
		}
	})
	beside(func() {
		if err := l.FlushTo(l.Offsets().End); err != nil {
			t.Error(err)
		}
		if _, err := l.DeleteOldSegments(testTime.Add(time.Hour)); err != nil {
			t.Error(err)
		}
	})
	set := spec{records: 3, size: 20}.build(t)
	for range appends {
		record.Batch(set).SetBaseOffset(0)
		mustAppend(t, l, set)
	}
	done.Store(true)
	wg.Wait()
	wantEnd := int64(3 * appends)
	if end := l.Offsets().End; end != wantEnd {
		t.Errorf("log end %d, want %d", end, wantEnd)
	}
}

func readOnce(t *testing.T, l *Log, next int64) int64 {
	r, err := l.Read(next, 1000, ReadUncommitted, true)
	if errors.Is(err, ErrOffsetOutOfRange) {
		return l.Offsets().LogStart
	}
	if err != nil {
		t.Error(err)
		return next
	}
	b := contents(t, r)
	for len(b) > 0 {
		batch, err := record.First(b)
		if errors.Is(err, record.ErrShort) {
			break // cut at the byte limit
		}
		if err == nil {
			err = batch.Verify()
		}
		if err != nil || batch.LastOffset() < next || batch.BaseOffset() > next || batch.NextOffset() > r.Offsets.HighWatermark {
			t.Errorf("batch [%d,%d] where %d is next, high watermark %d: %v", batch.BaseOffset(), batch.LastOffset(), next, r.Offsets.HighWatermark, err)
			break
		}
		next = batch.NextOffset()
		b = b[batch.Size():]
	}
	return next
}
