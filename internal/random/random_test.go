package random

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// What a stream has depends on the seed and its name, not on the others.
func TestStreams(t *testing.T) {
	s, other := NewSeeded(7), NewSeeded(8)
	first := Uint64(s.Stream("a"))
	if got := Uint64(s.Stream("a")); got == first {
		t.Error("a stream begins again")
	}
	again := NewSeeded(7)
	b := Uint64(again.Stream("b"))
	if got := Uint64(again.Stream("a")); got != first {
		t.Errorf("got %x behind another stream, want %x", got, first)
	}
	if b == first || Uint64(other.Stream("a")) == first {
		t.Error("two names, or two seeds, have the same stream")
	}
}

// Streams are read to the full, in pieces of any size.
func TestFill(t *testing.T) {
	whole, pieces := make([]byte, 100), make([]byte, 100)
	Fill(NewSeeded(1).Stream("a"), whole)
	Fill(iotest.OneByteReader(NewSeeded(1).Stream("a")), pieces)
	if string(whole) != string(pieces) {
		t.Error("pieces of a stream are not its whole")
	}
	if one, other := Uint64(Host("a")), Uint64(Host("a")); one == other {
		t.Error("the host's randomness repeats")
	}
	defer func() {
		if recover() == nil {
			t.Error("a source that fails is no reason to panic")
		}
	}()
	Fill(io.MultiReader(strings.NewReader("short"), iotest.ErrReader(errors.New("gone"))), whole)
}
