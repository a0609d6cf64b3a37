package commitlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// diskOptions are those of a log with Kafka's defaults on the real file system.
func diskOptions(t testing.TB) Options {
	o := testOptions(vfs.OS)
	o.Config = DefaultConfig()
	o.Dir = t.TempDir() + "/t-0"
	o.Now = nil
	return o
}

// An appender appends the same batch again and again: an append stamps it in place.
type appender struct {
	l   *Log
	set []byte
}

func newAppender(t testing.TB, l *Log, size int) appender {
	return appender{l, spec{size: size}.build(t)}
}

func (a appender) append(t testing.TB) {
	record.Batch(a.set).SetBaseOffset(0)
	if _, err := a.l.AppendAsLeader(a.set, 0, AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	a.l.IncrementHighWatermark(a.l.Offsets().End)
}

func TestAppendAndReadDoNotAllocate(t *testing.T) {
	l := openLog(t, diskOptions(t))
	a := newAppender(t, l, 100)
	for range 100 {
		a.append(t)
	}
	if n := testing.AllocsPerRun(1000, func() { a.append(t) }); n > 0 {
		t.Errorf("an append allocates %v times, want 0", n)
	}
	read := func() {
		r, err := l.Read(50, 4096, ReadUncommitted, true)
		if err != nil || r.Slice.Size() == 0 {
			t.Fatal(r.Slice.Size(), err)
		}
		r.Slice.Release()
	}
	if n := testing.AllocsPerRun(1000, read); n > 0 {
		t.Errorf("a read allocates %v times, want 0", n)
	}
	p := &record.Producer{ID: 7}
	idempotent := func() {
		b := record.Batch(spec{producer: p}.build(t))
		if _, err := l.AppendAsLeader(b, 0, AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		p.BaseSequence++
	}
	build := testing.AllocsPerRun(100, func() { spec{producer: p}.build(t) })
	if n := testing.AllocsPerRun(100, idempotent); n > build {
		t.Errorf("an idempotent append allocates %v times, want 0", n-build)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 16 << 10, 1000 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			o := diskOptions(b)
			o.Config.RetentionBytes = 1 << 28
			o.Config.SegmentBytes = 1 << 27
			l := openLog(b, o)
			a := newAppender(b, l, size)
			b.SetBytes(int64(len(a.set)))
			b.ReportAllocs()
			written := 0
			for b.Loop() {
				a.append(b)
				if written += len(a.set); written > 1<<28 {
					written = 0
					if _, err := l.DeleteOldSegments(testTime); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	l := openLog(b, diskOptions(b))
	a := newAppender(b, l, 100)
	for range 100_000 {
		a.append(b)
	}
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			offset := int64(0)
			for b.Loop() {
				r, err := l.Read(offset, size, ReadUncommitted, true)
				if err != nil {
					b.Fatal(err)
				}
				r.Slice.Release()
				offset = (offset + 7919) % 100_000
			}
		})
	}
}

// BenchmarkReadCommitted reads a log in which every tenth transaction was aborted.
func BenchmarkReadCommitted(b *testing.B) {
	l := openLog(b, diskOptions(b))
	for i := range 10_000 {
		p := &record.Producer{ID: int64(i % 7), BaseSequence: int32(i / 7)}
		for _, set := range [][]byte{
			spec{size: 100, producer: p, txn: true}.build(b),
			record.EndTxnMarker(record.EndTxn{Type: record.ControlType(min(i%10, 1)), ProducerID: p.ID, Timestamp: testTime.UnixMilli()}),
		} {
			if _, err := l.AppendAsLeader(set, 0, AppendOptions{Origin: record.Coordinator}); err != nil {
				b.Fatal(err)
			}
		}
	}
	l.IncrementHighWatermark(l.Offsets().End)
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.ReportAllocs()
			offset := int64(0)
			for b.Loop() {
				r, err := l.Read(offset, size, ReadCommitted, true)
				if err != nil {
					b.Fatal(err)
				}
				r.Slice.Release()
				offset = (offset + 7919) % 20_000
			}
		})
	}
}

// BenchmarkFlush has 64 producers that wait for the disk: sharing syncs against a sync for
// each append.
func BenchmarkFlush(b *testing.B) {
	const producers = 64
	group := func(l *Log, info AppendInfo) error { return l.FlushTo(info.FlushTo) }
	var one sync.Mutex
	alone := func(l *Log, _ AppendInfo) error {
		one.Lock()
		defer one.Unlock()
		f, err := os.OpenFile(l.Offsets().active().Path(".log"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	}
	for name, flush := range map[string]func(*Log, AppendInfo) error{"group": group, "alone": alone} {
		b.Run(name, func(b *testing.B) {
			o := diskOptions(b)
			o.Config.FlushMessages = 1
			l := openLog(b, o)
			set := spec{size: 100}.build(b)
			b.ReportAllocs()
			b.SetParallelism(producers)
			b.RunParallel(func(pb *testing.PB) {
				set := slices.Clone(set)
				for pb.Next() {
					record.Batch(set).SetBaseOffset(0)
					info, err := l.AppendAsLeader(set, 0, AppendOptions{})
					if err == nil {
						err = flush(l, info)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkReadOfMany finds an offset in a log of many segments, of which a hundred are in use:
// the segment, the index entry, the batch. The file system is in memory, so that this is all
// there is. The target is 1 us.
func BenchmarkReadOfMany(b *testing.B) {
	const perSegment, inUse = 20, 100
	for _, segments := range []int{inUse, 10_000} {
		b.Run(fmt.Sprintf("%d", segments), func(b *testing.B) {
			o := testOptions(vfs.NewMem())
			o.Background = func(func()) {} // nothing needs a sync
			l, err := Open(o)
			must(b, err)
			a := newAppender(b, l, 100)
			for range segments {
				for range perSegment {
					a.append(b)
				}
				must(b, l.Roll())
			}
			offsets := make([]int64, 1000)
			for i := range offsets {
				offsets[i] = int64(i%inUse*segments/inUse*perSegment + rand.IntN(perSegment))
			}
			b.ReportAllocs()
			began := cputime.Used()
			for i := 0; b.Loop(); i++ {
				r, err := l.Read(offsets[i%len(offsets)], 1<<10, ReadUncommitted, true)
				if err != nil {
					b.Fatal(err)
				}
				r.Slice.Release()
			}
			b.ReportMetric(float64((cputime.Used()-began).Nanoseconds())/float64(b.N), "cpu-ns")
		})
	}
}
