package segment

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// A segment of twenty batches of two records each is cut, and its indexes say what they say.
func TestIndexedEnd(t *testing.T) {
	const end = 40
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, end)
	size := s.Size() / (end / 2)
	must(t, s.Seal())
	must(t, s.Close())
	read := func(kind Kind) []byte {
		b, err := vfs.ReadFile(m, s.Path(kind), 1<<20)
		must(t, err)
		return b
	}
	log, index, times := read(LogFile), read(IndexFile), read(TimeIndexFile)
	inFront := func(bound int64, name string, log, index, times []byte, want int64) {
		t.Helper()
		s := fileSegment(t, 0, log)
		must(t, vfs.WriteFileAtomic(s.files.fs, s.Path(IndexFile), index))
		must(t, vfs.WriteFileAtomic(s.files.fs, s.Path(TimeIndexFile), times))
		next, _, err := s.End()
		must(t, err)
		if got, err := s.IndexedEnd(next, bound); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, want)
		}
	}
	f := func(name string, log, index, times []byte, want int64) {
		t.Helper()
		inFront(math.MaxInt64, name, log, index, times, want)
	}
	first := func(n int64) []byte { return log[:n*size] }
	changed := func(b []byte, at int, xor byte) []byte {
		b = bytes.Clone(b)
		b[at] ^= xor
		return b
	}
	last := int64(binary.BigEndian.Uint32(index[len(index)-offsetEntrySize:])) + 1 // no index knows the last one

	f("nothing is wrong", log, index, times, 0)
	f("garbage behind the end", append(bytes.Clone(log), 1, 2, 3), index, times, 0)
	f("cut between two batches", first(10), index, times, end)
	f("cut inside of one", log[:10*size+70], index, times, end)
	f("cut inside of the first", log[:70], index, times, end)
	f("cut to nothing", nil, index, times, end)
	f("cut inside of the last", log[:len(log)-1], index, times, end)
	f("a bit in the length of the last batch", changed(log, len(log)-int(size)+10, 1), index, times, end)
	f("cut, index only", first(10), index, nil, last)
	f("cut, time index only", first(10), nil, times, end)
	f("cut, and a preallocated index", first(10), append(bytes.Clone(index), make([]byte, 1024)...), nil, last)

	// An index alone says nothing where none of its entries leads to a batch, unless bytes are bad.
	f("nothing left, index only", nil, index, nil, 0)
	f("nothing left, time index only", nil, nil, times, 0)
	f("bad bytes left, index only", log[:70], index, nil, last)
	f("bad bytes left, time index only", log[:70], nil, times, end)
	f("the last entry only", first(10), index[len(index)-offsetEntrySize:], nil, 0)
	f("the last entry only, and bad bytes", log[:10*size+70], index[len(index)-offsetEntrySize:], nil, last)
	f("the last entries of both", first(10), index[len(index)-offsetEntrySize:], times[len(times)-timeEntrySize:], end)
	f("index does not ascend", first(10), append(bytes.Clone(index), index...), nil, 0)

	// In front of another segment it has to lead into the gap.
	inFront(end, "nothing left, index only", nil, index, nil, 0)
	inFront(end, "nothing left", nil, index, times, end)
	inFront(end, "the last entry only", first(10), index[len(index)-offsetEntrySize:], nil, last)
	inFront(end, "time index only", first(10), nil, times[len(times)-timeEntrySize:], end)
	inFront(last, "time index too far", first(10), index, times, last)
	inFront(last-1, "both too far", first(10), index, times, 0)

	// No bit of an index, of its last entries most of all, leads further than the log goes.
	for at := len(index) - 2*offsetEntrySize; at < len(index); at++ {
		for bit := range 8 {
			f("bit in the index", log, changed(index, at, 1<<bit), times, 0)
			f("bit in the index alone", log, changed(index, at, 1<<bit), nil, 0)
		}
	}
	for at := len(times) - 2*timeEntrySize; at < len(times); at++ {
		for bit := range 8 {
			f("bit in the time index", log, index, changed(times, at, 1<<bit), 0)
			f("bit in the time index alone", log, nil, changed(times, at, 1<<bit), 0)
		}
	}
}

// The position behind the last batch is the size, unless bad bytes are there.
func TestEnd(t *testing.T) {
	two := batch(t, 100, 2, t0, 20)
	f := func(name string, next int64, position int, file ...[]byte) {
		t.Helper()
		s := fileSegment(t, 100, file...)
		if gotNext, got, err := s.End(); gotNext != next || got != int64(position) || err != nil {
			t.Errorf("%s: got %d at %d, %v", name, gotNext, got, err)
		}
	}
	f("nothing", 100, 0)
	f("one", 102, len(two), two)
	f("one that is cut", 100, 0, two[:50])
	f("another that is cut", 102, len(two), two, batch(t, 102, 2, t0, 20)[:50])
	f("a few bytes", 102, len(two), two, []byte{0, 0, 0})
}
