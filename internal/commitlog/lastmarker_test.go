package commitlog

import (
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// The last marker of a producer in some offsets, and the first record of it behind.
func TestLastMarker(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	data := inTransactions(t, l)
	data(1, "a")                          // 0
	mustMark(t, l, marker(1, 0, true, 0)) // 1
	data(2, "b")                          // 2
	data(1, "c")                          // 3
	must(t, l.Roll())
	data(1, "d")                           // 4
	mustMark(t, l, marker(1, 0, false, 0)) // 5
	mustMark(t, l, marker(2, 0, true, 0))  // 6
	f := func(producer, from, to int64, want foundMarker) {
		t.Helper()
		got, err := lastMarker(l.Offsets().segments, producer, from, to)
		if err != nil || got != want {
			t.Errorf("producer %d in [%d,%d): got %+v, %v, want %+v", producer, from, to, got, err, want)
		}
	}
	f(1, 0, 0, foundMarker{-1, false, -1})
	f(1, 0, 1, foundMarker{-1, false, 0})
	f(1, 0, 2, foundMarker{1, true, -1})
	f(1, 1, 2, foundMarker{1, true, -1}) // the marker is the first of the offsets
	f(1, 2, 3, foundMarker{-1, false, -1})
	f(1, 0, 4, foundMarker{1, true, 3})
	f(1, 3, 4, foundMarker{-1, false, 3})
	f(1, 0, 5, foundMarker{1, true, 3})
	f(1, 4, 5, foundMarker{-1, false, 4})
	f(1, 0, 6, foundMarker{5, false, -1})
	f(2, 0, 7, foundMarker{6, true, -1})
	f(2, 0, 6, foundMarker{-1, false, 2})
}

// What goes on when a segment is sealed is known of it, and nothing is kept of one where nothing does.
func TestOpenTransactionsAtTheRoll(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	data := inTransactions(t, l)
	data(1, "a")                           // 0
	mustMark(t, l, marker(1, 0, false, 0)) // 1
	must(t, l.Roll())
	data(1, "b") // 2
	must(t, l.Roll())
	sealed := l.Offsets().segments
	if f := l.knownFacts(sealed[0]); f != noFacts {
		t.Errorf("where all has ended: %+v", f.open)
	}
	if f := l.knownFacts(sealed[1]); len(f.open) != 1 || f.open[0].ProducerID != 1 || f.open[0].FirstOffset != 2 {
		t.Errorf("where one goes on: %+v", f.open)
	}
}
