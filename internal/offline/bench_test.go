package offline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// benchSize is what benchmarks read, in bytes. It stays in the page cache.
const benchSize = 128 << 20

// writeSegment makes the files of a partition with one segment, as a clean stop leaves them.
func writeSegment(t testing.TB, size int, shape benchShape) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "bench-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, segment.Name(0, segment.LogFile, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	value := bytes.Repeat([]byte("abcdefgh"), shape.recordSize/4)
	rng := rand.New(rand.NewPCG(1, 1))
	var index []byte
	offset, position := int64(0), 0
	for position < size {
		b := record.NewBuilder(record.BuilderOptions{Codec: shape.codec, BaseOffset: offset})
		for n := int64(0); b.Size() < shape.batch; n++ {
			key := fmt.Appendf(nil, "key-%d", offset+n)
			value := value[:shape.recordSize]
			if shape.uneven {
				value = value[:shape.recordSize*2/3+rng.IntN(shape.recordSize*2/3)]
			}
			if err := b.Append(record.Record{Offset: offset + n, Timestamp: 1700000000000 + offset, Key: key, Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		set := b.Build()
		if position > 0 {
			index = binary.BigEndian.AppendUint32(index, uint32(record.Batch(set).LastOffset()))
			index = binary.BigEndian.AppendUint32(index, uint32(position))
		}
		if _, err := f.Write(set); err != nil {
			t.Fatal(err)
		}
		offset = record.Batch(set).NextOffset()
		position += len(set)
	}
	for kind, data := range map[segment.Kind][]byte{segment.IndexFile: index, segment.TimeIndexFile: nil} {
		if err := os.WriteFile(filepath.Join(dir, segment.Name(0, kind, "")), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "leader-epoch-checkpoint"), []byte("0\n1\n0 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

type benchShape struct {
	name              string
	codec             record.Codec
	batch, recordSize int
	uneven            bool // records have between two and four thirds of the size
}

var benchShapes = []benchShape{
	{"batch=1MiB/record=1KiB", record.None, 1 << 20, 1 << 10, false},
	{"batch=1MiB/record=100B", record.None, 1 << 20, 100, false},
	{"batch=1MiB/record=67-133B", record.None, 1 << 20, 100, true},
	{"batch=16KiB/record=1KiB", record.None, 16 << 10, 1 << 10, false},
	{"batch=16KiB/record=100B", record.None, 16 << 10, 100, false},
}

// BenchmarkCheck compares a check with what none can do without: each byte read once, and summed.
// Both take turns, and what is compared is the time of the processor, so that the ratio holds on
// a machine that has other work. The target is 0.7.
func BenchmarkCheck(b *testing.B) {
	for _, shape := range benchShapes {
		b.Run(shape.name, func(b *testing.B) {
			dir := writeSegment(b, benchSize, shape)
			var floor, check time.Duration
			for b.Loop() {
				began := cputime.Used()
				b.SetBytes(readAndSum(b, dir))
				between := cputime.Used()
				r, err := Check(b.Context(), []string{dir}, CheckOptions{Workers: 1})
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
		sum = crc32.Update(sum, castagnoli, buf[:n])
		size += int64(n)
		if err == io.EOF {
			return size
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkDump(b *testing.B) {
	for _, shape := range benchShapes {
		dir := writeSegment(b, benchSize/2, shape)
		path := filepath.Join(dir, segment.Name(0, segment.LogFile, ""))
		for _, asJSON := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/json=%t", shape.name, asJSON), func(b *testing.B) {
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(info.Size())
				b.ReportAllocs()
				for b.Loop() {
					if err := Dump(b.Context(), io.Discard, []string{path}, DumpOptions{PrintDataLog: true, JSON: asJSON}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
