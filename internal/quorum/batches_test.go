package quorum

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
)

// plainBatch is a batch of one record with a value of some size.
func plainBatch(t *testing.T, base int64, size int) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: base, LeaderEpoch: new(int32(0))})
	if err := b.Append(record.Record{Offset: base, Value: make([]byte, size)}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// withLength is 12 bytes and a length.
func withLength(length uint32) []byte { return binary.BigEndian.AppendUint32(make([]byte, 8), length) }

// The first bytes of a batch say how many it takes; nothing is believed that no batch has.
func TestWalkBuffer(t *testing.T) {
	two := slices.Concat(plainBatch(t, 0, 10), plainBatch(t, 1, 20))
	f := func(name string, b []byte, batches, used, need int, ok bool) {
		t.Helper()
		n := 0
		gotUsed, gotNeed, err := walkBuffer(b, func(record.Batch) error { n++; return nil })
		if n != batches || gotUsed != used || gotNeed != need || (err == nil) != ok {
			t.Errorf("%s: %d batches of %d bytes, %d needed, %v", name, n, gotUsed, gotNeed, err)
		}
	}
	first := len(plainBatch(t, 0, 10))
	f("nothing", nil, 0, 0, record.LogOverhead, true)
	f("eleven bytes", make([]byte, 11), 0, 0, record.LogOverhead, true)
	f("a header only", withLength(record.HeaderSize-record.LogOverhead), 0, 0, record.HeaderSize, true)
	f("less than a header", withLength(record.HeaderSize-record.LogOverhead-1), 0, 0, 0, false)
	f("the largest", withLength(batchSizeMax), 0, 0, record.LogOverhead+batchSizeMax, true)
	f("larger", withLength(batchSizeMax+1), 0, 0, 0, false)
	f("two", two, 2, len(two), record.LogOverhead, true)
	f("two, less a byte", two[:len(two)-1], 1, first, len(two)-first, true)
	f("one and twelve bytes", two[:first+12], 1, first, len(two)-first, true)
}

// Batches of any size are walked over, whatever fits into one read.
func TestWalk(t *testing.T) {
	fsys, _ := memDir(t)
	f := func(cut int, sizes ...int) {
		t.Helper()
		var content []byte
		var want []int64
		for i, size := range sizes {
			content = append(content, plainBatch(t, int64(i), size)...)
			want = append(want, int64(i))
		}
		overwriteFile(t, fsys, "/data/walked", content[:len(content)-cut])
		file, err := fsys.OpenFile("/data/walked", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var got []int64
		bad, err := walk(file, int64(len(content)-cut), func(b record.Batch) error {
			got = append(got, b.BaseOffset())
			return b.Verify()
		})
		if cut > 0 {
			want = want[:len(want)-1]
		}
		if err != nil || (bad == nil) != (cut == 0) || !slices.Equal(got, want) {
			t.Errorf("batches of %v, %d bytes cut: got %v, %v, %v", sizes, cut, got, bad, err)
		}
	}
	const buffer = 256 << 10
	overhead := len(plainBatch(t, 0, buffer)) - buffer
	f(0, 10)
	f(1, 10)
	f(0, 10, 20, 30)
	f(0, buffer-overhead) // to the byte
	f(0, 10, buffer-overhead)
	f(0, buffer-overhead+1, 10)
	f(0, 10, 3*buffer, 10, 2*buffer)
	f(1, 10, 3*buffer)
	f(buffer, 10, 3*buffer)
}

// A good batch behind a bad one is found at any byte, if it is whole and goes on from there.
func TestFindBatch(t *testing.T) {
	b := plainBatch(t, 7, 10)
	f := func(name string, tail []byte, base int64, want int) {
		t.Helper()
		if at, ok := findBatch(tail, base); ok != (want >= 0) || ok && at != want {
			t.Errorf("%s: got %d, %v, want %d", name, at, ok, want)
		}
	}
	behind := func(n int, b []byte) []byte { return append(bytes.Repeat([]byte{1}, n), b...) }
	f("behind one byte", behind(1, b), 6, 1)
	f("behind some", behind(100, b), 6, 100)
	f("at the start", b, 6, -1)
	f("of the same offset", behind(9, b), 7, -1)
	f("of a lower one", behind(9, b), 8, -1)
	f("cut", behind(9, b[:len(b)-1]), 6, -1)
	f("with more behind", append(behind(9, b), 1, 2, 3), 6, 9)
	spoilt := bytes.Clone(b)
	spoilt[len(spoilt)-1] ^= 1
	f("spoilt", behind(9, spoilt), 6, -1)
	f("spoilt, then good", behind(9, slices.Concat(spoilt, b)), 6, 9+len(b))
	header := record.EmptyBatch(b)
	f("a header without records", behind(9, header), 6, 9)
	for _, at := range []int{0, 16} {
		odd := bytes.Clone(b)
		odd[at] = 9
		f(fmt.Sprint("byte ", at), behind(9, odd), 6, -1)
	}
	long := bytes.Clone(b)
	binary.BigEndian.PutUint32(long[8:], 1<<31)
	f("a long one", behind(9, long), 6, -1)
	short := bytes.Clone(b)
	binary.BigEndian.PutUint32(short[8:], 1)
	f("a short one", behind(9, append(short, b...)), 6, 9+len(b))
}

// A batch goes on where the one before ended, in its epoch or a later one, and has a record.
func TestCheckBatch(t *testing.T) {
	f := func(name string, b record.Batch, at origin, ok bool) {
		t.Helper()
		if err := checkBatch(b, at); (err == nil) != ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	b := plainBatch(t, 7, 10)
	b.SetLeaderEpoch(3)
	f("right", b, origin{7, 3}, true)
	f("a later epoch", b, origin{7, 2}, true)
	f("the first", b, origin{7, noEpoch}, true)
	f("an earlier epoch", b, origin{7, 4}, false)
	f("another offset", b, origin{8, 3}, false)
	f("no record", record.EmptyBatch(b), origin{7, 3}, false)
	bad := bytes.Clone(b)
	bad[len(bad)-1] ^= 1
	f("spoilt", bad, origin{7, 3}, false)
}
