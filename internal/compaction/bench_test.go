package compaction

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A shapeOfLog says what a log for a benchmark looks like.
type benchLog struct {
	records, keys  int
	value, inBatch int // bytes of a value, records of a batch
	codec          record.Codec
}

func (o benchLog) String() string { return fmt.Sprintf("%dB-%v-%d", o.value, o.codec, o.inBatch) }

// make writes a log to the disk, all of it below the active segment.
func (o benchLog) make(b *testing.B) *commitlog.Log {
	b.Helper()
	c := commitlog.DefaultConfig()
	c.Compact, c.Delete = true, false
	l, err := commitlog.Open(commitlog.Options{FS: vfs.OS, Dir: b.TempDir() + "/bench-0", Partition: topic.Partition{Topic: "bench"}, Config: c})
	must(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, o.value)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	batch := record.NewBuilder(record.BuilderOptions{Codec: o.codec})
	for i := 0; i < o.records; {
		batch.Reset(record.BuilderOptions{Codec: o.codec})
		for k := range o.inBatch {
			must(b, batch.Append(record.Record{Offset: int64(k), Timestamp: time.Now().UnixMilli(), Key: fmt.Appendf(nil, "key-%012d", rng.IntN(o.keys)), Value: value}))
			i++
		}
		_, err := l.AppendAsLeader(batch.Build(), 0, commitlog.AppendOptions{})
		must(b, err)
	}
	l.SetHighWatermark(l.Offsets().End)
	must(b, l.Roll())
	must(b, l.Flush())
	b.Cleanup(func() { must(b, l.Close()) })
	return l
}

// BenchmarkMap builds the offset map of a log.
func BenchmarkMap(b *testing.B) {
	for _, o := range []benchLog{
		{records: 2_000_000, keys: 500_000, value: 100, inBatch: 100},
		{records: 2_000_000, keys: 2_000_000, value: 100, inBatch: 100},
		{records: 500_000, keys: 200_000, value: 100, inBatch: 1},
		{records: 300_000, keys: 200_000, value: 1024, inBatch: 16},
	} {
		b.Run(fmt.Sprintf("%v-%dkeys", o, o.keys), func(b *testing.B) {
			l := o.make(b)
			end := l.Offsets().End
			limit := readLimit(b, l)
			b.ResetTimer()
			began := cputime.Used()
			var bytes, records int64
			for b.Loop() {
				r := New(Options{MapBytes: 256 << 20, BufferBytes: 512 << 10}).newRun(b.Context(), l, Plan{FirstUncleanable: end})
				r.mapOnly(b, 256<<20)
				bytes, records = r.result.MapBytesRead, r.result.MapRecords
				r.m.close()
				r.view.Release()
			}
			report(b, cputime.Used()-began, bytes, records, limit)
		})
	}
}

func (r *run) mapOnly(b *testing.B, mapBytes int64) {
	var err error
	r.m, err = newOffsetMap(random.Host("test"), mapBytes, r.plan.FirstUncleanable-r.plan.FirstDirty, 0.9, false)
	must(b, err)
	r.reading.hasher = r.m.hasher
	must(b, r.buildMap())
}

// report gives figures in processor time: the clock says more of what else the machine does.
func report(b *testing.B, took time.Duration, bytes, records int64, limit time.Duration) {
	took /= time.Duration(b.N)
	b.ReportMetric(float64(records)/took.Seconds()/1e6, "Mrec/s")
	b.ReportMetric(float64(bytes)/took.Seconds()/1e9, "GB/s")
	b.ReportMetric(limit.Seconds()/took.Seconds(), "xlimit")
	b.ReportMetric(float64(took.Nanoseconds())/float64(records), "ns/rec")
}

// readLimit returns how long it takes to read all sealed segments and compute their checksums.
func readLimit(b *testing.B, l *commitlog.Log) time.Duration {
	best := time.Duration(1 << 62)
	v := l.CleanView()
	defer v.Release()
	for range 3 {
		began := cputime.Used()
		s := source{size: 256 << 10, large: 1 << 20}
		for _, seg := range v.Segments[:len(v.Segments)-1] {
			s.open(seg, 0)
			for {
				if _, err := s.next(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
		best = min(best, cputime.Used()-began)
	}
	return best
}

// BenchmarkRewrite rewrites a log whose map is there: all survives, a part of each batch, or
// hardly anything.
func BenchmarkRewrite(b *testing.B) {
	for _, o := range []benchLog{
		{records: 2_000_000, keys: 1 << 40, value: 100, inBatch: 100},
		{records: 2_000_000, keys: 500_000, value: 100, inBatch: 100},
		{records: 2_000_000, keys: 20_000, value: 100, inBatch: 100},
		{records: 500_000, keys: 200_000, value: 100, inBatch: 1},
		{records: 300_000, keys: 100_000, value: 1024, inBatch: 16},
		{records: 500_000, keys: 200_000, value: 100, inBatch: 100, codec: record.LZ4},
		{records: 500_000, keys: 200_000, value: 100, inBatch: 100, codec: record.Zstd},
	} {
		b.Run(fmt.Sprintf("%v-%dkeys", o, o.keys), func(b *testing.B) {
			l := o.make(b)
			end := l.Offsets().End
			limit := readLimit(b, l)
			var bytes, records int64
			var took time.Duration
			for b.Loop() {
				b.StopTimer()
				r := New(Options{MapBytes: 256 << 20, BufferBytes: 512 << 10}).newRun(b.Context(), l, Plan{FirstUncleanable: end})
				r.mapOnly(b, 256<<20)
				b.StartTimer()
				took += cputime.Of(func() { must(b, r.rewriteOnly()) })
				bytes, records = r.result.BytesRead, r.result.RecordsRead
				r.m.close()
				r.view.Release()
			}
			report(b, took, bytes, records, limit)
		})
	}
}

// rewriteOnly writes what replaces the log, and throws it away.
func (r *run) rewriteOnly() error {
	segments := r.view.Between(0, r.latest+1)
	r.out = output{log: r.log, used: r.wrote, bufSize: r.source.size}
	err := r.fillOutput(segments)
	return errors.Join(err, r.out.discard())
}
