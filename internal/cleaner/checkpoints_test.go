package cleaner

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestCheckpoints(t *testing.T) {
	fsys := vfs.NewMem()
	for _, dir := range []string{"/a", "/b"} {
		if err := vfs.MkdirAll(fsys, dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFileAtomic(fsys, "/a/"+checkpoint.CleanerOffsets, []byte("0\n2\norders 0 70\norders 1 5\n")); err != nil {
		t.Fatal(err)
	}
	c := newCheckpoints(fsys, slog.New(slog.DiscardHandler))
	is := func(dir, want string) {
		t.Helper()
		text, err := vfs.ReadFile(fsys, dir+"/"+checkpoint.CleanerOffsets, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(string(text), "0\n")), "\n", ", ")
		if got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := c.get("/a", orders0); got != 70 {
		t.Errorf("got %d, want 70", got)
	}
	if got := c.get("/b", orders0); got != noCheckpoint {
		t.Errorf("got %d, want none", got)
	}
	do(c.lower("/a", orders0, 90))
	is("/a", "2, orders 0 70, orders 1 5")
	do(c.lower("/a", orders0, 60))
	is("/a", "2, orders 0 60, orders 1 5")
	do(c.carry(orders0, "/a", "/b"))
	do(c.forget("/a", orders0))
	is("/a", "1, orders 1 5")
	is("/b", "1, orders 0 60")
	do(c.carry(orders0, "/a", "/b")) // it was never cleaned where it comes from
	is("/b", "0")
	c.retain("/a", func(topic.Partition) bool { return false })
	do(c.set("/a", map[topic.Partition]int64{orders0: 1}))
	is("/a", "1, orders 0 1")

	c.dropDir("/a")
	do(c.set("/a", map[topic.Partition]int64{orders0: 2}))
	is("/a", "1, orders 0 1") // nothing is written to a disk that failed
}

// A file that makes no sense is as good as none.
func TestCheckpointDamaged(t *testing.T) {
	fsys := vfs.NewMem()
	if err := vfs.MkdirAll(fsys, "/a", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(fsys, "/a/"+checkpoint.CleanerOffsets, []byte("0\nmany\n")); err != nil {
		t.Fatal(err)
	}
	c := newCheckpoints(fsys, slog.New(slog.DiscardHandler))
	if got := c.get("/a", orders0); got != noCheckpoint {
		t.Errorf("got %d, want none", got)
	}
}
