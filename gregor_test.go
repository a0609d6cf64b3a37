package gregor_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor"
)

// After a clean stop everything is found: topics with their ids, every record, and where a
// group stood.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, "group.initial.rebalance.delay.ms=0")
	client := connect(t, b.Addr())
	id := createTopic(t, client, "orders", 3)
	records := numbered("orders", 0, 1000)
	produce(t, client, records...)
	seen := consumeInGroup(t, b.Addr(), 400)
	clusterID, nodeID := b.ClusterID(), b.NodeID()
	client.Close()
	stop(t, b)

	b = start(t, dir, "group.initial.rebalance.delay.ms=0")
	if b.ClusterID() != clusterID || b.NodeID() != nodeID {
		t.Errorf("cluster %s, node %d, want %s, %d", b.ClusterID(), b.NodeID(), clusterID, nodeID)
	}
	details, err := kadm.NewClient(connect(t, b.Addr())).ListTopics(testContext(t))
	if err != nil || details["orders"].ID != id || len(details["orders"].Partitions) != 3 {
		t.Errorf("topic orders is %+v, %v, want id %s", details["orders"], err, id)
	}
	expectOnce(t, consume(t, b.Addr(), "orders", 1000), records)
	for value, n := range consumeInGroup(t, b.Addr(), 600) {
		seen[value] += n
	}
	expectOnce(t, seen, records)
}

// consumeInGroup reads records as a member of a group, and commits them.
func consumeInGroup(t *testing.T, addr string, count int) map[string]int {
	t.Helper()
	client := connect(t, addr, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("billing"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	seen := poll(t, client, count)
	if err := client.CommitUncommittedOffsets(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return seen
}

// A copy of the directory of a running broker is what a crash leaves.
func TestRestartFromCopy(t *testing.T) {
	dir, crashed := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	b := start(t, dir, "group.initial.rebalance.delay.ms=0")
	client := connect(t, b.Addr())
	createTopic(t, client, "orders", 3)
	records := numbered("orders", 0, 500)
	produce(t, client, records...)
	seen := consumeInGroup(t, b.Addr(), 200)
	copyTree(t, crashed, dir)

	copied := start(t, crashed, "group.initial.rebalance.delay.ms=0")
	if copied.ClusterID() != b.ClusterID() {
		t.Errorf("cluster %s, want %s", copied.ClusterID(), b.ClusterID())
	}
	expectOnce(t, consume(t, copied.Addr(), "orders", 500), records)
	for value, n := range consumeInGroup(t, copied.Addr(), 300) {
		seen[value] += n
	}
	expectOnce(t, seen, records)
	produce(t, connect(t, copied.Addr()), numbered("orders", 500, 1)...)
	if end := endOffsets(t, connect(t, copied.Addr()), "orders"); end != 501 {
		t.Errorf("the copy ends at %d, want 501", end)
	}
}

// Every acknowledged record survives kill -9 under load, once and in order.
func TestRestartAfterKill(t *testing.T) {
	dir := t.TempDir()
	var acknowledged []string
	for life := range 3 {
		c := startChild(t, dir)
		client := connect(t, c.addr)
		if life == 0 {
			createTopic(t, client, "orders", 1)
		}
		acknowledged = append(acknowledged, produceUntilKilled(t, client, c, numbered("orders", life*5000, 5000))...)
	}

	b := start(t, dir)
	end := int(endOffsets(t, connect(t, b.Addr()), "orders"))
	client := connect(t, b.Addr(), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	found := make([]string, 0, end)
	for len(found) < end {
		fetches := client.PollRecords(testContext(t), end-len(found))
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			found = append(found, string(r.Value))
		}
	}
	for i := range found[1:] {
		if found[i] >= found[i+1] {
			t.Errorf("offset %d holds %s, the one before %s", i+1, found[i+1], found[i])
		}
	}
	for _, value := range acknowledged {
		if _, ok := slices.BinarySearch(found, value); !ok {
			t.Errorf("record %s was acknowledged and is lost", value)
		}
	}
}

// produceUntilKilled sends records, kills the broker when some are acknowledged, and returns
// the values of those that were.
func produceUntilKilled(t *testing.T, client *kgo.Client, c *child, records []*kgo.Record) []string {
	t.Helper()
	ctx := testContext(t)
	const killAt = 700
	var mu sync.Mutex
	var acknowledged []string
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for _, r := range records {
		wg.Add(1)
		client.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer wg.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return
			}
			if acknowledged = append(acknowledged, string(r.Value)); len(acknowledged) == killAt {
				close(enough)
			}
		})
	}
	<-enough
	c.kill()
	client.Close() // gives up the records whose answer was lost
	wg.Wait()
	return acknowledged
}

// A start that fails says what is wrong and leaves everything as it was.
func TestStartErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	missing := filepath.Join(dir, "no-such.properties")
	broken := filepath.Join(dir, "broken.properties")
	if err := os.WriteFile(broken, []byte("num.partitions=2\nlog.retention.ms=soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	f := func(name string, o gregor.Options, want ...string) {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			if o.DataDir == "" {
				o.DataDir = data
			}
			if o.Listen == "" {
				o.Listen = "127.0.0.1:0"
			}
			before := tree(t, o.DataDir)
			b, err := gregor.Start(testContext(t), o)
			if err == nil {
				stop(t, b)
				t.Fatal("the broker started")
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not mention %q", err, w)
				}
			}
			if diff := cmp.Diff(before, tree(t, o.DataDir)); diff != "" {
				t.Errorf("the data directory changed (-before +after):\n%s", diff)
			}
		})
	}
	f("port taken", gregor.Options{Listen: taken.Addr().String()}, taken.Addr().String(), "in use")
	f("wrong value", gregor.Options{Set: []string{"num.partitions=many"}}, "num.partitions=many", "want")
	f("out of range", gregor.Options{Set: []string{"num.partitions=0"}}, "num.partitions=0", "at least 1")
	f("not a pair", gregor.Options{Set: []string{"num.partitions"}}, "num.partitions", "key=value")
	f("missing file", gregor.Options{ConfigFile: missing}, missing)
	f("directory as file", gregor.Options{ConfigFile: dir}, dir, "directory")
	f("wrong value in file", gregor.Options{ConfigFile: broken}, broken, "log.retention.ms", "soon")
	f("file as data directory", gregor.Options{DataDir: broken}, broken)
	f("no host", gregor.Options{Listen: "nowhere"}, "nowhere")
}

// A directory belongs to one broker at a time, and the one that has it does not notice.
func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	before := settledTree(t, dir)
	_, err := gregor.Start(testContext(t), gregor.Options{DataDir: dir, Listen: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second broker on %s: %v", dir, err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("the data directory changed (-before +after):\n%s", diff)
	}
	produce(t, connect(t, b.Addr(), kgo.AllowAutoTopicCreation()), numbered("orders", 0, 1)...)

	// A directory of another node is not taken over either.
	stop(t, b)
	_, err = gregor.Start(testContext(t), gregor.Options{DataDir: dir, Listen: "127.0.0.1:0", Set: []string{"node.id=77"}})
	if err == nil || !strings.Contains(err.Error(), "77") {
		t.Errorf("another node on %s: %v", dir, err)
	}
}

func TestTwoLogDirs(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	records := numbered("orders", 0, 300)
	b := start(t, one+","+two)
	if got := b.DataDirs(); !slices.Equal(got, []string{one, two}) {
		t.Errorf("data directories %v, want %s and %s", got, one, two)
	}
	client := connect(t, b.Addr())
	createTopic(t, client, "orders", 10)
	produce(t, client, records...)
	client.Close()
	stop(t, b)
	for _, dir := range []string{one, two} {
		partitions, err := filepath.Glob(filepath.Join(dir, "orders-*"))
		if err != nil || len(partitions) != 5 {
			t.Errorf("%s has the partitions %v, %v, want 5", dir, partitions, err)
		}
	}

	b = start(t, one+","+two)
	expectOnce(t, consume(t, b.Addr(), "orders", 300), records)
}

func TestTwoBrokersInOneProcess(t *testing.T) {
	a, b := start(t, t.TempDir()), start(t, t.TempDir())
	if a.Addr() == b.Addr() || a.ClusterID() == b.ClusterID() {
		t.Errorf("two brokers at %s and %s, clusters %s and %s", a.Addr(), b.Addr(), a.ClusterID(), b.ClusterID())
	}
	inA, inB := numbered("orders", 0, 10), numbered("orders", 100, 20)
	for broker, records := range map[*gregor.Broker][]*kgo.Record{a: inA, b: inB} {
		client := connect(t, broker.Addr())
		createTopic(t, client, "orders", 1)
		produce(t, client, records...)
	}
	expectOnce(t, consume(t, a.Addr(), "orders", 10), inA)
	stop(t, a)
	expectOnce(t, consume(t, b.Addr(), "orders", 20), inB)
}

// A broker that clients are busy with stops in time, and loses nothing that it acknowledged.
func TestCloseUnderLoad(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	createTopic(t, connect(t, b.Addr()), "orders", 4)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()

	var acknowledged sync.Map
	var count atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	var clients []*kgo.Client
	for n := range 4 {
		client := connect(t, b.Addr())
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r := numbered("orders", n*100_000+i, 1)[0]
				if client.ProduceSync(ctx, r).FirstErr() == nil {
					acknowledged.Store(string(r.Value), true)
					if count.Add(1) == 400 {
						close(enough)
					}
				}
			}
		})
		reader := connect(t, b.Addr(), kgo.ConsumeTopics("orders"))
		clients = append(clients, client, reader)
		wg.Go(func() {
			for ctx.Err() == nil {
				reader.PollFetches(ctx)
			}
		})
	}
	<-enough
	stop(t, b)
	cancel()
	for _, client := range clients {
		client.Close() // gives up the records whose answer was lost
	}
	wg.Wait()

	b = start(t, dir)
	end := endOffsets(t, connect(t, b.Addr()), "orders")
	seen := consume(t, b.Addr(), "orders", int(end))
	acknowledged.Range(func(value, _ any) bool {
		if seen[value.(string)] != 1 {
			t.Errorf("record %s was acknowledged and seen %d times", value, seen[value.(string)])
		}
		return true
	})
}

func TestCloseIsIdempotent(t *testing.T) {
	b := start(t, t.TempDir())
	stop(t, b)
	stop(t, b)
	select {
	case <-b.Done():
	default:
		t.Error("Done is open after Close")
	}
	if _, err := net.Dial("tcp", b.Addr()); err == nil {
		t.Error("the port is open after Close")
	}
}

// A start that is given up leaves nothing behind: the same options work right after.
func TestStartCanceled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := gregor.Start(ctx, gregor.Options{DataDir: dir, Listen: "127.0.0.1:0"}); err == nil {
		stop(t, b)
		t.Error("a start with an ended context succeeded")
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	start(t, dir)
}
