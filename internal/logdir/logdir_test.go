package logdir

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ordersID = uuid.UUID{0: 1}
	orders0  = topic.Partition{Topic: "orders", Partition: 0}
	orders1  = topic.Partition{Topic: "orders", Partition: 1}
	orders2  = topic.Partition{Topic: "orders", Partition: 2}
)

// testConfig has no task but the deletion of files.
func testConfig(fsys vfs.FS, dirs ...string) Config {
	return Config{FS: fsys, Dirs: dirs, NodeID: 1, ClusterID: "cluster", RecoveryThreads: 2}
}

// mustOpen opens without loading. The manager is closed with the test.
func mustOpen(t testing.TB, c Config) *Manager {
	t.Helper()
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func mustLoad(t testing.TB, c Config) *Manager {
	t.Helper()
	m := mustOpen(t, c)
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	return m
}

func mustCreate(t testing.TB, m *Manager, p topic.Partition) *commitlog.Log {
	t.Helper()
	l, err := m.Create(p, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustClose closes and checks every log that was open.
func mustClose(t testing.TB, m *Manager) {
	t.Helper()
	for p, l := range m.Logs() {
		if err := l.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// recordTime lies before the clock of a synctest bubble.
const recordTime = 946_000_000_000

// batch is a batch of count records.
func batch(t testing.TB, count int) []byte {
	t.Helper()
	return logtest.Batch(t, record.BuilderOptions{}, slices.Repeat([]record.Record{{Timestamp: recordTime, Value: []byte("value")}}, count)...)
}

// mustAppend appends count records, all of them below the high watermark then.
func mustAppend(t testing.TB, l *commitlog.Log, count int) {
	t.Helper()
	info, err := l.AppendAsLeader(batch(t, count), 0, commitlog.AppendOptions{Origin: record.Client})
	if err != nil {
		t.Fatal(err)
	}
	l.SetHighWatermark(info.LastOffset + 1)
}

func mustMkdir(t testing.TB, fsys vfs.FS, path string) {
	t.Helper()
	if err := vfs.MkdirAll(fsys, path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func mustWrite(t testing.TB, fsys vfs.FS, path, text string) {
	t.Helper()
	mustMkdir(t, fsys, filepath.Dir(path))
	if err := vfs.WriteFileAtomic(fsys, path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func readText(t testing.TB, fsys vfs.FS, path string) string {
	t.Helper()
	text, err := vfs.ReadFile(fsys, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exists(t testing.TB, fsys vfs.FS, path string) bool {
	t.Helper()
	_, err := fsys.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		t.Fatal(err)
	}
	return err == nil
}

// names lists a directory, the random id in a name replaced by "ID".
func names(t testing.TB, fsys vfs.FS, path string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		name := e.Name()
		if kind, _ := classify(name); kind == deletedDir || kind == strayDir {
			name = name[:strings.LastIndexByte(name, '.')] + ".ID" + name[strings.LastIndexByte(name, '-'):]
		}
		list = append(list, name)
	}
	return list
}

// state is log start, high watermark and log end of a log.
func state(l *commitlog.Log) [3]int64 {
	o := l.Offsets()
	return [3]int64{o.LogStart, o.HighWatermark, o.End}
}

func wantState(t testing.TB, m *Manager, p topic.Partition, want [3]int64) {
	t.Helper()
	l := m.Log(p)
	if l == nil {
		t.Fatalf("%v: no log", p)
	}
	if got := state(l); got != want {
		t.Errorf("%v: log start, high watermark, end: got %v, want %v", p, got, want)
	}
}

func wantLogs(t testing.TB, m *Manager, want ...topic.Partition) {
	t.Helper()
	got := slices.SortedFunc(maps.Keys(maps.Collect(m.Logs())), topic.Partition.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("logs: got %v, want %v", got, want)
	}
}

func checkpointText(t testing.TB, fsys vfs.FS, dir string, k checkpointKind) string {
	t.Helper()
	text := strings.TrimPrefix(readText(t, fsys, filepath.Join(dir, checkpointNames[k])), "0\n")
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", ", ")
}

func hasMarker(t testing.TB, fsys vfs.FS, dir string) bool {
	t.Helper()
	return exists(t, fsys, filepath.Join(dir, checkpoint.CleanShutdown))
}
