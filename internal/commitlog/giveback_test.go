package commitlog

import (
	"slices"
	"testing"
)

// A snapshot that was not synced has to be, once, if it is still there.
func TestGiveBack(t *testing.T) {
	s := snapshots{offsets: []int64{1, 2, 3}, unsynced: []int64{2, 3}}
	taken := s.takeUnsynced(2)
	if !slices.Equal(taken, []int64{2}) || !slices.Equal(s.unsynced, []int64{3}) {
		t.Errorf("taken %v, left %v", taken, s.unsynced)
	}
	s.giveBack([]int64{2, 3, 9})
	if slices.Sort(s.unsynced); !slices.Equal(s.unsynced, []int64{2, 3}) {
		t.Errorf("given back: %v", s.unsynced)
	}
}
