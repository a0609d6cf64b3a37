package commitlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
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

// Directories are renamed, as on the way out or at the end of a move, while the log is written and
// flushed; then the log is deleted. No sync looks for a file that is not there.
func TestRenameAndDeleteBesideFlushes(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			o := testOptions(fsys)
			o.Dir = filepath.Join(root, "t-0")
			o.Config.SegmentBytes = 500
			o.OnFailure = func(err error) { t.Errorf("log failed: %v", err) }
			must(t, vfs.MkdirAll(fsys, root, 0o755))
			l, err := Open(o)
			must(t, err)
			var wg sync.WaitGroup
			beside := func(f func() error) {
				wg.Go(func() {
					for range 50 { // without an end, they would leave no room for the renames
						if err := f(); err != nil && !errors.Is(err, ErrClosed) {
							t.Error(err)
							return
						}
					}
				})
			}
			set := spec{records: 2, size: 40}.build(t)
			beside(func() error {
				_, err := l.AppendAsLeader(slices.Clone(set), 0, AppendOptions{})
				return err
			})
			beside(l.Flush)
			beside(func() error { return l.FlushTo(l.Offsets().End) })
			beside(func() error {
				l.SetHighWatermark(l.Offsets().End)
				return second2(l.DeleteOldSegments(testTime))
			})
			for n := range 20 {
				must(t, l.RenameDir(filepath.Join(root, fmt.Sprint("t-", (n+1)%2))))
			}
			wg.Wait()
			beside(l.Flush)
			beside(func() error { return l.FlushTo(l.Offsets().End) })
			must(t, l.Delete())
			wg.Wait()
			if left, err := fsys.ReadDir(root); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

func second2(_ int, err error) error { return err }
