package quorum

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// A metadata log without a descriptor for its next segment goes on in the full one.
func TestOutOfDescriptors(t *testing.T) {
	fsys, dir := memDir(t)
	o := options(fsys, dir)
	o.OnFailure = func(err error) { t.Errorf("the metadata log failed: %v", err) }
	o.SnapshotBytes = 1 << 10 // a segment has a part of it
	q := mustOpen(t, o)
	mustPropose(t, q, topicRecords(0)...)
	refused := 0
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, logSuffix) {
			refused++
			return syscall.EMFILE
		}
		return nil
	})
	for n := range 100 {
		mustPropose(t, q, topicRecords(n+1)...)
	}
	fsys.SetHook(nil)
	if refused == 0 {
		t.Fatal("no segment was asked for")
	}
	mustPropose(t, q, topicRecords(101)...)
	state := stateOf(q.Image())
	mustClose(t, q)
	if got := stateOf(mustOpen(t, o).Image()); !slices.Equal(got, state) {
		t.Error("the image differs after the next start")
	}
}
