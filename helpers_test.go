package gregor_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor"
)

// testTimeout bounds everything a test waits for.
const testTimeout = 60 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// start starts a broker on a free port. It is closed with the test at the latest.
func start(t *testing.T, dir string, set ...string) *gregor.Broker {
	t.Helper()
	b, err := gregor.Start(testContext(t), gregor.Options{DataDir: dir, Listen: "127.0.0.1:0", Set: set})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

func stop(t *testing.T, b *gregor.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t *testing.T, client *kgo.Client, name string, partitions int32) kadm.TopicID {
	t.Helper()
	r, err := kadm.NewClient(client).CreateTopic(testContext(t), partitions, 1, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// numbered returns records of a topic with the values first, first+1 ... and, as a key, the
// same.
func numbered(topic string, first, count int) []*kgo.Record {
	list := make([]*kgo.Record, count)
	for i := range list {
		text := fmt.Sprintf("%06d", first+i)
		list[i] = &kgo.Record{Topic: topic, Key: []byte(text), Value: []byte(text), Headers: []kgo.RecordHeader{{Key: "n", Value: []byte(text)}}}
	}
	return list
}

func produce(t *testing.T, client *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := client.ProduceSync(testContext(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// consume reads a number of records of a topic from its beginning and returns how often it
// saw each value.
func consume(t *testing.T, addr, topic string, count int) map[string]int {
	t.Helper()
	client := connect(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	return poll(t, client, count)
}

func poll(t *testing.T, client *kgo.Client, count int) map[string]int {
	t.Helper()
	ctx := testContext(t)
	seen := map[string]int{}
	for n := 0; n < count; {
		fetches := client.PollRecords(ctx, count-n)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", n, count, err)
		}
		for r := range fetches.RecordsAll() {
			if string(r.Key) != string(r.Value) || len(r.Headers) != 1 || string(r.Headers[0].Value) != string(r.Value) {
				t.Errorf("record %d of partition %d: key %q, value %q, headers %v", r.Offset, r.Partition, r.Key, r.Value, r.Headers)
			}
			seen[string(r.Value)]++
			n++
		}
	}
	return seen
}

// expectOnce checks that each of the records was seen, and once.
func expectOnce(t *testing.T, seen map[string]int, records []*kgo.Record) {
	t.Helper()
	for _, r := range records {
		if n := seen[string(r.Value)]; n != 1 {
			t.Errorf("record %s was seen %d times", r.Value, n)
		}
	}
}

// endOffsets is the sum of the log ends of a topic's partitions.
func endOffsets(t *testing.T, client *kgo.Client, topic string) int64 {
	t.Helper()
	listed, err := kadm.NewClient(client).ListEndOffsets(testContext(t), topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	listed.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// tree lists the files below a directory with their sizes; nil when there is none.
func tree(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files, err := walk(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// settledTree is tree for the directory of a broker that has just started: it waits until
// what the start writes in the background is there and no file is on its way to its name.
func settledTree(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	for ctx := testContext(t); ; {
		files, err := walk(dir)
		_, begun := files[filepath.Join(dir, "__cluster_metadata-0", "leader-epoch-checkpoint")]
		if err == nil && begun && !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(path string) bool { return strings.HasSuffix(path, ".tmp") }) {
			return files
		}
		if ctx.Err() != nil {
			t.Fatalf("%s does not settle: %v", dir, err)
		}
		runtime.Gosched()
	}
}

// copyTree copies the directory of a running broker, whose files may get another name
// meanwhile: then it begins again.
func copyTree(t *testing.T, to, from string) {
	t.Helper()
	for ctx := testContext(t); ; {
		err := os.CopyFS(to, withoutSockets{os.DirFS(from)})
		if err == nil {
			return
		}
		if !os.IsNotExist(err) || ctx.Err() != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutSockets is a directory without what cannot be copied.
type withoutSockets struct{ fs.FS }

func (f withoutSockets) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Type() == fs.ModeSocket }), err
}

func walk(dir string) (map[string]int64, error) {
	files := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) && path == dir {
			return filepath.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files[path] = -1
		if !d.IsDir() {
			files[path] = info.Size()
		}
		return nil
	})
	return files, err
}
