package quorum

import (
	"slices"
	"testing"
)

// A ballot has the votes of the newest term, each of them; those of others say nothing.
func TestBallot(t *testing.T) {
	b := &ballot{}
	f := func(term uint64, want ...int32) {
		t.Helper()
		if got := b.granted(term, 9); !slices.Equal(got, want) {
			t.Errorf("term %d: got %v, want %v", term, got, want)
		}
	}
	f(3, 9)
	b.note(3, 1)
	b.note(3, 2)
	b.note(2, 5)
	f(3, 1, 2, 9)
	f(2, 9)
	b.note(4, 6)
	f(3, 9)
	f(4, 6, 9)
	b = nil
	f(4, 9)
}
