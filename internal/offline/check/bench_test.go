package check

import (
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// BenchmarkCheck compares a check with what none can do without: each byte read once, and summed.
// Both take turns, and what is compared is the time of the processor, so that the ratio holds on
// a machine that has other work. The target is 0.7.
func BenchmarkCheck(b *testing.B) {
	for _, shape := range offlinetest.BenchShapes {
		b.Run(shape.Name, func(b *testing.B) {
			dir := offlinetest.WriteSegment(b, offlinetest.BenchSize, shape)
			var floor, check time.Duration
			for b.Loop() {
				began := cputime.Used()
				b.SetBytes(readAndSum(b, dir))
				between := cputime.Used()
				r, err := Dirs(b.Context(), []string{dir}, Options{Workers: 1})
				if err != nil || len(r.Findings) > 0 {
					b.Fatal(err, r.Findings)
				}
				floor, check = floor+between-began, check+cputime.Used()-between
			}
			b.ReportMetric(float64(floor)/float64(check), "x-read+CRC")
			b.ReportMetric(check.Seconds()*1e3/float64(b.N), "ms/check")
		})
	}
}

// readAndSum reads the segment in dir and sums it up.
func readAndSum(t testing.TB, dir string) (size int64) {
	t.Helper()
	f, err := vfs.OS.OpenFile(filepath.Join(dir, segment.Name(0, segment.LogFile, "")), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, buf := uint32(0), make([]byte, 1<<20)
	for {
		n, err := f.ReadAt(buf, size)
		sum = crc32.Update(sum, crc32c.Table, buf[:n])
		size += int64(n)
		if err == io.EOF {
			return size
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
