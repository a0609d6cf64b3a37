package segment

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
)

func TestRead(t *testing.T) {
	s := create(t, newFS(t), 100, smallConfig())
	fill(t, s, 60)
	size := int(s.Size() / 30)
	f := func(start int64, maxBytes int, maxPosition int64, minOne FirstBatch, position, want int, incomplete bool) {
		t.Helper()
		sl, err := s.Read(start, maxBytes, maxPosition, minOne)
		if err != nil {
			t.Fatal(err)
		}
		defer sl.Release()
		if sl.Position() != int64(position) || sl.Size() != want || sl.FirstBatchIncomplete() != incomplete {
			t.Errorf("Read(%d, %d, %d, %v): got [%d,+%d) incomplete %v, want [%d,+%d) %v", start, maxBytes, maxPosition, minOne,
				sl.Position(), sl.Size(), sl.FirstBatchIncomplete(), position, want, incomplete)
		}
		if want == 0 {
			return
		}
		b := make([]byte, sl.Size()+5)
		if n, err := sl.ReadAt(b, 0); n != want || err != io.EOF {
			t.Errorf("ReadAt: got %d, %v, want %d and EOF", n, err, want)
		}
		if got := record.Batch(b); want >= size && (got.LastOffset() < start || got.BaseOffset() > max(start, 100)) {
			t.Errorf("Read(%d): first batch has %d-%d", start, got.BaseOffset(), got.LastOffset())
		}
	}
	end := s.Size()
	f(100, 1<<20, end, false, 0, 30*size, false)
	f(105, 1<<20, end, false, 2*size, 28*size, false)
	f(105, 10, end, true, 2*size, size, false)
	f(105, 10, end, false, 2*size, 10, true)
	f(105, 0, end, false, 2*size, 0, true)
	f(159, 1<<20, end, true, 29*size, size, false)
	f(105, 1<<20, int64(3*size), true, 2*size, size, false)
	f(120, 1<<20, int64(3*size), true, 10*size, 0, true)
	f(0, 1, end, true, 0, size, false)
	if _, err := s.Read(160, 10, end, WholeFirst); err != ErrNotFound {
		t.Errorf("Read at the end: got %v, want ErrNotFound", err)
	}
	if _, err := s.Read(100, -1, end, WholeFirst); err == nil {
		t.Error("Read of -1 bytes: no error")
	}
}

func TestSliceBounds(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	fill(t, s, 4)
	sl, err := s.Read(0, 20, s.Size(), CutFirst)
	must(t, err)
	defer sl.Release()
	b := make([]byte, 10)
	if n, err := sl.ReadAt(b, 5); n != 10 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := sl.ReadAt(b, 15); n != 5 || err != io.EOF {
		t.Errorf("got %d, %v, want 5 and EOF", n, err)
	}
	if n, err := sl.ReadAt(b, 20); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v, want EOF", n, err)
	}
	if _, err := sl.ReadAt(b, -1); err == nil || err == io.EOF {
		t.Errorf("got %v, want an error", err)
	}
}

func TestUpperBound(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	check := func() {
		t.Helper()
		for i := range int64(20) {
			offset, ok := s.UpperBound(i*size, int(size))
			if ok && offset < 2*i+2 {
				t.Errorf("batch %d: bound %d is inside of it", i, offset)
			}
			if !ok && i < 17 {
				t.Errorf("batch %d: no bound", i)
			}
		}
		if _, ok := s.UpperBound(0, math.MaxInt32); ok {
			t.Error("a bound behind the end")
		}
	}
	check()
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	check()
}

func TestBatches(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	sizes := []int{10, 300_000, 10, 1000, 200_000, chunkSize, 10}
	var positions []int64
	for i, size := range sizes {
		positions = append(positions, s.Size())
		must(t, s.Append(batch(t, int64(i), 1, t0, size)))
	}
	i := 0
	for l, err := range s.Batches(0, s.Size()) {
		must(t, err)
		if l.Position != positions[i] || l.Batch.BaseOffset() != int64(i) || l.Batch.Verify() != nil {
			t.Errorf("batch %d: got offset %d at %d, want %d", i, l.Batch.BaseOffset(), l.Position, positions[i])
		}
		i++
	}
	if i != len(sizes) {
		t.Errorf("got %d batches, want %d", i, len(sizes))
	}
	for _, err := range s.Batches(positions[2], positions[3]-1) {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Position != positions[2] || !errors.Is(err, errTorn) {
			t.Errorf("limit inside of a batch: got %v", err)
		}
	}
	for l, err := range s.Batches(positions[2], positions[4]) {
		must(t, err)
		if l.Position >= positions[4] {
			t.Errorf("batch at %d", l.Position)
		}
	}
}

// A batch is behind another one if its last offset is, and below the end of the log where that is known.
func TestFollows(t *testing.T) {
	s := fileSegment(t, 0, batch(t, 0, 3, t0, 10))
	f := func(fr frame, last int64, want bool) {
		t.Helper()
		if got := s.follows(fr, last) == nil; got != want {
			t.Errorf("%+v behind offset %d: got %v, want %v", fr, last, got, want)
		}
	}
	f(frame{last: 5}, 4, true)
	f(frame{last: 5}, 5, false)
	f(frame{last: 5, damaged: true}, 5, true)
	f(frame{last: 100}, 4, true) // nothing is known of an end
	size := s.Size()
	s.Guard(10)
	f(frame{last: 9}, 4, true)
	f(frame{last: 10}, 4, false)
	f(frame{last: 10, damaged: true}, 4, true)
	f(frame{last: 10, position: size - 1}, 4, false)
	f(frame{last: 10, position: size}, 4, true) // it was appended since
}

// An index may lead into the middle of something that looks like batches: two that end at the same offset are
// none.
func TestWalkNeedsOffsetsToIncrease(t *testing.T) {
	f := func(want error, parts ...[]byte) {
		t.Helper()
		s := fileSegment(t, 0, parts...)
		file, err := s.log.acquire()
		must(t, err)
		defer file.release()
		sc := s.scanner(file)
		defer sc.release()
		fr, err := sc.at(0)
		must(t, err)
		if _, err := s.walk(&sc, fr, 5); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	odd := error(frameError("offsets do not increase"))
	f(nil, batch(t, 0, 3, t0, 10), batch(t, 3, 3, t0, 10))
	f(ErrNotFound, batch(t, 0, 3, t0, 10), batch(t, 3, 2, t0, 10))
	f(odd, batch(t, 0, 3, t0, 10), batch(t, 2, 1, t0, 10), batch(t, 3, 3, t0, 10))
	f(odd, batch(t, 0, 3, t0, 10), batch(t, 1, 1, t0, 10), batch(t, 3, 3, t0, 10))
}

// An index entry is of the batch that it leads to if its offset is in it, or in one that was there before a
// compaction.
func TestEntryFrame(t *testing.T) {
	first, second := batch(t, 10, 3, t0, 10), batch(t, 13, 2, t0, 10)
	s := fileSegment(t, 10, first, second)
	below := fileSegment(t, 11, first)
	f := func(s *Segment, e offsetEntry, want bool) {
		t.Helper()
		file, err := s.log.acquire()
		must(t, err)
		defer file.release()
		sc := s.scanner(file)
		defer sc.release()
		fr, err := s.entryFrame(&sc, e)
		if _, bad := err.(frameError); bad == want || want && fr.position != int64(e.position) {
			t.Errorf("%+v: got a batch at %d, %v, want %v", e, fr.position, err, want)
		}
	}
	at := int32(len(first))
	f(s, offsetEntry{0, 0}, true)
	f(s, offsetEntry{2, 0}, true)
	f(s, offsetEntry{2, at}, false) // the batch begins behind it
	f(s, offsetEntry{3, at}, true)
	f(s, offsetEntry{4, at}, true)
	f(below, offsetEntry{2, 0}, false) // no batch of this segment
}

// What a header says of how many offsets are lost with its batch.
func TestLostRecords(t *testing.T) {
	f := func(set []byte, want int64) {
		t.Helper()
		if got := lostRecords(set); got != want {
			t.Errorf("format %d: got %d, want %d", set[16], got, want)
		}
	}
	f(batch(t, 10, 3, t0, 10), 3)
	f(batch(t, 10, 1, t0, 10), 1)
	f(message(t, 0, 5), 1)
	f(message(t, 1, 5), 1)
}
