package gregortest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/gregortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewBroker(t *testing.T) {
	b := gregortest.NewBroker(t)
	client := connect(t, b.Addr(), kgo.DefaultProduceTopic("greetings"), kgo.AllowAutoTopicCreation())
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("hello")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	reader := connect(t, b.Addr(), kgo.ConsumeTopics("greetings"), kgo.ConsumerGroup("readers"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer reader.Close()
	fetches := reader.PollFetches(t.Context())
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if records := fetches.Records(); len(records) != 1 || string(records[0].Value) != "hello" {
		t.Errorf("consumed %v", records)
	}
}

func TestSet(t *testing.T) {
	b := gregortest.NewBroker(t, gregortest.Set("num.partitions=7"), gregortest.Set("auto.create.topics.enable=false"))
	admin := kadm.NewClient(connect(t, b.Addr()))
	r, err := admin.CreateTopic(t.Context(), -1, -1, nil, "orders")
	if err != nil || r.NumPartitions != 7 {
		t.Errorf("a topic with %d partitions, %v, want 7", r.NumPartitions, err)
	}
}

// What is in a directory of its own is there for the next broker.
func TestDataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	t.Run("first", func(t *testing.T) {
		b := gregortest.NewBroker(t, gregortest.DataDir(dir))
		if _, err := kadm.NewClient(connect(t, b.Addr())).CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("the broker of a test that ended was not stopped cleanly: %v", err)
	}
	b := gregortest.NewBroker(t, gregortest.DataDir(dir))
	if topics, err := kadm.NewClient(connect(t, b.Addr())).ListTopics(t.Context()); err != nil || !topics.Has("orders") {
		t.Errorf("topics %v, %v, want orders", topics.Names(), err)
	}
}

// A directory that a test keeps has no socket when the broker is gone.
func TestNoSocketIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Run("broker", func(t *testing.T) { gregortest.NewBroker(t, gregortest.DataDir(dir)) })
	if _, err := os.Lstat(filepath.Join(dir, "gregor.sock")); !os.IsNotExist(err) {
		t.Errorf("gregor.sock: %v, want none", err)
	}
}

// Two brokers of one test have nothing to do with each other.
func TestTwo(t *testing.T) {
	a, b := gregortest.NewBroker(t), gregortest.NewBroker(t)
	if a.Addr() == b.Addr() || a.ClusterID() == b.ClusterID() {
		t.Errorf("brokers at %s and %s, clusters %s and %s", a.Addr(), b.Addr(), a.ClusterID(), b.ClusterID())
	}
}

func connect(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
