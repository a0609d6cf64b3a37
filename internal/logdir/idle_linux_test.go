package logdir

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// An idle partition holds no descriptor, no map of a file and less than 4 KiB: after a clean
// start at once, after another one when what recovery opened was not used for a while.
func TestIdlePartitionsHoldNothing(t *testing.T) {
	const partitions = 800
	c := testConfig(vfs.OS, t.TempDir())
	c.Caches = segment.NewCaches()
	m := mustLoad(t, c)
	for i := range partitions {
		mustAppend(t, mustCreate(t, m, topic.Partition{Topic: "orders", Partition: int32(i)}), 3)
	}
	f := func(how string, stop func(*Manager) error, pass func()) {
		t.Helper()
		if err := stop(m); err != nil {
			t.Fatal(err)
		}
		m = nil
		pass()
		files, before := openFiles(t), heapBytes()
		m = mustOpen(t, c)
		lock := 1
		if err := m.Load(context.Background(), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		pass()
		if got := len(m.places.entries()); got != partitions {
			t.Fatalf("%s: %d logs, want %d", how, got, partitions)
		}
		if got := openFiles(t) - files; got > lock {
			t.Errorf("%s: %d descriptors more, want that of the lock", how, got)
		}
		if maps, err := os.ReadFile("/proc/self/maps"); err != nil || bytes.Contains(maps, []byte(c.Dirs[0])) {
			t.Errorf("%s: a file is mapped, or %v", how, err)
		}
		if got := (heapBytes() - before) / partitions; got > 4<<10 {
			t.Errorf("%s: %d bytes a partition, want 4 KiB at most", how, got)
		}
	}
	idle := func() {
		c.Caches.CloseIdle() // begins to count
		c.Caches.CloseIdle()
	}
	f("clean start", func(m *Manager) error { return m.Close(context.Background()) }, func() {})
	f("after a kill", func(m *Manager) error { return m.dirs.unlock() }, idle)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
