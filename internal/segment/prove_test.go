package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// fileSegment is a segment whose .log file has these bytes.
func fileSegment(t *testing.T, base int64, parts ...[]byte) *Segment {
	t.Helper()
	m := newFS(t)
	s, err := Create(m, testDir, base, smallConfig(), time.UnixMilli(t0))
	must(t, err)
	must(t, s.Close())
	must(t, vfs.WriteFileAtomic(m, s.Path(LogFile), slices.Concat(parts...)))
	s, err = Open(m, testDir, base, smallConfig())
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// proved says in a word for each step what a prover makes of a segment.
func proved(t *testing.T, s *Segment, bound int64) (steps []string) {
	t.Helper()
	f, err := s.log.acquire()
	must(t, err)
	defer f.release()
	p := newProver(&s.files, f, s.Size(), bound)
	defer p.release()
	for {
		l, d, err := p.step()
		switch {
		case err == io.EOF:
			return steps
		case err != nil:
			t.Fatal(err)
		case d.Size > 0 && p.tail:
			steps = append(steps, fmt.Sprintf("tail at %d of %d from %d", d.Position, d.Size, d.First))
		case d.Size > 0:
			steps = append(steps, fmt.Sprintf("bad at %d of %d: %d-%d", d.Position, d.Size, d.First, d.End))
		default:
			steps = append(steps, fmt.Sprintf("good %d-%d", l.Batch.BaseOffset(), l.Batch.LastOffset()))
		}
	}
}

// wrapper makes a compressed message of format v1 with inner offsets from base on.
func wrapper(t *testing.T, base int64, count int) []byte {
	t.Helper()
	set, err := record.NewSetBuilder(record.SetOptions{Magic: 1, Codec: record.Gzip})
	must(t, err)
	for i := range int64(count) {
		must(t, set.Append(record.Record{Offset: base + i, Timestamp: t0, Value: []byte("value")}))
	}
	return set.Build()
}

func message(t *testing.T, magic int8, offset int64) []byte {
	t.Helper()
	set, err := record.NewSetBuilder(record.SetOptions{Magic: magic})
	must(t, err)
	must(t, set.Append(record.Record{Offset: offset, Timestamp: t0, Value: []byte("value")}))
	return set.Build()
}

func TestProver(t *testing.T) {
	two := func(base int64) []byte { return batch(t, base, 2, t0, 20) }
	size := len(two(0))
	spoilt := func(b []byte, change func(b record.Batch)) []byte {
		b = bytes.Clone(b)
		change(b)
		return b
	}
	body := func(b record.Batch) { b[len(b)-1] ^= 1 }
	moved := func(by int64) func(b record.Batch) {
		return func(b record.Batch) { b.SetBaseOffset(b.BaseOffset() + by) }
	}
	length := func(bit uint) func(b record.Batch) {
		return func(b record.Batch) {
			binary.BigEndian.PutUint32(b[8:], binary.BigEndian.Uint32(b[8:])^1<<bit)
			body(b)
		}
	}
	f := func(name string, bound int64, file [][]byte, want ...string) {
		t.Helper()
		if got := proved(t, fileSegment(t, 100, file...), bound); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	list := func(parts ...[]byte) [][]byte { return parts }
	badAt := func(i int, first, end int64) string {
		return fmt.Sprintf("bad at %d of %d: %d-%d", i*size, size, first, end)
	}
	f("nothing", 200, nil)
	f("good", 104, list(two(100), two(102)), "good 100-101", "good 102-103")
	f("a gap", 107, list(two(100), two(105)), "good 100-101", "good 105-106")
	f("beyond the bound", 103, list(two(100), two(102)), "good 100-101", fmt.Sprintf("tail at %d of %d from 102", size, size))
	f("at the bound", 102, list(two(100)), "good 100-101")
	f("below the base", 200, list(two(98), two(100), two(102)), badAt(0, 100, 100), "good 100-101", "good 102-103")
	f("begins below the base", 200, list(two(99), two(102)), badAt(0, 100, 102), "good 102-103")
	f("a bad one", 200, list(two(100), spoilt(two(102), body), two(104)), "good 100-101", badAt(1, 102, 104), "good 104-105")
	f("two bad ones", 200, list(spoilt(two(100), body), spoilt(two(102), body), two(104)), fmt.Sprintf("bad at 0 of %d: 100-104", 2*size), "good 104-105")
	f("the last bad", 200, list(two(100), spoilt(two(102), body)), "good 100-101", fmt.Sprintf("tail at %d of %d from 102", size, size))
	f("too high", 200, list(spoilt(two(100), moved(3)), two(102)), badAt(0, 100, 102), "good 102-103")
	f("too high, as if there were a gap", 200, list(spoilt(two(100), moved(1)), two(102), two(104)), badAt(0, 100, 102), "good 102-103", "good 104-105")
	f("no higher than the next", 200, list(two(100), two(103), two(105)), "good 100-101", "good 103-104", "good 105-106")
	f("too high, then damage", 200, list(spoilt(two(100), moved(1)), spoilt(two(102), body), two(104), two(106)),
		fmt.Sprintf("bad at 0 of %d: 100-104", 2*size), "good 104-105", "good 106-107")
	f("far too high, then damage", 200, list(spoilt(two(100), moved(5)), spoilt(two(102), body), two(104), two(106)),
		fmt.Sprintf("bad at 0 of %d: 100-104", 2*size), "good 104-105", "good 106-107")
	f("a bit far up", math.MaxInt64, list(spoilt(two(100), moved(1<<40)), two(102)), badAt(0, 100, 102), "good 102-103")
	f("a bit far up, the last", math.MaxInt64, list(spoilt(two(100), moved(1<<33))), fmt.Sprintf("tail at 0 of %d from 100", size))
	f("a bit further down", math.MaxInt64, list(spoilt(two(100), moved(1<<20))), fmt.Sprintf("good %d-%d", 100+1<<20, 101+1<<20))
	for bit := range uint(31) {
		f(fmt.Sprint("bit ", bit, " of a length"), 200, list(two(100), spoilt(two(102), length(bit)), two(104), two(106)),
			"good 100-101", badAt(1, 102, 104), "good 104-105", "good 106-107")
	}
	f("bytes in front", 200, list([]byte("noise"), two(100), two(102)), "bad at 0 of 5: 100-100", "good 100-101", "good 102-103")
	f("bytes between", 200, list(two(100), make([]byte, 300), two(102), two(104)),
		"good 100-101", fmt.Sprintf("bad at %d of 300: 102-102", size), "good 102-103", "good 104-105")
	f("messages", 200, list(message(t, 0, 100), message(t, 1, 101), wrapper(t, 102, 3), two(105)),
		"good 100-100", "good 101-101", "good 104-104", "good 105-106")
	m := message(t, 1, 101)
	f("a bad message", 200, list(message(t, 1, 100), spoilt(m, body), message(t, 1, 102), message(t, 1, 103)),
		"good 100-100", fmt.Sprintf("bad at %d of %d: 101-102", len(m), len(m)), "good 102-102", "good 103-103")
	w := wrapper(t, 102, 3)
	f("a wrapper behind damage", 200, list(spoilt(two(100), body), w, two(105)), badAt(0, 100, 102), "good 104-104", "good 105-106")
	f("a wrapper that claims what is lost", 200, list(two(100), spoilt(two(102), body), wrapper(t, 103, 3), two(106)),
		"good 100-101", fmt.Sprintf("bad at %d of %d: 102-103", size, size), "good 105-105", "good 106-107")
	f("a bad wrapper", 200, list(two(100), spoilt(w, body), two(105), two(107)),
		"good 100-101", fmt.Sprintf("bad at %d of %d: 102-105", size, len(w)), "good 105-106", "good 107-108")
}

// A search ends where its budget does, so that damage does not cost the square of its size.
func TestProverBudget(t *testing.T) {
	two := batch(t, 2, 2, t0, 20)
	bad := bytes.Clone(two)
	bad[8] = 1 // a length that leads nowhere
	s := fileSegment(t, 0, bad, two)
	f, err := s.log.acquire()
	must(t, err)
	defer f.release()
	try := func(budget int64, want bool) {
		t.Helper()
		p := newProver(&s.files, f, s.Size(), 100)
		defer p.release()
		p.budget = budget
		if _, err := p.byContent(); (err == nil) != want || err != nil && err != ErrNotFound {
			t.Errorf("budget %d: got %v", budget, err)
		}
	}
	try(int64(len(two)), true)
	try(int64(len(two))-1, false)
	try(1<<20, true)
}

// What cannot be the batch that is searched for is passed by without a look at its checksum.
func TestProverPlausible(t *testing.T) {
	s := fileSegment(t, 100, batch(t, 100, 1, t0, 10))
	f, err := s.log.acquire()
	must(t, err)
	defer f.release()
	p := newProver(&s.files, f, s.Size(), 1<<40)
	defer p.release()
	p.next = 110
	try := func(offset int64, length uint32, magic byte, want bool) {
		t.Helper()
		b := make([]byte, record.HeaderSize)
		binary.BigEndian.PutUint64(b, uint64(offset))
		binary.BigEndian.PutUint32(b[8:], length)
		b[16] = magic
		if got := p.plausible(b); got != want {
			t.Errorf("offset %d, length %d, magic %d: got %v", offset, length, magic, got)
		}
	}
	try(110, 50, 2, true)
	try(109, 50, 2, false)
	try(100+math.MaxInt32, 50, 2, true)
	try(101+math.MaxInt32, 50, 2, false)
	try(110, 14, 0, true)
	try(110, 13, 0, false)
	try(110, 1<<31, 2, false) // negative
	try(110, 50, 3, false)
	p.bound = 120
	try(119, 50, 2, true)
	try(120, 50, 2, false)
}

// A candidate is behind the reader, good, and has offsets that there may be.
func TestProverCandidate(t *testing.T) {
	two := func(base int64) []byte { return batch(t, base, 2, t0, 20) }
	size := int64(len(two(0)))
	s := fileSegment(t, 100, two(100), two(102), two(104))
	f, err := s.log.acquire()
	must(t, err)
	defer f.release()
	try := func(position, at, next, bound int64, want bool) {
		t.Helper()
		p := newProver(&s.files, f, s.Size(), bound)
		defer p.release()
		p.r.position, p.next = at, next
		got, err := p.candidate(position)
		if (err == nil) != want || err != nil && err != ErrNotFound || want && got.position != position {
			t.Errorf("at %d, reader at %d, next %d, bound %d: got %+v, %v", position, at, next, bound, got, err)
		}
	}
	try(size, 0, 100, 200, true)
	try(size, size, 100, 200, false)
	try(0, 0, 100, 200, false)
	try(size, 0, 102, 200, true)
	try(size, 0, 103, 200, false)
	try(2*size, 0, 100, 106, true)
	try(2*size, 0, 100, 105, false)
	try(3*size, 0, 100, 200, false)
	try(3*size+1, 0, 100, 200, false)
	try(size+1, 0, 100, 200, false)
	// Between the reader and the candidate there is a batch, so that the candidate cannot have the offset
	// that is next, unless the one behind goes on from it.
	try(2*size, 0, 104, 200, false)
	try(size, 0, 102, 106, true)
}

// The end of a segment is certain, unless bad bytes are there or the last batch left a gap.
func TestProveEnd(t *testing.T) {
	two := func(base int64) []byte { return batch(t, base, 2, t0, 20) }
	bad := two(102)
	bad[len(bad)-1] ^= 1
	f := func(name string, bound, end int64, certain bool, file ...[]byte) {
		t.Helper()
		s := fileSegment(t, 100, file...)
		gotEnd, gotCertain, err := s.ProveEnd(bound)
		if gotEnd != end || gotCertain != certain || err != nil {
			t.Errorf("%s: got %d, %v, %v", name, gotEnd, gotCertain, err)
		}
		has, err := s.HasBatch()
		if want := end > 100; has != want || err != nil {
			t.Errorf("%s: HasBatch: got %v, %v", name, has, err)
		}
	}
	f("nothing", 200, 100, true)
	f("good", 200, 104, true, two(100), two(102))
	f("damage in the middle", 200, 106, true, two(100), bad, two(104))
	f("bad bytes at the end", 200, 102, false, two(100), bad)
	f("a gap at the end", 200, 107, false, two(100), two(105))
	f("a gap in front of the last", 200, 109, true, two(100), two(105), two(107))
	f("beyond the bound", 103, 102, false, two(100), two(102))
	f("bad bytes only", 200, 100, false, bad)
	f("a wrapper", 200, 105, true, two(100), wrapper(t, 102, 3))
	f("a wrapper behind a gap", 200, 106, false, two(100), wrapper(t, 103, 3))
	f("a message behind a gap", 200, 104, false, two(100), message(t, 1, 103))
}

// Batches below the base offset say that a file has another's name; one may be a bit that turned round.
func TestFirstBelowBase(t *testing.T) {
	one := func(base int64) []byte { return batch(t, base, 1, t0, 20) }
	bad := one(8)
	bad[len(bad)-1] ^= 1
	f := func(name string, base int64, want int, file ...[]byte) {
		t.Helper()
		if got, err := fileSegment(t, base, file...).FirstBelowBase(); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, want)
		}
	}
	f("its own", 10, 0, one(10), one(11))
	f("one", 10, 1, one(9), one(10))
	f("two", 10, 2, one(8), one(9), one(10))
	f("three", 10, 2, one(7), one(8), one(9))
	f("all", 10, 2, one(8), one(9))
	f("one and no more", 10, 1, one(8))
	f("begins below", 10, 1, batch(t, 9, 3, t0, 20), one(12))
	f("damage", 10, 0, bad, one(9))
	f("one and damage", 10, 1, one(7), bad)
	f("one that is cut", 10, 1, one(7), one(8)[:40])
	f("nothing", 10, 0)
	f("the first of all", 0, 0, one(0), one(1))
}

// The error of a walk says where it stopped, and which offset was to come.
func TestBatchesErrors(t *testing.T) {
	two := batch(t, 100, 2, t0, 20)
	f := func(name string, position, offset int64, file ...[]byte) {
		t.Helper()
		s := fileSegment(t, 100, file...)
		var last error
		for _, err := range s.Batches(0, s.Size()) {
			last = err
		}
		c, ok := errors.AsType[*CorruptError](last)
		if !ok || c.Position != position || c.Offset != offset {
			t.Errorf("%s: got %v, want byte %d, offset %d", name, last, position, offset)
		}
	}
	f("the first", 0, 100, make([]byte, 100))
	f("the second", int64(len(two)), 102, two, make([]byte, 100))
	f("cut", int64(len(two)), 102, two, two[:50])
}
