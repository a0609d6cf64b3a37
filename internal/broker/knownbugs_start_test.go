package broker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A lockedBuffer takes the log of a broker.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startLogged is start, and returns what the broker logs.
func startLogged(t *testing.T, dirs ...string) (*Broker, *lockedBuffer) {
	t.Helper()
	c, _, err := config.Parse(nil, "", []string{"log.dirs=" + strings.Join(dirs, ","), "listeners=PLAINTEXT://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	b, err := Start(testContext(t), Options{Config: c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b, &log
}

// Foreign files and directories are named and left alone; everything else is served.
func TestKAFKA5118(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	createTopic(t, admin(t, b), "orders")
	dial(t, b).mustProduce("orders", logtest.Values(t, record.BuilderOptions{}, "v"))
	stop(t, b)
	for _, name := range []string{"lost+found", "foo"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".DS_Store"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, log := startLogged(t, dir)
	if end := endOffset(t, admin(t, b), "orders"); end != 1 {
		t.Errorf("orders ends at %d, want 1", end)
	}
	for _, name := range []string{"lost+found", "foo"} {
		if !strings.Contains(log.String(), filepath.Join(dir, name)) {
			t.Errorf("%s is not named in\n%s", name, log)
		}
	}
}

// A log directory that cannot be used at start is named and offline, and the broker serves from
// the others.
func TestKAFKA13773(t *testing.T) {
	good, bad := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, log := startLogged(t, good, bad)
	a := admin(t, b)
	createTopic(t, a, "orders")
	dial(t, b).mustProduce("orders", logtest.Values(t, record.BuilderOptions{}, "v"))
	if !strings.Contains(log.String(), "dir="+bad) {
		t.Errorf("%s is not named in\n%s", bad, log)
	}
	dirs, err := a.DescribeAllLogDirs(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	online := map[string]bool{}
	dirs.Each(func(d kadm.DescribedLogDir) { online[d.Dir] = d.Err == nil })
	if !online[good] || online[bad] || len(online) != 2 {
		t.Errorf("got log directories %v, want %s online and %s not", online, good, bad)
	}
}

// DeleteRecords, retention.ms and retention.bytes together: what all of them want gone goes. (That
// one pass is enough is a test of the log.)
func TestKAFKA12177(t *testing.T) {
	b := start(t, t.TempDir(), "log.retention.check.interval.ms=500", "log.initial.task.delay.ms=0")
	a := admin(t, b)
	createTopic(t, a, "orders", "internal.segment.bytes", "200", "retention.ms", "-1", "file.delete.delay.ms", "0")
	c := dial(t, b)
	now := time.Now().UnixMilli()
	for i := range int64(8) { // a segment each, the first four of yesterday
		at := now
		if i < 4 {
			at -= 24 * time.Hour.Milliseconds()
		}
		c.mustProduce("orders", logtest.Batch(t, record.BuilderOptions{}, record.Record{Timestamp: at, Value: make([]byte, 100)}))
	}
	log := b.logs.Log(topic.Partition{Topic: "orders"})
	if n := log.NumSegments(); n != 8 {
		t.Fatalf("%d segments, want 8", n)
	}
	var offsets kadm.Offsets
	offsets.AddOffset("orders", 0, 2, -1)
	if _, err := a.DeleteRecords(testContext(t), offsets); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is below the log start is deleted", func() bool { return log.NumSegments() == 6 })

	size, hour := "500", "3600000" // four are young enough, and three of some 170 bytes are enough
	_, err := a.AlterTopicConfigs(testContext(t), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.bytes", Value: &size}, {Op: kadm.SetConfig, Name: "retention.ms", Value: &hour},
	}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all rules are kept", func() bool { return log.NumSegments() == 3 })
	if start := startOffset(t, a, "orders"); start != 5 {
		t.Errorf("log starts at %d, want 5", start)
	}
}
