package offlinetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// BenchSize is what benchmarks read, in bytes. It stays in the page cache.
const BenchSize = 128 << 20

// WriteSegment makes the files of a partition with one segment, as a clean stop leaves them.
func WriteSegment(t testing.TB, size int, shape BenchShape) (dir string) {
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
	value := bytes.Repeat([]byte("abcdefgh"), shape.RecordSize/4)
	rng := rand.New(rand.NewPCG(1, 1))
	var index []byte
	offset, position := int64(0), 0
	for position < size {
		b := record.NewBuilder(record.BuilderOptions{Codec: shape.codec, BaseOffset: offset})
		for n := int64(0); b.Size() < shape.Batch; n++ {
			key := fmt.Appendf(nil, "key-%d", offset+n)
			value := value[:shape.RecordSize]
			if shape.uneven {
				value = value[:shape.RecordSize*2/3+rng.IntN(shape.RecordSize*2/3)]
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

// A BenchShape is what the batches of a benchmark look like.
type BenchShape struct {
	Name              string
	codec             record.Codec
	Batch, RecordSize int
	uneven            bool // records have between two and four thirds of the size
}

// BenchShapes are those that benchmarks read.
var BenchShapes = []BenchShape{
	{"batch=1MiB/record=1KiB", record.None, 1 << 20, 1 << 10, false},
	{"batch=1MiB/record=100B", record.None, 1 << 20, 100, false},
	{"batch=1MiB/record=67-133B", record.None, 1 << 20, 100, true},
	{"batch=16KiB/record=1KiB", record.None, 16 << 10, 1 << 10, false},
	{"batch=16KiB/record=100B", record.None, 16 << 10, 100, false},
}
