package commitlog

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// A real file system that is full.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a tmpfs: %v: %s", err, out)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	o := testOptions(vfs.OS)
	o.Dir = dir + "/t-0"
	o.Config.SegmentBytes = 200 << 10
	o.Config.RetentionBytes = 300 << 10
	o.OnFailure = func(err error) { t.Errorf("log failed: %v", err) }
	var later inBackground
	o.DeleteLater = func(_ time.Duration, remove func()) { later.add(remove) }
	must(t, os.Mkdir(o.Dir, 0o755))
	l, err := Open(o)
	must(t, err)
	fill := func() (appended int) {
		for {
			_, err := l.AppendAsLeader(spec{size: 7000}.build(t), 0, AppendOptions{})
			l.SetHighWatermark(l.Offsets().End)
			if errors.Is(err, ErrStorage) {
				return appended
			}
			must(t, err)
			appended++
		}
	}
	n := fill()
	if n < 100 || l.Failed() != nil {
		t.Fatalf("%d appends, then %v", n, l.Failed())
	}
	if values, end := readAll(t, l, 0, ReadUncommitted); len(values) != n || end != int64(n) {
		t.Errorf("%d of %d records are read", len(values), n)
	}
	deleted, err := l.DeleteOldSegments(time.Now())
	if err != nil || deleted == 0 {
		t.Fatalf("deleted %d segments, %v", deleted, err)
	}
	later.run()
	if more := fill(); more < 50 {
		t.Errorf("%d appends with room again", more)
	}
	mustCheck(t, l)
	if _, err := l.DeleteOldSegments(time.Now()); err != nil {
		t.Error(err)
	}
	must(t, l.Close())
}
