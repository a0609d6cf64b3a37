package checkpoint

import (
	"strings"
	"testing"
)

// Offsets have no sign and fit in 63 bits; ids of snapshots have all their digits.
func TestNames(t *testing.T) {
	producers := func(name string, want int64) {
		t.Helper()
		if got, ok := ParseProducersName(name); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: got %d, %v, want %d", name, got, ok, want)
		}
	}
	producers("00000000000000000007.snapshot", 7)
	producers("7.snapshot", 7)
	producers("7.x.snapshot", 7)
	producers("00000000000000000007", -1)
	producers("00000000000000000007.snapshot.deleted", -1)
	producers("0000000000000000000x.snapshot", -1)
	producers("+0000000000000000007.snapshot", -1)
	producers("-7.snapshot", -1)
	producers(".snapshot", -1)
	producers(strings.Repeat("9", 20)+".snapshot", -1)

	snapshot := func(name string, want bool) {
		t.Helper()
		end, epoch, ok := ParseSnapshotName(name)
		if ok != want || ok && SnapshotID(end, epoch)+SnapshotSuffix != name {
			t.Errorf("%s: got %d, %d, %v", name, end, epoch, ok)
		}
	}
	snapshot("00000000000000000007-0000000003.checkpoint", true)
	snapshot("00000000000000000000-0000000000.checkpoint", true)
	snapshot("7-3.checkpoint", false)
	snapshot("00000000000000000007-0000000003", false)
	snapshot("00000000000000000007.checkpoint", false)
	snapshot("00000000000000000007--000000003.checkpoint", false)
	snapshot("00000000000000000007-9999999999.checkpoint", false)
}
