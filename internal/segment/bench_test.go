package segment

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"100B", 100 - record.HeaderSize - 8}, {"16KiB", 16 << 10}, {"1MiB", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) { benchmarkAppend(b, c.size) })
	}
}

func benchmarkAppend(b *testing.B, size int) {
	set := record.Batch(batch(b, 0, 1, t0, size))
	s := benchCreate(b)
	next := int64(0)
	b.SetBytes(int64(len(set)))
	b.ReportAllocs()
	for b.Loop() {
		if s.Size() > 64<<20 { // stay in the page cache, and in place
			b.StopTimer()
			_, err := s.TruncateTo(0)
			must(b, err)
			next = 0
			b.StartTimer()
		}
		set.SetBaseOffset(next)
		next++
		must(b, s.Append(set))
	}
}

func benchCreate(b *testing.B) *Segment {
	b.Helper()
	s, err := Create(vfs.OS, b.TempDir(), 0, Config{IndexIntervalBytes: 4096}, time.Now())
	must(b, err)
	b.Cleanup(func() { must(b, s.Remove()) })
	return s
}

// benchRecords is how many records benchFill appends, in batches of 2 KiB with 10 records, for
// some 10,000 index entries.
const benchRecords = 300_000

func benchFill(b *testing.B) *Segment {
	b.Helper()
	s := benchCreate(b)
	for o := int64(0); o < benchRecords; o += 10 {
		must(b, s.Append(batch(b, o, 10, t0+o, 190)))
	}
	if n := len(s.idx.Load().offsets.Load().view()); n < 9_000 || n > 16_000 {
		b.Fatalf("%d index entries", n)
	}
	return s
}

func BenchmarkRead(b *testing.B) {
	s := benchFill(b)
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		sl, err := s.Read(rng.Int64N(benchRecords), 1<<20, s.Size(), WholeFirst)
		must(b, err)
		sl.Release()
	}
}

func BenchmarkTranslate(b *testing.B) {
	s := benchFill(b)
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := s.Translate(rng.Int64N(benchRecords), 0); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkOffsetByTimestamp(b *testing.B) {
	s := benchFill(b)
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.OffsetByTimestamp(t0+rng.Int64N(benchRecords), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecover compares recovery with what none can do without: each byte read once, and a
// checksum. Both take turns, and what is compared is the time of the processor, so that the ratio
// holds on a machine that has other work. The target is 0.7.
func BenchmarkRecover(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch int // bytes, in records of 190
	}{{"2KiB", 2 << 10}, {"16KiB", 16 << 10}, {"1MiB", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			const size = 64 << 20
			s := benchCreate(b)
			records := c.batch / 200
			for o := int64(0); s.Size() < size; o += int64(records) {
				must(b, s.Append(batch(b, o, records, t0+o, 190)))
			}
			var floor, used time.Duration
			for b.Loop() {
				floor += cputime.Of(func() { readAndSum(b, s) })
				used += cputime.Of(func() {
					cut, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
					if cut != 0 || err != nil {
						b.Fatal(cut, err)
					}
				})
			}
			b.ReportMetric(float64(floor)/float64(used), "x-read+CRC")
			b.ReportMetric(float64(s.Size())*float64(b.N)/used.Seconds()/1e6, "MB/cpu-s")
		})
	}
}

// readAndSum reads a segment in chunks and sums them up.
func readAndSum(b *testing.B, s *Segment) {
	chunk := make([]byte, chunkSize)
	f, err := s.log.acquire()
	must(b, err)
	defer f.release()
	for at := int64(0); at < s.Size(); at += chunkSize {
		n, _ := f.ReadAt(chunk, at)
		sink += crc32c.Checksum(chunk[:n])
	}
}

var sink uint32
