package segment

import (
	"errors"
	"os"
	"testing"
)

// Batches are missing at the end of a segment where an index leads behind it, and the next segment begins
// further on. Offsets alone that are missing there say nothing.
func TestLostEnd(t *testing.T) {
	const end = 40
	f := func(name string, bound, wantFirst int64, spoil func(s *Segment, half int64)) {
		t.Helper()
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		fill(t, s, end)
		half := s.Size() / 2
		must(t, s.Seal())
		must(t, s.Close())
		s = open(t, m, 0, smallConfig())
		spoil(s, half)
		must(t, s.Close())
		s, err := Open(m, testDir, 0, smallConfig()) // and no check at the end
		must(t, err)
		if _, ok, err := s.LostEnd(); ok || err != nil {
			t.Errorf("%s, without a guard: %v, %v", name, ok, err)
		}
		s.Guard(bound)
		d, ok, err := s.LostEnd()
		if ok != (wantFirst >= 0) || err != nil || ok && (d.First != wantFirst || d.End != bound || d.Size != 0 || !errors.Is(d.Err, ErrEndLost)) {
			t.Errorf("%s: %v %v %v, want it from %d on", name, d, ok, err, wantFirst)
		}
		must(t, s.Close())
	}
	file := func(s *Segment, kind Kind, size int64) {
		h, err := s.files.fs.OpenFile(s.Path(kind), os.O_RDWR, 0)
		must(t, err)
		must(t, h.Truncate(size))
		must(t, h.Close())
	}
	f("nothing", end, -1, func(*Segment, int64) {})
	f("a gap", end+5, -1, func(*Segment, int64) {})
	f("cut", end, end/2, func(s *Segment, half int64) { file(s, LogFile, half) })
	without := func(s *Segment, kinds ...Kind) {
		for _, kind := range kinds {
			must(t, s.files.fs.Remove(s.Path(kind)))
		}
	}
	f("cut, without its indexes", end, -1, func(s *Segment, half int64) {
		file(s, LogFile, half)
		without(s, IndexFile, TimeIndexFile)
	})
	for _, kind := range []Kind{IndexFile, TimeIndexFile} {
		f("cut, without one of them", end, end/2, func(s *Segment, half int64) {
			file(s, LogFile, half)
			without(s, kind)
		})
		f("cut, without one of them, and the other leads behind the next segment", end/2+1, -1, func(s *Segment, half int64) {
			file(s, LogFile, half)
			without(s, kind)
		})
	}
	aborted := func(last int64) func(*Segment, int64) {
		return func(s *Segment, half int64) {
			file(s, LogFile, half)
			without(s, IndexFile, TimeIndexFile)
			must(t, s.ReplaceAborted([]AbortedTxn{{ProducerID: 1, FirstOffset: 3, LastOffset: last, LastStableOffset: 3}}))
		}
	}
	f("cut, with an aborted transaction", end, end/2, aborted(end-1))
	f("cut, with one of the rest", end, -1, aborted(end/2-1))
	f("cut, with one of the next segment", end, -1, aborted(end))
	f("a damaged entry", end+5, -1, func(s *Segment, _ int64) {
		h, err := s.files.fs.OpenFile(s.Path(IndexFile), os.O_RDWR, 0)
		must(t, err)
		size, err := h.Size()
		must(t, err)
		_, err = h.WriteAt([]byte{0, 0, 0, end + 2}, size-offsetEntrySize) // its position is what it was
		must(t, err)
		must(t, h.Close())
	})
}
