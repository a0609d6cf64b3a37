package logdir

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// unpackKafka unpacks a log directory of Kafka 4.4.0 after a clean stop into root/data.
func unpackKafka(t *testing.T, fsys vfs.FS, root string) (dir string) {
	t.Helper()
	f, err := os.Open("testdata/kafka-4.4.0-kraft.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(root, "data")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := unpackEntry(fsys, filepath.Join(root, h.Name), h, r); err != nil {
			t.Fatal(err)
		}
	}
}

func unpackEntry(fsys vfs.FS, path string, h *tar.Header, r io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return vfs.MkdirAll(fsys, path, 0o755)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(fsys, path, data); err != nil {
		return err
	}
	return fsys.SetModTime(path, h.ModTime)
}

// A kafkaTopic is what Kafka's clients read of the directory.
type kafkaTopic struct {
	Topic      string
	TopicID    string
	Configs    map[string]string
	Partitions []struct {
		Partition                           int32
		LogStart, HighWatermark, LastStable int64
	}
}

func kafkaTopics(t *testing.T) map[string]kafkaTopic {
	t.Helper()
	text, err := os.ReadFile("testdata/kafka-4.4.0-kraft.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []kafkaTopic
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	topics := make(map[string]kafkaTopic)
	for _, topic := range list {
		topics[topic.Topic] = topic
	}
	return topics
}

// loadKafka loads the directory with the topics' own settings.
func loadKafka(t *testing.T, fsys vfs.FS, dir string, topics map[string]kafkaTopic) *Manager {
	t.Helper()
	m := mustOpen(t, Config{FS: fsys, Dirs: []string{dir}, NodeID: 1, RecoveryThreads: 2, ProducerIDExpiration: math.MaxInt64})
	err := m.Load(context.Background(), LoadOptions{
		LogConfig: func(name string) commitlog.Config { return LogConfig(config.Default().Topic(topics[name].Configs)) },
		Keep:      func(p topic.Partition, id uuid.UUID) bool { return topics[p.Topic].TopicID == id.String() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func checkKafka(t *testing.T, m *Manager, topics map[string]kafkaTopic) {
	t.Helper()
	count := 0
	for name, want := range topics {
		for _, p := range want.Partitions {
			count++
			l := m.Log(topic.Partition{Topic: name, Partition: p.Partition})
			if l == nil {
				t.Errorf("%s-%d is not loaded", name, p.Partition)
				continue
			}
			o := l.Offsets()
			got := [4]int64{o.LogStart, o.LastStable, o.HighWatermark, o.End}
			if want := [4]int64{p.LogStart, p.LastStable, p.HighWatermark, p.HighWatermark}; got != want {
				t.Errorf("%s-%d: start, last stable, high watermark, end: got %v, want %v", name, p.Partition, got, want)
			}
		}
	}
	if n := len(m.entries()); n != count || n == 0 {
		t.Errorf("%d logs loaded, want %d", n, count)
	}
}

// contents reads the files that hold records.
func contents(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, partition := range names(t, fsys, dir) {
		if kind, _ := classify(partition); kind != liveDir {
			continue
		}
		for _, name := range names(t, fsys, filepath.Join(dir, partition)) {
			if strings.HasSuffix(name, ".log") {
				files[partition+"/"+name] = readText(t, fsys, filepath.Join(dir, partition, name))
			}
		}
	}
	return files
}

// A directory of Kafka's opens after its clean stop, stops cleanly, and is then as it was:
// records, checkpoints and identity.
func TestKafkaClean(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS} {
		t.Run(name, func(t *testing.T) {
			dir, topics := unpackKafka(t, fsys, t.TempDir()), kafkaTopics(t)
			before, identity := contents(t, fsys, dir), mustMeta(t, fsys, dir)
			checkpoints := readCheckpoints(t, fsys, dir)
			for range 2 {
				m := loadKafka(t, fsys, dir, topics)
				checkKafka(t, m, topics)
				mustClose(t, m)
			}
			if d := cmp.Diff(before, contents(t, fsys, dir)); d != "" {
				t.Errorf("files changed (-before +after)\n%s", d)
			}
			if d := cmp.Diff(checkpoints, readCheckpoints(t, fsys, dir)); d != "" {
				t.Errorf("checkpoints (-Kafka +gregor)\n%s", d)
			}
			if got := mustMeta(t, fsys, dir); got != identity {
				t.Errorf("meta.properties: got %+v, want %+v", got, identity)
			}
		})
	}
}

func readCheckpoints(t *testing.T, fsys vfs.FS, dir string) (read offsets) {
	t.Helper()
	for k, name := range checkpointNames {
		var err error
		if read[k], err = checkpoint.ReadOffsets(fsys, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return read
}

// The same directory as after a crash: with its recovery points, and without.
func TestKafkaUnclean(t *testing.T) {
	f := func(name string, damage func(fsys vfs.FS, points string) error) {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			dir, topics := unpackKafka(t, fsys, "/"), kafkaTopics(t)
			err := errors.Join(fsys.Remove(filepath.Join(dir, checkpoint.CleanShutdown)), damage(fsys, filepath.Join(dir, checkpoint.RecoveryPoints)))
			if err != nil {
				t.Fatal(err)
			}
			before := contents(t, fsys, dir)
			m := loadKafka(t, fsys, dir, topics)
			checkKafka(t, m, topics)
			mustClose(t, m)
			if d := cmp.Diff(before, contents(t, fsys, dir)); d != "" {
				t.Errorf("files changed (-before +after)\n%s", d)
			}
		})
	}
	f("recovery points", func(vfs.FS, string) error { return nil })
	f("no recovery points", vfs.FS.Remove)
	f("recovery points beyond the end", func(fsys vfs.FS, path string) error {
		points, err := checkpoint.ReadOffsets(fsys, path)
		for p := range points {
			points[p] += 1000
		}
		return errors.Join(err, checkpoint.WriteOffsets(fsys, path, points))
	})
}

// A partition of Kafka's goes on where Kafka stopped.
func TestKafkaAppend(t *testing.T) {
	fsys := vfs.NewMem()
	dir, topics := unpackKafka(t, fsys, "/"), kafkaTopics(t)
	m := loadKafka(t, fsys, dir, topics)
	l := m.Log(topic.Partition{Topic: "codec-zstd", Partition: 0})
	end := l.Offsets().End
	mustAppend(t, l, 5)
	mustClose(t, m)
	m = loadKafka(t, fsys, dir, topics)
	wantState(t, m, l.Partition(), [3]int64{0, end + 5, end + 5})
	mustClose(t, m)
}
