package offline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// benchSize is what benchmarks read, in bytes. It stays in the page cache.
const benchSize = 128 << 20

// writeSegment makes the files of a partition with one segment, as a clean stop leaves them.
func writeSegment(t testing.TB, codec record.Codec, size, batchSize, recordSize int) (dir string) {
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
	value := bytes.Repeat([]byte("abcdefgh"), recordSize/8+1)[:recordSize]
	var index []byte
	offset, position := int64(0), 0
	for position < size {
		b := record.NewBuilder(record.BuilderOptions{Codec: codec, BaseOffset: offset})
		for n := int64(0); b.Size() < batchSize; n++ {
			key := fmt.Appendf(nil, "key-%d", offset+n)
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

var benchShapes = []struct {
	name              string
	codec             record.Codec
	batch, recordSize int
}{
	{"batch=1MiB/record=1KiB", record.None, 1 << 20, 1 << 10},
	{"batch=1MiB/record=100B", record.None, 1 << 20, 100},
	{"batch=16KiB/record=1KiB", record.None, 16 << 10, 1 << 10},
}

// The target: check reaches 0.7 of ReadAndCRC, for large batches.
func BenchmarkCheck(b *testing.B) {
	for _, shape := range benchShapes {
		dir := writeSegment(b, shape.codec, benchSize, shape.batch, shape.recordSize)
		b.Run(shape.name+"/ReadAndCRC", func(b *testing.B) { benchmarkReadAndCRC(b, dir) })
		for _, shallow := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/shallow=%t", shape.name, shallow), func(b *testing.B) {
				for b.Loop() {
					r, err := Check(b.Context(), []string{dir}, CheckOptions{Workers: 1, Shallow: shallow})
					if err != nil || r.Damaged() > 0 {
						b.Fatal(err, r.Findings)
					}
					b.SetBytes(r.Bytes)
				}
			})
		}
	}
}

// benchmarkReadAndCRC is what no check can do without: each byte read once, and summed.
func benchmarkReadAndCRC(b *testing.B, dir string) {
	path := filepath.Join(dir, segment.Name(0, segment.LogFile, ""))
	buf := make([]byte, 1<<20)
	for b.Loop() {
		f, err := vfs.OS.OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		sum, position := uint32(0), int64(0)
		for {
			n, err := f.ReadAt(buf, position)
			sum = crc32.Update(sum, castagnoli, buf[:n])
			position += int64(n)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		f.Close()
		b.SetBytes(position)
	}
}

func BenchmarkDump(b *testing.B) {
	for _, shape := range benchShapes {
		dir := writeSegment(b, shape.codec, benchSize/2, shape.batch, shape.recordSize)
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
