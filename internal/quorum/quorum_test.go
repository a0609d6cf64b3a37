package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func options(fsys vfs.FS, dir string) Options {
	return Options{FS: fsys, Dir: dir, NodeID: 1, ClusterID: "LVQcuMjwTJeYGJVmtzDA1w", Logger: slog.New(slog.DiscardHandler)}
}

func mustOpen(t testing.TB, o Options) *Quorum {
	t.Helper()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// memDir returns a file system in memory with a log directory.
func memDir(t testing.TB) (*vfs.Mem, string) {
	t.Helper()
	fsys := vfs.NewMem()
	if err := vfs.MkdirAll(fsys, "/data", 0o755); err != nil {
		t.Fatal(err)
	}
	return fsys, "/data"
}

// topicID is an id made from a number.
func topicID(n int) (id uuid.UUID) {
	id[0], id[14], id[15] = 1, byte(n>>8), byte(n)
	return id
}

// topicRecords creates topic n with one partition.
func topicRecords(n int) []metadata.Record {
	return []metadata.Record{
		&metadata.TopicRecord{Name: fmt.Sprintf("topic-%d", n), TopicID: topicID(n)},
		&metadata.PartitionRecord{TopicID: topicID(n), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1, Directories: []uuid.UUID{uuid.Unassigned}},
	}
}

func mustPropose(t testing.TB, q *Quorum, records ...metadata.Record) *metadata.Image {
	t.Helper()
	img, err := q.Propose(context.Background(), records)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		t0 := time.Now()
		q := mustOpen(t, options(vfs.OS, dir))
		t1 := time.Since(t0)
		mustPropose(t, q, topicRecords(i)...)
		t2 := time.Since(t0) - t1
		if got := q.Image().NumTopics(); got != i+1 {
			t.Fatal(got)
		}
		t3 := time.Now()
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		t.Log(t1, t2, time.Since(t3))
	}
	list, _ := vfs.OS.ReadDir(logDir(dir))
	for _, e := range list {
		info, _ := e.Info()
		t.Log(e.Name(), info.Size())
	}
	b, _ := vfs.ReadFile(vfs.OS, logDir(dir)+"/quorum-state", 1000)
	t.Log(string(b))
	b, _ = vfs.ReadFile(vfs.OS, logDir(dir)+"/leader-epoch-checkpoint", 1000)
	t.Log(string(b))
}
