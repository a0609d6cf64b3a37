package segment

import (
	"io"
	"testing"
)

// The zero Slice is an empty one, as of a partition that has nothing to read.
func TestZeroSlice(t *testing.T) {
	var sl Slice
	for _, b := range [][]byte{nil, make([]byte, 1)} {
		if n, err := sl.ReadAt(b, 0); n != 0 || err != io.EOF {
			t.Errorf("%d bytes: got %d, %v", len(b), n, err)
		}
	}
	if _, ok := sl.Fd(); ok || sl.Size() != 0 || sl.FirstBatchIncomplete() {
		t.Error("the zero Slice is not empty")
	}
	sl.Release()
}
