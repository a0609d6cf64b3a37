package segment

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// An index file that has not changed needs no sync, whoever wrote it. After Recover nobody knows.
func TestFlushSyncsIndexesThatChanged(t *testing.T) {
	fsys := vfs.NewMem()
	synced := make(map[string]int)
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			synced[filepath.Ext(op.Name)]++
		}
		return nil
	})
	f := func(what string, s *Segment, err error, offsets, times int) {
		t.Helper()
		clear(synced)
		must(t, err)
		must(t, s.Close())
		if synced[".index"] != offsets || synced[".timeindex"] != times {
			t.Errorf("%s: %d and %d syncs of indexes, want %d and %d", what, synced[".index"], synced[".timeindex"], offsets, times)
		}
	}
	c := Config{IndexIntervalBytes: 4096}
	s, err := Create(fsys, "/", 0, c, time.Now())
	must(t, err)
	f("empty", s, err, 0, 0)

	s, err = Open(fsys, "/", 0, c)
	must(t, err)
	f("a batch, its time", s, s.Append(batch(t, 0, 1, t0, 10)), 1, 1)

	s, err = Open(fsys, "/", 0, c)
	must(t, err)
	f("another batch of the same time", s, s.Append(batch(t, 1, 1, t0, 10)), 0, 0)

	s, err = Open(fsys, "/", 0, c)
	must(t, err)
	_, err = s.Recover(func(Located) error { return nil }, 1<<40, nil)
	f("recovered", s, err, 1, 1)
}
