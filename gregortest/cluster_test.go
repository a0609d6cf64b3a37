package gregortest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/gregor-kafka/gregor/gregortest"
	"github.com/gregor-kafka/gregor/internal/record"
)

// connectTo returns a client of a cluster.
func connectTo(t testing.TB, c *gregortest.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(c.Addrs()...), kgo.Dialer(c.Dial), kgo.MetadataMinAge(10*time.Millisecond), kgo.MaxVersions(versions))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// versions are those that clients use: topics have names in all of them.
var versions = func() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.Fetch), 12)
	return v
}()

// createIn creates a topic of one partition; configs are pairs of key and value.
func createIn(t testing.TB, c *gregortest.Cluster, topic string, configs ...string) {
	t.Helper()
	set := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	if _, err := kadm.NewClient(connectTo(t, c)).CreateTopic(t.Context(), 1, 1, set, topic); err != nil {
		t.Fatal(err)
	}
}

func produceTo(t testing.TB, c *gregortest.Cluster, topic string, values ...string) {
	t.Helper()
	client := connectTo(t, c, kgo.DefaultProduceTopic(topic))
	defer client.Close()
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// contentOf reads all of a topic of one partition, past what is in quarantine.
func contentOf(t testing.TB, c *gregortest.Cluster, topic string) []string {
	t.Helper()
	client := connectTo(t, c)
	defer client.Close()
	return readAll(t, client, topic)
}

func readAll(t testing.TB, client *kgo.Client, topic string) (values []string) {
	t.Helper()
	starts, err := kadm.NewClient(client).ListStartOffsets(t.Context(), topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	start, _ := starts.Lookup(topic, 0)
	for offset := start.Offset; ; {
		p := fetchAt(t, client, topic, offset)
		if p.ErrorCode == kerr.CorruptMessage.Code {
			offset++
			continue
		}
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			t.Fatal(err)
		}
		if len(p.RecordBatches) == 0 {
			return values
		}
		for b, err := range record.Batches(p.RecordBatches) {
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range b.Records() {
				if err != nil {
					t.Fatal(err)
				}
				if r.Offset >= offset {
					values = append(values, string(r.Value))
				}
			}
			offset = b.NextOffset()
		}
	}
}

// fetchAt asks once for what is at an offset.
func fetchAt(t testing.TB, client *kgo.Client, topic string, offset int64) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 0, 1<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	resp, err := client.Broker(leaderOf(t, client, topic)).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// leaderOf returns who leads a topic's only partition.
func leaderOf(t testing.TB, client *kgo.Client, topic string) int {
	t.Helper()
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return int(topics[topic].Partitions[0].Leader)
}

func wantContent(t testing.TB, c *gregortest.Cluster, topic string, want ...string) {
	t.Helper()
	if got := contentOf(t, c, topic); !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", topic, got, want)
	}
}

// What a broker has acknowledged is there after a clean stop and after a kill; after a crash of the disk
// what was flushed is.
func TestClusterNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 1)
		n := c.Node(1)
		createIn(t, c, "flushed", "flush.messages", "1")
		createIn(t, c, "written")
		produceTo(t, c, "flushed", "a")
		produceTo(t, c, "written", "b")
		n.Stop()
		n.Start()
		produceTo(t, c, "flushed", "c")
		produceTo(t, c, "written", "d")
		n.Kill()
		n.Start()
		wantContent(t, c, "flushed", "a", "c")
		wantContent(t, c, "written", "b", "d")
		n.Crash(nil)
		n.Start()
		wantContent(t, c, "flushed", "a", "c")
		wantContent(t, c, "written", "b")
	})
}

// Whoever is cut off knows nothing of the broker, and goes on when it is back.
func TestClusterPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 1)
		createIn(t, c, "t")
		client := connectTo(t, c, kgo.DefaultProduceTopic("t"))
		send := func(value string) error { return client.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr() }
		if err := send("before"); err != nil {
			t.Fatal(err)
		}
		for name, cut := range map[string]func(){
			"partition": func() { c.Partition(1) },
			"requests":  func() { c.Cut(gregortest.Clients, 1) },
			"answers":   func() { c.Cut(1, gregortest.Clients) },
		} {
			cut()
			time.AfterFunc(time.Minute, c.Heal)
			began := time.Now()
			if err := send(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < time.Minute {
				t.Errorf("%s: produced after %v, want a minute at least", name, took)
			}
		}
		c.Delay(gregortest.Clients, 1, func() time.Duration { return time.Second })
		began := time.Now()
		if err := send("late"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("produced after %v over a slow link", took)
		}
		c.Delay(gregortest.Clients, 1, nil)
		if got := contentOf(t, c, "t"); len(got) != 5 {
			t.Errorf("the topic has %q, want each record once", got)
		}
	})
}

// A refusal is a testing.TB that notes why a test ends.
type refusal struct {
	testing.TB
	why string
}

func (r *refusal) Fatalf(format string, args ...any) {
	r.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A cluster of no brokers is refused by its name, not half made.
func TestClusterOfNone(t *testing.T) {
	for _, n := range []int{-1, 0} {
		r := &refusal{TB: t}
		var wait sync.WaitGroup
		wait.Go(func() { gregortest.NewCluster(r, n) })
		wait.Wait()
		if want := fmt.Sprintf("gregortest.NewCluster: %d brokers", n); !strings.HasPrefix(r.why, want) {
			t.Errorf("%d brokers: %q, want %q", n, r.why, want)
		}
	}
}

// A broker that does not run can be reached by nobody.
func TestClusterNodeIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 1)
		n := c.Node(1)
		idle, err := c.Dial(t.Context(), "tcp", n.Broker().Addr())
		if err != nil {
			t.Fatal(err)
		}
		n.Kill()
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection to a broker that was killed: %v", err)
		}
		if _, err := c.Dial(t.Context(), "tcp", c.Addrs()[0]); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new one: %v", err)
		}
		if n.Broker() != nil {
			t.Error("there is a broker still")
		}
		n.Start()
		n.Stop()
		n.Stop()
	})
}

// A day goes by in no time, with all that a broker does now and then.
func TestClusterDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 1, gregortest.Set("log.retention.hours=1"), gregortest.Set("log.roll.hours=1"))
		createIn(t, c, "short")
		produceTo(t, c, "short", "old")
		time.Sleep(24 * time.Hour)
		produceTo(t, c, "short", "new")
		client := connectTo(t, c)
		starts, err := kadm.NewClient(client).ListStartOffsets(t.Context(), "short")
		if err != nil {
			t.Fatal(err)
		}
		if start, _ := starts.Lookup("short", 0); start.Offset != 1 {
			t.Errorf("the log starts at %d after a day, want 1", start.Offset)
		}
	})
}

// Groups, and consumers that wait for records, work by the bubble's time.
func TestClusterGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gregortest.NewCluster(t, 1)
		createIn(t, c, "orders")
		reader := connectTo(t, c, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		go func() {
			time.Sleep(time.Hour)
			client := connectTo(t, c, kgo.DefaultProduceTopic("orders"))
			client.ProduceSync(t.Context(), kgo.StringRecord("late"))
		}()
		began := time.Now()
		fetches := reader.PollFetches(t.Context())
		if records := fetches.Records(); len(records) != 1 || string(records[0].Value) != "late" {
			t.Errorf("consumed %v, %v", records, fetches.Err())
		}
		if waited := time.Since(began); waited < time.Hour || waited > time.Hour+time.Second {
			t.Errorf("a consumer waited %v for what was produced after an hour", waited)
		}
		if err := reader.CommitUncommittedOffsets(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two clusters of one test have each its network: the same names are other brokers.
func TestTwoClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := gregortest.NewCluster(t, 1), gregortest.NewCluster(t, 1)
		createIn(t, a, "a")
		createIn(t, b, "b")
		produceTo(t, b, "b", "x")
		a.Node(1).Crash(rand.New(rand.NewPCG(1, 2)))
		wantContent(t, b, "b", "x")
	})
}

// With a seed a test meets the same ids each time, and none of them twice, also after a start.
func TestClusterSeed(t *testing.T) {
	f := func(seed uint64) (ids []string) {
		synctest.Test(t, func(t *testing.T) {
			c := gregortest.NewCluster(t, 1, gregortest.Seed(seed))
			n := c.Node(1)
			ids = []string{n.Broker().ClusterID()}
			for _, name := range []string{"a", "b"} {
				r, err := kadm.NewClient(connectTo(t, c)).CreateTopic(t.Context(), 1, 1, nil, name)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, r.ID.String())
				n.Kill()
				n.Start()
			}
		})
		return ids
	}
	first, again, other := f(1), f(1), f(2)
	if !slices.Equal(first, again) {
		t.Errorf("got %q, then %q", first, again)
	}
	if all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(first, other)))); len(all) != 6 {
		t.Errorf("ids of two clusters: %q, want six", all)
	}
}

// Brokers in several bubbles, one after the other, and outside, may all compress with zstd.
func TestZstdInBubbles(t *testing.T) {
	there := func(t *testing.T) {
		c := gregortest.NewCluster(t, 1)
		createIn(t, c, "packed", "compression.type", "zstd")
		produceTo(t, c, "packed", "x", "y")
		if got := contentOf(t, c, "packed"); !slices.Equal(got, []string{"x", "y"}) {
			t.Errorf("got %q", got)
		}
	}
	for range 3 {
		synctest.Test(t, there)
		t.Run("outside", there)
	}
}

func ExampleNewCluster() {
	test := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // time is the bubble's: nothing takes any
			c := gregortest.NewCluster(t, 1)
			client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.Dialer(c.Dial),
				kgo.DefaultProduceTopic("orders"), kgo.AllowAutoTopicCreation())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := client.ProduceSync(t.Context(), kgo.StringRecord("an order")).FirstErr(); err != nil {
				t.Fatal(err)
			}
			c.Node(1).Crash(nil) // power is lost: what was not flushed is gone
			c.Node(1).Start()
			// ... and what does the program do now?
		})
	}
	_ = test
}
