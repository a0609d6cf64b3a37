package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/gregor-kafka/gregor/vfs"
)

// eager are broker settings with which a log is cleaned as soon as anything is dirty.
var eager = []string{"log.cleaner.backoff.ms=5", "log.cleaner.min.cleanable.ratio=0", "log.cleanup.policy=compact", "log.cleaner.dedupe.buffer.size=4194304"}

// keyed is a batch of records of now with keys k0, k1 ... and one value.
func keyed(t *testing.T, keys int, value string) record.Batch {
	t.Helper()
	records := make([]record.Record, keys)
	for i := range records {
		records[i] = record.Record{Timestamp: time.Now().UnixMilli(), Key: fmt.Appendf(nil, "k%d", i), Value: []byte(value)}
	}
	return logtest.Batch(t, record.BuilderOptions{}, records...)
}

// fetchAll reads partition 0 of a topic from its start.
func fetchAll(t *testing.T, b *Broker, name string) (list []string) {
	t.Helper()
	a := admin(t, b)
	c := dial(t, b)
	for offset, end := startOffset(t, a, name), endOffset(t, a, name); offset < end; {
		p := c.fetch(name, offset)
		if p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
			t.Fatalf("fetch at %d: error %d, %d bytes", offset, p.ErrorCode, len(p.RecordBatches))
		}
		list = append(list, values(t, p.RecordBatches)...)
		for batch, err := range record.Batches(p.RecordBatches) {
			if err != nil {
				t.Fatal(err)
			}
			offset = batch.NextOffset()
		}
	}
	return list
}

// cleanPoint is what the checkpoint of a log directory says of partition 0 of a topic, or -1.
func cleanPoint(t *testing.T, dir, name string) int64 {
	t.Helper()
	offsets, err := checkpoint.ReadOffsets(vfs.OS, filepath.Join(dir, checkpoint.CleanerOffsets))
	if err != nil {
		t.Fatal(err)
	}
	if offset, ok := offsets[topic.Partition{Topic: name}]; ok {
		return offset
	}
	return -1
}

func partitionOf(name string) topic.Partition { return topic.Partition{Topic: name} }

// roll starts a new segment.
func roll(t *testing.T, b *Broker, name string) {
	t.Helper()
	if err := b.logs.Log(partitionOf(name)).Roll(); err != nil {
		t.Fatal(err)
	}
}

// A topic is compacted while it is written and read, and is the same after a restart.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, eager...)
	createTopic(t, admin(t, b), "t")
	c := dial(t, b)
	for i := range 10 {
		c.mustProduce("t", keyed(t, 10, fmt.Sprint(i)))
		roll(t, b, "t")
	}
	want := []string{"90=9", "91=9", "92=9", "93=9", "94=9", "95=9", "96=9", "97=9", "98=9", "99=9"}
	eventually(t, "the log is compacted", func() bool { return slices.Equal(fetchAll(t, b, "t"), want) })
	eventually(t, "the checkpoint is written", func() bool { return cleanPoint(t, dir, "t") == 100 })
	if start, end := startOffset(t, admin(t, b), "t"), endOffset(t, admin(t, b), "t"); start != 0 || end != 100 {
		t.Errorf("offsets %d to %d, want 0 to 100", start, end)
	}
	stop(t, b)
	b = start(t, dir)
	if got := fetchAll(t, b, "t"); !slices.Equal(got, want) {
		t.Errorf("after a restart: %v", got)
	}
}

// The cleaner's settings change while the broker runs, threads by a factor of two at most.
func TestCleanerReconfigured(t *testing.T) {
	b := start(t, t.TempDir(), "log.cleaner.backoff.ms=3600000", "log.cleaner.min.cleanable.ratio=0", "log.cleanup.policy=compact")
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	dirty := func() {
		c.mustProduce("t", keyed(t, 10, "v"))
		roll(t, b, "t")
	}
	clean := func() bool { return len(fetchAll(t, b, "t")) == 10 }
	dirty()
	eventually(t, "the first look is over", func() bool { return b.cleaner.Stats().SinceLastChoice >= 0 })
	dirty()
	if err := setBrokers(t, a, "log.cleaner.threads", "3"); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("three threads: %v, want %v", err, kerr.InvalidRequest)
	}
	if err := setBrokers(t, a, "log.cleaner.threads", "2"); err != nil {
		t.Error(err)
	}
	eventually(t, "new threads look at once", clean)
	if got := len(b.cleaner.Stats().Threads); got != 2 {
		t.Errorf("%d threads", got)
	}
	dirty()
	if err := setBrokers(t, a, "log.cleaner.backoff.ms", "5"); err != nil {
		t.Error(err)
	}
	eventually(t, "the back-off is shorter", clean)
	for key, value := range map[string]string{"log.cleaner.enable": "false", "log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.io.buffer.load.factor": "0"} {
		if err := setBrokers(t, a, key, value); !errors.Is(err, kerr.InvalidRequest) {
			t.Errorf("%s=%s: %v, want %v", key, value, err, kerr.InvalidRequest)
		}
	}
	if err := setTopic(t, a, "t", "min.compaction.lag.ms", fmt.Sprint(math.MaxInt64-1)); err != nil {
		t.Error(err)
	}
	dirty()
	if err := setTopic(t, a, "t", "cleanup.policy", "compact,delete"); err != nil {
		t.Error(err)
	}
	if err := setTopic(t, a, "t", "retention.ms", "1"); err != nil {
		t.Error(err)
	}
	eventually(t, "compact,delete has retention", func() bool { return startOffset(t, a, "t") == endOffset(t, a, "t") })
}

// KAFKA-7400, KAFKA-9133: DeleteRecords moves the start of a compacted topic past whole segments,
// also into the active one: they go, and cleaning goes on from there.
func TestKAFKA9133(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, eager...)
	a := admin(t, b)
	createTopic(t, a, "t", "min.cleanable.dirty.ratio", "1", "cleanup.policy", "compact,delete", "retention.ms", "-1")
	c := dial(t, b)
	for range 5 {
		c.mustProduce("t", keyed(t, 10, "v"))
		roll(t, b, "t")
	}
	c.mustProduce("t", keyed(t, 10, "v"))
	deleteTo := func(offset int64, segments int) {
		t.Helper()
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, offset, -1)
		r, err := a.DeleteRecords(testContext(t), offsets)
		if err != nil || r.Error() != nil {
			t.Fatal(err, r.Error())
		}
		eventually(t, "segments below the start go", func() bool { return b.logs.Log(partitionOf("t")).NumSegments() == segments })
	}
	deleteTo(35, 3)
	deleteTo(55, 1)
	if err := setTopic(t, a, "t", "min.cleanable.dirty.ratio", "0"); err != nil {
		t.Fatal(err)
	}
	c.mustProduce("t", keyed(t, 5, "new"))
	roll(t, b, "t")
	eventually(t, "cleaning goes on", func() bool { return len(fetchAll(t, b, "t")) == 10 })
	eventually(t, "the checkpoint follows", func() bool { return cleanPoint(t, dir, "t") == 65 })
}

// What the cleaner knows goes with the log: to another directory, and away with it.
func TestCheckpointFollowsTheLog(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	b := start(t, one+","+two, eager...)
	a := admin(t, b)
	createTopic(t, a, "t")
	c := dial(t, b)
	c.mustProduce("t", keyed(t, 10, "v"))
	roll(t, b, "t")
	_, from := b.logs.Place(partitionOf("t"))
	to := map[string]string{one: two, two: one}[from]
	eventually(t, "cleaned", func() bool { return cleanPoint(t, from, "t") == 10 })

	if err := b.logs.Move(partitionOf("t"), to); err != nil {
		t.Fatal(err)
	}
	eventually(t, "moved", func() bool { _, at := b.logs.Place(partitionOf("t")); return at == to })
	eventually(t, "the checkpoint moved", func() bool { return cleanPoint(t, to, "t") == 10 && cleanPoint(t, from, "t") == -1 })
	c.mustProduce("t", keyed(t, 10, "w"))
	roll(t, b, "t")
	eventually(t, "cleaned again", func() bool { return cleanPoint(t, to, "t") == 20 })

	if err := b.logs.TruncateTo(partitionOf("t"), 15); err != nil {
		t.Fatal(err)
	}
	if got := cleanPoint(t, to, "t"); got != 15 {
		t.Errorf("after a truncation to 15: %d", got)
	}
	if r, err := a.DeleteTopic(testContext(t), "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if got := cleanPoint(t, to, "t"); got != -1 {
		t.Errorf("of a deleted topic: %d", got)
	}
}

// A checkpoint of an earlier topic of the same name is none of the new one's.
func TestCheckpointOfAnEarlierLog(t *testing.T) {
	dir := t.TempDir()
	if err := vfs.WriteFileAtomic(vfs.OS, filepath.Join(dir, checkpoint.CleanerOffsets), []byte("0\n1\nt 0 10\n")); err != nil {
		t.Fatal(err)
	}
	b := start(t, dir, eager...)
	createTopic(t, admin(t, b), "t")
	if got := cleanPoint(t, dir, "t"); got != -1 {
		t.Errorf("clean up to %d", got)
	}
	c := dial(t, b)
	c.mustProduce("t", keyed(t, 10, "v"))
	c.mustProduce("t", keyed(t, 10, "w"))
	roll(t, b, "t")
	eventually(t, "all is cleaned", func() bool { return len(fetchAll(t, b, "t")) == 10 })
}

// A directory that fails takes the cleaner's knowledge of it along, and the other is cleaned.
func TestDirFailsUnderTheCleaner(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	b := start(t, one+","+two, append(eager, "log.cleaner.io.max.bytes.per.second=10")...)
	a := admin(t, b)
	createTopic(t, a, "t")
	createTopic(t, a, "u")
	c := dial(t, b)
	for _, name := range []string{"t", "u"} {
		c.mustProduce(name, keyed(t, 10, "v"))
		c.mustProduce(name, keyed(t, 10, "v"))
		roll(t, b, name)
	}
	eventually(t, "a cleaning is under way", func() bool { return b.cleaner.Stats().Threads[0].Partition != "" })
	running, err := topic.ParsePartition(b.cleaner.Stats().Threads[0].Partition)
	if err != nil {
		t.Fatal(err)
	}
	_, dir := b.logs.Place(running)
	if err := b.logs.Fail(dir, errors.New("disk on fire")); err != nil {
		t.Fatal(err)
	}
	if err := setBrokers(t, a, "log.cleaner.io.max.bytes.per.second", "1e9"); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"t": "u", "u": "t"}[running.Topic]
	eventually(t, "the other log is cleaned", func() bool { return len(fetchAll(t, b, other)) == 10 })
	if got := b.cleaner.Stats(); got.Totals.Failed != 0 || len(got.Uncleanable) != 0 {
		t.Errorf("stats %+v", got)
	}
}

// Committed offsets survive the compaction of their topic and a restart behind it.
func TestConsumerOffsetsAreCompacted(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, "offsets.topic.num.partitions=1")
	a := admin(t, b)
	createTopic(t, a, "t")
	commit := func(group string, at int64) {
		t.Helper()
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, at, -1)
		if err := a.CommitAllOffsets(testContext(t), group, offsets); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(200) {
		commit("often", i)
	}
	commit("once", 7)
	p := partitionOf(topic.ConsumerOffsets)
	before := b.logs.Log(p).Size()
	out, err := b.cleaner.CleanNow(testContext(t), p, true)
	if err != nil {
		t.Fatal(err)
	}
	if out.Removed.Superseded < 199 || b.logs.Log(p).Size() > before/10 {
		t.Errorf("%d to %d bytes, outcome %+v", before, b.logs.Log(p).Size(), out)
	}
	for _, when := range []string{"after the cleaning", "after a restart"} {
		for group, want := range map[string]int64{"often": 199, "once": 7} {
			list, err := a.FetchOffsets(testContext(t), group)
			if err != nil {
				t.Fatal(err)
			}
			if o, ok := list.Lookup("t", 0); !ok || o.At != want {
				t.Errorf("%s: %s is at %d, want %d", when, group, o.At, want)
			}
		}
		stop(t, b)
		b = start(t, dir)
		a = admin(t, b)
	}
}

// A consumer reads from the beginning, again and again, during 50 cleanings: no gap, no
// duplicate, no error, and a value of every key each time.
func TestConsumerDuringCleanings(t *testing.T) {
	b := start(t, t.TempDir(), "log.cleanup.policy=compact", "log.cleaner.backoff.ms=3600000", "log.cleaner.dedupe.buffer.size=4194304")
	createTopic(t, admin(t, b), "t", "internal.segment.bytes", "20000", "min.cleanable.dirty.ratio", "1")
	const keys = 100
	c := dial(t, b)
	value := strings.Repeat("x", 100)
	c.mustProduce("t", keyed(t, keys, value))
	done := make(chan error)
	stopReading := make(chan struct{})
	go func() { done <- readAgain(b.Addr(), keys, stopReading) }()
	for range 50 {
		c.mustProduce("t", keyed(t, keys, value))
		if _, err := b.cleaner.CleanNow(testContext(t), partitionOf("t"), true); err != nil {
			t.Error(err)
			break
		}
	}
	close(stopReading)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// readAgain consumes a topic to its end until stop is closed.
func readAgain(addr string, keys int, stop <-chan struct{}) error {
	for {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
		if err != nil {
			return err
		}
		err = readOnce(client, keys, stop)
		client.Close()
		select {
		case <-stop:
			return err
		default:
		}
		if err != nil {
			return err
		}
	}
}

func readOnce(client *kgo.Client, keys int, stop <-chan struct{}) error {
	seen, last := make(map[string]bool), int64(-1)
	for len(seen) < keys {
		select {
		case <-stop:
			return nil
		default:
		}
		fetches := client.PollFetches(context.Background())
		if errs := fetches.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		for r := range fetches.RecordsAll() {
			if r.Offset <= last {
				return fmt.Errorf("offset %d after %d", r.Offset, last)
			}
			last = r.Offset
			seen[string(r.Key)] = true
		}
	}
	return nil
}

// gregor.compaction.strategy: the newest timestamp, or the highest version in a header, wins, also
// over what comes later and over what was cleaned before (KIP-280).
func TestCompactionStrategies(t *testing.T) {
	b := start(t, t.TempDir(), "log.cleaner.backoff.ms=3600000", "log.cleanup.policy=compact")
	a := admin(t, b)
	createTopic(t, a, "time", "gregor.compaction.strategy", "timestamp")
	createTopic(t, a, "version", "gregor.compaction.strategy", "header", "gregor.compaction.strategy.header", "v")
	c := dial(t, b)
	now := time.Now().UnixMilli()
	put := func(value string, version int64) {
		t.Helper()
		r := record.Record{Timestamp: now - 1000 + version, Key: []byte("k"), Value: []byte(value)}
		c.mustProduce("time", logtest.Batch(t, record.BuilderOptions{}, r))
		r.Timestamp = now
		r.Headers = []record.Header{{Key: "v", Value: binary.BigEndian.AppendUint64(nil, uint64(version))}}
		c.mustProduce("version", logtest.Batch(t, record.BuilderOptions{}, r))
	}
	clean := func(want string) {
		t.Helper()
		for _, name := range []string{"time", "version"} {
			if _, err := b.cleaner.CleanNow(testContext(t), partitionOf(name), true); err != nil {
				t.Fatal(err)
			}
			if got := fetchAll(t, b, name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: got %v, want %s", name, got, want)
			}
		}
	}
	put("first", 2)
	put("later and older", 1)
	clean("0=first")
	put("older again", 1)
	clean("0=first")
	put("as new", 2)
	put("newer", 3)
	put("late", 2)
	clean("4=newer")

	err := setTopic(t, a, "time", "gregor.compaction.strategy", "header")
	if !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("a header without a name: %v, want %v", err, kerr.InvalidConfig)
	}
}

// What `gregor explain` and `gregor topics clean` ask for.
func TestCompactionOverHTTP(t *testing.T) {
	dir, err := os.MkdirTemp("", "g") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := start(t, dir, "log.cleaner.backoff.ms=3600000")
	a := admin(t, b)
	createTopic(t, a, "t", "cleanup.policy", "compact")
	createTopic(t, a, "t-1", "cleanup.policy", "delete")
	c := dial(t, b)
	c.mustProduce("t", keyed(t, 10, "v"))
	c.mustProduce("t", keyed(t, 10, "w"))
	client := web.NewSocketClient(dir)
	defer client.Close()
	targets := func(name string, want ...topic.Partition) {
		t.Helper()
		if got, err := client.CleanTarget(testContext(t), name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	targets("t", partitionOf("t"))
	targets("t-0", partitionOf("t"))
	targets("t-1", partitionOf("t-1")) // the topic, not a partition of t
	refused := func(p topic.Partition, status int) {
		t.Helper()
		_, err := client.Clean(testContext(t), p, false, nil)
		if s, ok := errors.AsType[*web.StatusError](err); !ok || s.Status != status {
			t.Errorf("%v: got %v, want status %d", p, err, status)
		}
	}
	refused(partitionOf("t-1"), http.StatusConflict)
	refused(partitionOf("t"), http.StatusConflict) // the active segment alone
	refused(partitionOf("unknown"), http.StatusNotFound)

	out, err := client.Clean(testContext(t), partitionOf("t"), true, nil)
	if err != nil || out.Removed.Superseded != 10 || out.RecordsKept != 10 {
		t.Errorf("got %+v, %v", out, err)
	}
	r, err := client.Explain(testContext(t), "t")
	if err != nil || len(r.Partitions) != 1 || r.Partitions[0].FirstDirty != 20 || r.Partitions[0].Last == nil || !r.Cleaner.Enabled {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := client.Explain(testContext(t), "t-1"); err != nil || r.Partitions[0].Compacted {
		t.Errorf("got %+v, %v", r, err)
	}
}
