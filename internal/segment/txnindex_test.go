package segment

import (
	"errors"
	"math"
	"os"
	"testing"
)

// A missing file is looked for once, and found when it is made.
func TestNoTxnIndex(t *testing.T) {
	m := newFS(t)
	create(t, m, 100, smallConfig())
	s, err := Open(m, testDir, 100, smallConfig())
	must(t, err)
	s.NoteNoTxnIndex()
	want := func(count int, state TxnIndexState) {
		t.Helper()
		if list, got, err := s.StoredAborted(); len(list) != count || got != state || err != nil {
			t.Errorf("got %v, %v, %v, want %d entries, %v", list, got, err, count, state)
		}
	}
	want(0, TxnIndexMissing)
	must(t, s.AppendAborted(AbortedTxn{1, 90, 105, 103}))
	want(1, TxnIndexWhole)
	must(t, s.ReplaceAborted([]AbortedTxn{{1, 90, 105, 103}, {2, 103, 110, 111}}))
	want(2, TxnIndexWhole)
}

func TestAborted(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 100, smallConfig())
	if list, done, err := s.Aborted(0, 1000); list != nil || done || err != nil {
		t.Errorf("none: got %v, %v, %v", list, done, err)
	}
	txns := []AbortedTxn{{1, 90, 105, 103}, {2, 103, 110, 111}, {3, 112, 120, 121}}
	for _, a := range txns {
		must(t, s.AppendAborted(a))
	}
	if s.AppendAborted(AbortedTxn{4, 100, 120, 121}) == nil {
		t.Error("appended a transaction with the same last offset")
	}
	f := func(fetch, upper int64, want []AbortedTxn, wantDone bool) {
		t.Helper()
		got, done, err := s.Aborted(fetch, upper)
		if err != nil || done != wantDone || len(got) != len(want) {
			t.Fatalf("Aborted(%d, %d): got %v, %v, %v, want %v, %v", fetch, upper, got, done, err, want, wantDone)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("Aborted(%d, %d): got %v, want %v", fetch, upper, got, want)
			}
		}
	}
	check := func() {
		t.Helper()
		f(100, 103, txns[:1], true)
		f(100, 104, txns[:2], true)
		f(106, 111, txns[1:2], true)
		f(100, 121, txns, true)
		f(100, 500, txns, false)
		f(121, 500, nil, false)
	}
	check()
	must(t, s.Close())
	s = open(t, m, 100, smallConfig())
	check()
	must(t, s.CheckTxnIndex())

	// A bad entry is found, and a torn one at the end is not.
	file, err := m.OpenFile(s.Path(TxnIndexFile), os.O_RDWR, 0)
	must(t, err)
	write := func(b []byte, off int64) {
		t.Helper()
		_, err := file.WriteAt(b, off)
		must(t, err)
	}
	write([]byte{1, 2, 3}, 3*txnEntrySize)
	s = open(t, m, 100, smallConfig())
	check()
	must(t, s.AppendAborted(AbortedTxn{9, 121, 130, 131}))
	write([]byte{1}, txnEntrySize)
	s = open(t, m, 100, smallConfig())
	var corrupt *CorruptError
	if err := s.CheckTxnIndex(); !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt) || corrupt.Position != txnEntrySize {
		t.Errorf("got %v, want corruption at byte %d", err, txnEntrySize)
	}
	_, err = s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
	must(t, err)
	f(0, 1000, nil, false)
	must(t, file.Close())
}
