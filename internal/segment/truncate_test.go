package segment

import (
	"math"
	"testing"
)

func TestTruncateTo(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	must(t, s.AppendAborted(AbortedTxn{1, 0, 9, 10}))
	must(t, s.AppendAborted(AbortedTxn{1, 10, 31, 32}))
	size := s.Size() / 20
	f := func(offset, wantCut, wantNext int64) {
		t.Helper()
		cut, err := s.TruncateTo(offset)
		if cut != wantCut || err != nil {
			t.Errorf("TruncateTo(%d): cut %d, %v, want %d", offset, cut, err, wantCut)
		}
		if next, err := s.NextOffset(); next != wantNext || err != nil {
			t.Errorf("TruncateTo(%d): next offset %d, %v, want %d", offset, next, err, wantNext)
		}
		if got := fileSize(t, s, LogFile); got != s.Size() {
			t.Errorf("TruncateTo(%d): file has %d bytes, want %d", offset, got, s.Size())
		}
		must(t, s.Check())
	}
	f(40, 0, 40)
	f(31, 5*size, 30) // in the middle of [30,31]
	if ts, offset, err := s.MaxTimestamp(); ts != t0+29 || offset != 29 || err != nil {
		t.Errorf("MaxTimestamp: got %d, %d, %v", ts-t0, offset, err)
	}
	if list, _, err := s.Aborted(0, 100); len(list) != 1 || err != nil {
		t.Errorf("Aborted: got %v, %v, want the first only", list, err)
	}
	must(t, s.Append(batch(t, 31, 1, t0-50, 10)))
	if next, err := s.NextOffset(); next != 32 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 32", next, err)
	}
	must(t, s.Seal())
	f(10, s.Size()-5*size, 10)
	f(0, 5*size, 0)
	if ts, err := s.FirstTimestamp(); ts != math.MaxInt64 || err != nil {
		t.Errorf("FirstTimestamp of nothing: got %d, %v", ts, err)
	}
	fill(t, s, 20)
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	f(15, 3*size, 14)
}
