package logdir

import (
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A stop makes the names of new logs durable with one sync of the log directory, and those of
// the files of each with one of its own.
func TestStopSyncsDirectoriesOnce(t *testing.T) {
	const partitions = 20
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	for i := range partitions {
		mustAppend(t, mustCreate(t, m, topic.Partition{Topic: "orders", Partition: int32(i)}), 3)
	}
	var mu sync.Mutex
	synced := make(map[string]int)
	fsys.SetHook(func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == vfs.OpSyncDir {
			synced[op.Name]++
		}
		return nil
	})
	mustClose(t, m)
	fsys.SetHook(nil)
	if got := synced["/a"]; got < 1 || got > 8 { // checkpoints, the marker and the names
		t.Errorf("the log directory was synced %d times with %d logs", got, partitions)
	}
	for i := range partitions {
		name := "/a/" + topic.Partition{Topic: "orders", Partition: int32(i)}.String()
		if got := synced[name]; got != 1 {
			t.Errorf("%s was synced %d times, want once", name, got)
		}
	}
}
