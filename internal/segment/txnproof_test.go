package segment

import (
	"errors"
	"os"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
)

// provenLog is a segment with a transaction of each of some producers.
func provenLog(t *testing.T) *txnLog {
	t.Helper()
	l := newTxnLog(t, newFS(t), 100)
	l.transacted(1) // 100, 101
	l.transacted(2) // 102, 103
	l.idempotent(3) // 104, 105
	l.abort(1)      // 106
	l.commit(2)     // 107
	l.skip(3)       // 108..110 were compacted
	l.abort(4)      // 111
	l.plain()       // 112, 113
	return l
}

func noBegin(int64, int64) (bool, error) { panic("nobody should ask") }

// An entry is proven by its marker, and by a batch that may be the transaction's first.
func TestProveTxns(t *testing.T) {
	l := provenLog(t)
	f := func(name string, a AbortedTxn, begins func(int64, int64) (bool, error), good bool) {
		t.Helper()
		err := txnProof{l.s, begins}.prove(a)
		if (err == nil) != good || err != nil && !isBadFrame(err) {
			t.Errorf("%s: got %v", name, err)
		}
		wrong, err := l.s.DisprovesTxn(a, begins)
		if wrong == good || err != nil {
			t.Errorf("%s: disproved: %v, %v", name, wrong, err)
		}
	}
	f("right", AbortedTxn{1, 100, 106, 107}, noBegin, true)
	f("a low stable offset", AbortedTxn{1, 100, 106, 0}, noBegin, true)
	f("a negative stable offset", AbortedTxn{1, 100, 106, -1}, noBegin, false)
	f("a high stable offset", AbortedTxn{1, 100, 106, 108}, noBegin, false)
	f("of another producer", AbortedTxn{2, 102, 106, 107}, noBegin, false)
	f("committed", AbortedTxn{2, 102, 107, 107}, noBegin, false)
	f("no marker", AbortedTxn{1, 100, 103, 103}, noBegin, false)
	f("no control batch", AbortedTxn{3, 100, 105, 105}, noBegin, false)
	f("before the marker", AbortedTxn{1, 100, 105, 105}, noBegin, false)
	f("behind everything", AbortedTxn{1, 100, 114, 114}, noBegin, false)
	f("in a gap", AbortedTxn{4, 109, 111, 112}, noBegin, true)
	f("on a marker", AbortedTxn{4, 106, 111, 112}, noBegin, false)
	f("inside a batch", AbortedTxn{1, 101, 106, 107}, noBegin, false)
	f("on a batch outside transactions", AbortedTxn{4, 104, 111, 112}, noBegin, false)
	f("ends where it begins", AbortedTxn{4, 111, 111, 112}, noBegin, false)
	f("begins behind its end", AbortedTxn{4, 112, 111, 112}, noBegin, false)
	f("a negative offset", AbortedTxn{4, -1, 111, 112}, noBegin, false)
	f("ends in front", AbortedTxn{4, 50, 99, 99}, noBegin, false)
	f("earlier", AbortedTxn{4, 99, 111, 112}, func(id, offset int64) (bool, error) { return id == 4 && offset == 99, nil }, true)
	f("earlier, not so", AbortedTxn{4, 0, 111, 112}, func(int64, int64) (bool, error) { return false, nil }, false)

	odd := errors.New("odd")
	begins := func(int64, int64) (bool, error) { return false, odd }
	if wrong, err := l.s.DisprovesTxn(AbortedTxn{4, 0, 111, 112}, begins); wrong || err != odd {
		t.Errorf("nobody knows: got %v, %v", wrong, err)
	}
	unreadable := func(int64, int64) (bool, error) { return false, &CorruptError{Err: odd} }
	if wrong, err := l.s.DisprovesTxn(AbortedTxn{4, 0, 111, 112}, unreadable); wrong || err != nil {
		t.Errorf("damage: got %v, %v", wrong, err)
	}
}

// A wrong entry is an error that says where it is in the .txnindex file; then nothing is proven.
func TestProveTxnsFile(t *testing.T) {
	f := func(name string, list []AbortedTxn, extra int, position int64) {
		t.Helper()
		l := provenLog(t)
		for _, a := range list {
			must(t, l.s.AppendAborted(a))
		}
		l.reopen(114)
		if extra > 0 {
			file, err := l.s.files.fs.OpenFile(l.s.Path(TxnIndexFile), os.O_RDWR|os.O_CREATE, 0o644)
			must(t, err)
			_, err = file.WriteAt(make([]byte, extra), int64(len(list))*txnEntrySize)
			must(t, err)
			must(t, file.Close())
		}
		if l.s.TxnsProven() {
			t.Errorf("%s: proven before anybody has looked", name)
		}
		err := l.s.ProveTxns(noBegin)
		c, bad := errors.AsType[*CorruptError](err)
		if bad != (position >= 0) || bad && (c.Position != position || !IsTxnIndexDamage(err)) || err != nil && !bad {
			t.Errorf("%s: got %v", name, err)
		}
		if l.s.TxnsProven() == bad {
			t.Errorf("%s: proven: %v", name, l.s.TxnsProven())
		}
	}
	right := []AbortedTxn{{1, 100, 106, 107}, {4, 109, 111, 112}}
	f("none", nil, 0, -1)
	f("right", right, 0, -1)
	f("the first wrong", []AbortedTxn{{2, 100, 106, 107}, right[1]}, 0, 0)
	f("the second wrong", []AbortedTxn{right[0], {4, 104, 111, 112}}, 0, txnEntrySize)
	f("half an entry", right, 7, 2*txnEntrySize)
	f("half of the only one", nil, 33, 0)
}

// What cannot be read says nothing against an entry.
func TestProveTxnsDamage(t *testing.T) {
	f := func(name string, i int, bit int64, a AbortedTxn, wrong bool) {
		t.Helper()
		l := provenLog(t)
		l.flip(i, bit)
		l.reopen(114)
		got, err := l.s.DisprovesTxn(a, noBegin)
		if got != wrong || err != nil {
			t.Errorf("%s: disproved %v, %v", name, got, err)
		}
		if n := len(l.s.Damages()); n != 1 {
			t.Errorf("%s: %d damages", name, n)
		}
		// Without quarantine the checksum tells as well.
		l.reopen(0)
		if got, err = l.s.DisprovesTxn(a, noBegin); got != wrong || err != nil {
			t.Errorf("%s, without a guard: disproved %v, %v", name, got, err)
		}
	}
	f("marker", 3, 70*8, AbortedTxn{1, 100, 106, 107}, false)
	f("first batch", 0, 70*8, AbortedTxn{1, 100, 106, 107}, false)
	f("the other's marker", 4, 70*8, AbortedTxn{2, 102, 107, 107}, false)

	// At the end: between the last batch and the next segment a marker may be missing.
	l := provenLog(t)
	l.reopen(120)
	g := func(a AbortedTxn, wrong bool) {
		t.Helper()
		if got, err := l.s.DisprovesTxn(a, noBegin); got != wrong || err != nil {
			t.Errorf("%+v: disproved %v, %v", a, got, err)
		}
	}
	g(AbortedTxn{1, 100, 114, 114}, false)
	g(AbortedTxn{1, 100, 119, 119}, false)
	g(AbortedTxn{1, 100, 120, 120}, true)
	l.s.AddLoss(120, 125, errors.New("lost"))
	g(AbortedTxn{1, 100, 120, 120}, false)
	g(AbortedTxn{1, 100, 124, 124}, false)
	g(AbortedTxn{1, 100, 125, 125}, true)
}

func TestTxnMayBegin(t *testing.T) {
	l := provenLog(t)
	f := func(id, offset int64, want bool) {
		t.Helper()
		if got, err := l.s.TxnMayBegin(id, offset); got != want || err != nil {
			t.Errorf("producer %d at %d: got %v, %v", id, offset, got, err)
		}
	}
	f(1, 100, true)
	f(2, 100, false)
	f(1, 101, false) // in the middle
	f(3, 104, false) // outside transactions
	f(1, 106, false) // a marker
	f(1, 108, true)  // compacted
	f(1, 110, true)
	f(4, 111, false)
	f(1, 112, false)
	f(1, 114, true) // behind the last

	m := newFS(t)
	old := create(t, m, 0, smallConfig())
	set, err := record.NewSetBuilder(record.SetOptions{Magic: 1})
	must(t, err)
	must(t, set.Append(record.Record{Offset: 0, Timestamp: t0, Value: []byte("v")}))
	must(t, old.Append(set.Build()))
	if may, err := old.TxnMayBegin(1, 0); may || err != nil {
		t.Errorf("in a message of format v1: got %v, %v", may, err)
	}
}

func TestReplaceAborted(t *testing.T) {
	l := provenLog(t)
	f := func(ok bool, ends ...int64) {
		t.Helper()
		var list []AbortedTxn
		for _, end := range ends {
			list = append(list, AbortedTxn{ProducerID: 1, LastOffset: end})
		}
		if err := l.s.ReplaceAborted(list); (err == nil) != ok {
			t.Errorf("%v: got %v", ends, err)
		}
	}
	f(true)
	f(true, 105)
	f(true, 105, 106)
	f(false, 105, 105)
	f(false, 106, 105)
}

func TestIsTxnIndexDamage(t *testing.T) {
	f := func(err error, want bool) {
		t.Helper()
		if got := IsTxnIndexDamage(err); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
	f(&CorruptError{Path: "/log/t-0/00000000000000000000.txnindex"}, true)
	f(&CorruptError{Path: "/log/t-0/00000000000000000000.log"}, false)
	f(&CorruptError{Path: "/log/t-0/leader-epoch-checkpoint"}, false)
	f(ErrCorrupt, false)
	f(nil, false)
}

// Recovery keeps entries of the file that the batches have nothing against: of a damaged marker, and of
// a transaction that began earlier. It drops those that are wrong.
func TestRecoverKeepsTxns(t *testing.T) {
	f := func(name string, damage int, stored, made, want []AbortedTxn, proven bool) {
		t.Helper()
		l := provenLog(t)
		for _, a := range stored {
			must(t, l.s.AppendAborted(a))
		}
		if damage >= 0 {
			l.flip(damage, 70*8)
		}
		l.reopen(0)
		n := 0
		_, err := l.s.Recover(func(at Located) error {
			if n++; n == 1 {
				for _, a := range made {
					must(t, l.s.AppendAborted(a))
				}
			}
			return nil
		}, 1000, nil)
		must(t, err)
		got, _, err := l.s.StoredAborted()
		must(t, err)
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
		if l.s.TxnsProven() != proven || !l.s.TxnsComplete() {
			t.Errorf("%s: proven %v, complete %v", name, l.s.TxnsProven(), l.s.TxnsComplete())
		}
	}
	list := func(a ...AbortedTxn) []AbortedTxn { return a }
	one, four := AbortedTxn{1, 100, 106, 107}, AbortedTxn{4, 50, 111, 112}
	f("the same", -1, list(one, four), list(one, four), list(one, four), true)
	f("made anew", -1, nil, list(one), list(one), true)
	f("a damaged marker", 3, list(one), nil, list(one), false)
	f("a marker of nobody", -1, list(four), nil, list(four), false)
	f("of another producer", -1, list(AbortedTxn{9, 50, 111, 112}), nil, nil, true)
	f("no marker", -1, list(AbortedTxn{4, 50, 110, 111}), nil, nil, true)
	f("a commit", -1, list(AbortedTxn{2, 50, 107, 108}), nil, nil, true)
	f("began earlier", -1, list(AbortedTxn{1, 60, 106, 107}), list(one), list(AbortedTxn{1, 60, 106, 107}), false)
	f("began later", -1, list(AbortedTxn{1, 102, 106, 107}), list(one), list(one), true)
	f("another's", -1, list(AbortedTxn{2, 60, 106, 107}), list(one), list(one), true)
	f("nonsense in a damaged marker", 3, list(AbortedTxn{1, 100, 106, 999}), nil, nil, true)
}
