package commitlog

import (
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// Damage counts for the state of producers where it is among the offsets that are replayed, and not where it
// begins behind their end, as when a log is truncated there, or ends in front of their beginning.
func TestReplayUpToDamage(t *testing.T) {
	o := txnInFrontOfDamage(t, vfs.NewMem())
	l := openLog(t, o)
	l.SetHighWatermark(l.Offsets().End)
	must(t, l.Scrub(nil))
	s := l.Offsets().segments[0]
	if d := s.Damages(); len(d) != 1 || d[0].First != 1 || d[0].End != 3 {
		t.Fatalf("damage %+v, want [1,3)", d)
	}
	f := func(start, end int64, want bool) {
		t.Helper()
		state := newProducerState(0)
		must(t, replaySegment(state, s, 1)) // the transaction is open
		state.end = start
		must(t, replaySegment(state, s, end))
		if got := len(state.doubts) > 0; got != want {
			t.Errorf("[%d,%d): doubt %v, want %v", start, end, got, want)
		}
	}
	f(0, 1, false)
	f(1, 1, false)
	f(1, 2, true)
	f(2, 6, true)
	f(3, 6, false)
}
