package logdir

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestTimeLeft(t *testing.T) {
	const never = unknownTime
	f := func(name string, p DirProgress, elapsed, want time.Duration) {
		t.Helper()
		if got := timeLeft(&p, elapsed); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	f("nothing loaded", DirProgress{Logs: 10, LogsMeasured: 2}, time.Second, never)
	f("by logs", DirProgress{Logs: 10, LogsMeasured: 4, LogsDone: 2}, time.Second, 4*time.Second)
	f("all loaded", DirProgress{Logs: 10, LogsMeasured: 10, LogsDone: 10}, time.Second, 0)
	f("by bytes, all begun", DirProgress{Logs: 2, LogsMeasured: 2, LogsDone: 1, Bytes: 1000, BytesDone: 250}, time.Second, 3*time.Second)
	f("by bytes, half begun", DirProgress{Logs: 4, LogsMeasured: 2, Bytes: 1000, BytesDone: 500}, time.Second, 3*time.Second)
	f("no byte read", DirProgress{Logs: 4, LogsMeasured: 2, Bytes: 1000}, time.Second, never)
}

// Progress is known before, while and after logs are loaded, and told every few seconds.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		c := testConfig(fsys, "/a", "/b")
		c.RecoveryThreads = 1
		m := mustLoad(t, c)
		var size int64
		for _, p := range []topic.Partition{orders0, orders1, orders2} {
			l := mustCreate(t, m, p)
			mustAppend(t, l, 10)
			if e, _ := m.places.entry(p); e.dir.path == "/a" {
				size += l.Size()
			}
		}
		mustClose(t, m)
		if _, _, err := checkpoint.TakeCleanShutdown(fsys, "/a/"+checkpoint.CleanShutdown, "/a"); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Remove("/a/" + checkpoint.RecoveryPoints); err != nil {
			t.Fatal(err)
		}

		var log bytes.Buffer
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Now = time.Now
		m = mustOpen(t, c)
		if p := m.Progress(); p.Done || !p.Started.IsZero() || len(p.Dirs) != 2 {
			t.Errorf("before Load: got %+v", p)
		}
		// Every log takes six seconds.
		err := m.Load(context.Background(), LoadOptions{LogConfig: func(string) commitlog.Config {
			time.Sleep(6 * time.Second)
			return commitlog.DefaultConfig()
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := Progress{Started: m.Progress().Started, Done: true, Elapsed: 12 * time.Second, Dirs: []DirProgress{
			{Path: "/a", Logs: 2, LogsMeasured: 2, LogsDone: 2, Segments: 2, SegmentsDone: 2, Bytes: size, BytesDone: size},
			{Path: "/b", Clean: true, Logs: 1, LogsDone: 1},
		}}
		time.Sleep(time.Hour)
		if d := cmp.Diff(want, m.Progress()); d != "" {
			t.Errorf("after Load (-want +got)\n%s", d)
		}
		mustClose(t, m)
		for _, text := range []string{
			`msg="loading logs" dir=/a loaded=0 logs=2`,
			`msg="loading logs" dir=/a loaded=1 logs=2 bytesChecked=`,
			"left=10s", // at second 10, half of it is done
		} {
			if !strings.Contains(log.String(), text) {
				t.Errorf("no %s in\n%s", text, log.String())
			}
		}
	})
}
