package broker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/ownership"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// asFound are settings under which a start changes no log of a golden set.
var asFound = []string{"log.cleaner.enable=false", "log.retention.ms=-1", "producer.id.expiration.ms=2147483647", "offsets.retention.minutes=2147483647"}

// unpack returns a directory of a golden set.
func unpack(t testing.TB, set, name string) string {
	t.Helper()
	root := shortDir(t)
	golden.UnpackIf(t, vfs.OS, root, set, func(path string) bool { return strings.HasPrefix(path, name+"/") && !hasIndex(path) })
	return filepath.Join(root, name)
}

// hasIndex: the indexes of the metadata log are empty and 20 MB.
func hasIndex(path string) bool {
	return strings.Contains(path, "__cluster_metadata-0/") && (strings.HasSuffix(path, ".index") || strings.HasSuffix(path, ".timeindex"))
}

// tryStart starts a broker that is stopped again at once.
func tryStart(t testing.TB, dirs string, set ...string) error {
	t.Helper()
	c, _, err := config.Parse(nil, "", append(slices.Concat([]string{"log.dirs=" + dirs, "listeners=PLAINTEXT://127.0.0.1:0"}, asFound), set...))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Start(testContext(t), Options{Config: c, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		stop(t, b)
	}
	return err
}

// treeOf is the content of all files.
func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			tree[path] = "directory"
			return err
		}
		b, err := os.ReadFile(path)
		tree[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// wantRefused wants a start to be refused with these words, and nothing to be changed by it.
func wantRefused(t *testing.T, dir, dirs string, want ...string) {
	t.Helper()
	before := treeOf(t, dir)
	err := tryStart(t, dirs)
	if !errors.Is(err, ownership.ErrRefused) && !errors.Is(err, quorum.ErrCorrupt) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
	if after := treeOf(t, dir); !maps.Equal(before, after) {
		t.Errorf("the refused start has changed files: %v", difference(before, after))
	}
}

func difference(a, b map[string]string) (names []string) {
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// renamed lists the directories that were put aside.
func renamed(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*-stray"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func mustWriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The directories of nodes that decide alone start, and again, with every partition.
func TestKafkaDirectoriesStart(t *testing.T) {
	for _, set := range []string{"kafka-4.4.0-kraft", "kafka-4.4.0-kraft-dynamic", "kafka-3.9.1-kraft", "kafka-4.4.0-crash", "kafka-4.4.0-torn"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, set, "data")
			for range 2 {
				b := start(t, dir, asFound...)
				for at, mp := range partitionsOf(b.quorum.Image()) {
					if l := b.logs.Log(at); l == nil && slices.Contains(mp.Replicas, 1) {
						t.Errorf("%v is not served", at)
					}
				}
				stop(t, b)
			}
			if list := renamed(t, dir); len(list) > 0 {
				t.Errorf("put aside: %v", list)
			}
		})
	}
}

func partitionsOf(img *metadata.Image) map[topic.Partition]*metadata.Partition {
	list := make(map[topic.Partition]*metadata.Partition)
	for topicOf := range img.Topics() {
		for n, p := range topicOf.Partitions {
			list[topic.Partition{Topic: topicOf.Name, Partition: int32(n)}] = p
		}
	}
	return list
}

// A node of three is refused, whatever is missing of what it says, and taken over on demand for good.
func TestOneOfThreeVoters(t *testing.T) {
	for _, name := range []string{"data1", "data2", "data3"} {
		dir := unpack(t, "kafka-4.4.0-three-nodes", name)
		wantRefused(t, dir, dir, "LeaderChange of epoch 5", "the voters are 1, 2, 3", "only one of them", "--take-over-as-only-voter")
	}
	dir := unpack(t, "kafka-4.4.0-three-nodes", "data2")
	if err := os.Remove(filepath.Join(dir, "__cluster_metadata-0", "quorum-state")); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, dir, "the voters are 1, 2, 3")
	if err := tryStart(t, dir, "gregor.take.over.as.only.voter=true"); err != nil {
		t.Fatal(err)
	}
	if err := tryStart(t, dir); err != nil {
		t.Errorf("after the take-over: %v", err)
	}
}

// A directory without the one that has the metadata log is refused; together they start, the
// metadata directory first.
func TestMetadataDirectoryLeftOut(t *testing.T) {
	first := unpack(t, "kafka-4.4.0-kraft", "data")
	root := filepath.Dir(first)
	second := filepath.Join(root, "second")
	meta, err := os.ReadFile(filepath.Join(first, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(second, 0o755); err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(meta), "\n"), func(line string) bool { return strings.HasPrefix(line, "directory.id") })
	mustWriteFile(t, filepath.Join(second, "meta.properties"), strings.Join(lines, "\n"))
	for _, name := range []string{"deleted-0", "deleted-1", "codec-gzip-0", ".kafka_cleanshutdown"} {
		if err := os.Rename(filepath.Join(first, name), filepath.Join(second, name)); err != nil {
			t.Fatal(err)
		}
	}
	wantRefused(t, root, second, "codec-gzip-0 has a topic id", "__cluster_metadata-0 is missing or empty", "metadata.log.dir")
	wantRefused(t, root, second+","+first, "the metadata log is "+filepath.Join(first, "__cluster_metadata-0"), "set metadata.log.dir")
	if err := tryStart(t, first+","+second); err != nil {
		t.Fatal(err)
	}
	if list := append(renamed(t, first), renamed(t, second)...); len(list) > 0 {
		t.Errorf("put aside: %v", list)
	}
	if err := tryStart(t, second+","+first, "metadata.log.dir="+first); err != nil {
		t.Error(err)
	}
}

// A metadata log that is missing or cut is refused. What is left serves on demand; what that does
// not know stays where it is, then and later.
func TestMetadataLogMissing(t *testing.T) {
	dir := unpack(t, "kafka-4.4.0-kraft", "data")
	path := filepath.Join(dir, "__cluster_metadata-0", "00000000000000000000.log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 100, len(whole) / 2, len(whole) - 1} {
		mustWriteFile(t, path, string(whole[:size]))
		wantRefused(t, dir, dir, "ends at offset", "00000000000000000401.snapshot: written when the log ended at offset 401", "--accept-metadata-loss")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, dir, "ends at offset 0", "00000000000000000401.snapshot")
	for _, set := range [][]string{{"gregor.accept.metadata.loss=true"}, nil} {
		if err := tryStart(t, dir, set...); err != nil {
			t.Fatalf("with %v: %v", set, err)
		}
		if list := renamed(t, dir); len(list) > 0 {
			t.Errorf("put aside: %v", list)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "txn-open-0")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gregor-left-alone")); err != nil {
		t.Error(err)
	}
	if err := tryStart(t, dir, "gregor.put.aside.strays=true"); err != nil {
		t.Fatal(err)
	}
	if list := renamed(t, dir); len(list) == 0 {
		t.Error("nothing put aside on demand")
	}
	if _, err := os.Stat(filepath.Join(dir, "gregor-left-alone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of what was left alone: %v, want none", err)
	}
}

// A snapshot that is not of its name is named at once.
func TestWrongSnapshotNamed(t *testing.T) {
	dir := unpack(t, "kafka-4.4.0-kraft", "data")
	wrong := filepath.Join(dir, "__cluster_metadata-0", "00000000000000000323-0000000001.checkpoint")
	b, err := os.ReadFile(filepath.Join(dir, "__cluster_metadata-0", "00000000000000000174-0000000001.checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(wrong), os.WriteFile(wrong, b, 0o400)); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, dir, wrong, "not of the offset and epoch in its name")
	if err := os.Remove(wrong); err != nil { // the way out
		t.Fatal(err)
	}
	if err := tryStart(t, dir); err != nil {
		t.Error(err)
	}
}

// One damaged partition.metadata costs nothing, after Kafka's clean stop, gregor's and none.
func TestDamagedTopicID(t *testing.T) {
	damages := map[string]func(text string) string{
		"bit":     func(text string) string { return text[:39] + string(text[39]^4) + text[40:] },
		"empty":   func(string) string { return "" },
		"other's": func(string) string { return "version: 0\ntopic_id: " },
		"missing": nil,
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := unpack(t, "kafka-4.4.0-kraft", "data")
			path := filepath.Join(dir, "compact-empty-0", "partition.metadata")
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			foreign, err := os.ReadFile(filepath.Join(dir, "codec-gzip-0", "partition.metadata"))
			if err != nil {
				t.Fatal(err)
			}
			for _, clean := range []string{"Kafka's", "gregor's", "no"} {
				switch text := ""; {
				case damage == nil:
					err = os.Remove(path)
				case name == "other's":
					err = os.WriteFile(path, foreign, 0o644)
				default:
					text = damage(string(want))
					err = os.WriteFile(path, []byte(text), 0o644)
				}
				if clean == "no" {
					err = errors.Join(err, os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")))
				}
				if err != nil {
					t.Fatal(err)
				}
				b := start(t, dir, asFound...)
				if l := b.logs.Log(topic.Partition{Topic: "compact-empty"}); l == nil || l.Offsets().End != 343 {
					t.Errorf("%s clean stop: the log is not there, or not whole", clean)
				}
				stop(t, b)
				if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
					t.Errorf("%s clean stop: partition.metadata %q, %v, want %q", clean, got, err, want)
				}
				if list := renamed(t, dir); len(list) > 0 {
					t.Errorf("%s clean stop: put aside: %v", clean, list)
				}
			}
		})
	}
}

// A topic that was deleted and made again while a directory of it was away: what comes back is not
// the new topic's, and the log knows that it is gone.
func TestDeletedTopicComesBack(t *testing.T) {
	dir := shortDir(t)
	aside := filepath.Join(shortDir(t), "aside")
	b := start(t, dir)
	a := admin(t, b)
	createTopic(t, a, "orders")
	produceTo(t, b, "orders", "old")
	stop(t, b)
	old := filepath.Join(dir, "orders-0")
	if err := os.CopyFS(aside, os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	b = start(t, dir)
	a = admin(t, b)
	if _, err := a.DeleteTopics(testContext(t), "orders"); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	if err := os.CopyFS(old, os.DirFS(aside)); err != nil {
		t.Fatal(err)
	}
	b = start(t, dir)
	if list := renamed(t, dir); len(list) != 1 || b.logs.Log(topic.Partition{Topic: "orders"}) != nil {
		t.Errorf("a deleted topic is back: put aside %v", list)
	}
	createTopic(t, admin(t, b), "orders")
	if end := endOffset(t, admin(t, b), "orders"); end != 0 {
		t.Errorf("the new topic ends at %d, want 0", end)
	}
	stop(t, b)
	if err := errors.Join(os.RemoveAll(old), os.CopyFS(old, os.DirFS(aside))); err != nil {
		t.Fatal(err)
	}
	b = start(t, dir)
	if end := endOffset(t, admin(t, b), "orders"); end != 0 || len(renamed(t, dir)) != 2 {
		t.Errorf("the topic that was made again ends at %d, want 0; put aside %v", end, renamed(t, dir))
	}
}

// Directories of brokers with ZooKeeper start, twice, and nothing in them gets another name.
func TestZooKeeperDirectories(t *testing.T) {
	for _, set := range []string{"kafka-1.1.1-mixed", "kafka-0.8.2.2", "kafka-0.10.2.2"} {
		dir := unpack(t, set, "data")
		for range 2 {
			if err := tryStart(t, dir); err != nil {
				t.Fatalf("%s: %v", set, err)
			}
		}
		if list := renamed(t, dir); len(list) > 0 {
			t.Errorf("%s: put aside: %v", set, list)
		}
	}
}

func produceTo(t *testing.T, b *Broker, topic, value string) {
	t.Helper()
	if err := connect(t, b).ProduceSync(testContext(t), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// When a change of the metadata cannot be applied, /health says so, and what is there is served.
func TestFrozenMetadata(t *testing.T) {
	b := start(t, shortDir(t), "gregor.http.listener=127.0.0.1:0")
	a := admin(t, b)
	createTopic(t, a, "orders")
	b.freeze(errors.New("metadata batch at offset 7: no topic has the id"))
	status, text := httpGet(t, b, "/health")
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "metadata batch at offset 7") {
		t.Errorf("/health: got %d %s", status, text)
	}
	produceTo(t, b, "orders", "still")
	if end := endOffset(t, a, "orders"); end != 1 {
		t.Errorf("log end %d, want 1", end)
	}
}

// A start that is refused lets go of everything.
func TestRefusedStartCanBeRepeated(t *testing.T) {
	dir := unpack(t, "kafka-4.4.0-three-nodes", "data2")
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := tryStart(t, dir); !errors.Is(err, ownership.ErrRefused) || ctx.Err() != nil {
			t.Errorf("got %v, want a refusal", err)
		}
		cancel()
	}
}
