package broker

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/memnet"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A memWorld is a machine in memory with a broker on it, and one for clients.
type memWorld struct {
	*Broker
	network memnet.Network
	clients *memnet.Host
	disk    *vfs.Mem
}

// startInMemory starts a broker in a world of its own. It is stopped with the test.
func startInMemory(t *testing.T, random func(string) io.Reader, set ...string) *memWorld {
	t.Helper()
	w := &memWorld{disk: vfs.NewMem()}
	w.clients = w.network.AddHost("clients")
	c, _, err := config.Parse(nil, "", append([]string{"log.dirs=/data", "listeners=PLAINTEXT://broker:9092"}, set...))
	if err != nil {
		t.Fatal(err)
	}
	w.Broker, err = Start(t.Context(), Options{
		Config: c, Logger: slog.New(slog.DiscardHandler), World: World{FS: w.disk, Network: w.network.AddHost("broker"), Random: random},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, w.Broker) })
	return w
}

// client returns a client on the network of the world.
func (w *memWorld) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers("broker:9092"), kgo.Dialer(w.clients.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Two brokers of one process share nothing: neither addresses, directories and ids, nor caches, limits and budgets.
func TestTwoBrokersShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := startInMemory(t, nil, "max.connections=3"), startInMemory(t, nil)
		if a.Addr() != b.Addr() {
			t.Errorf("%s and %s: the same place on two networks has two addresses", a.Addr(), b.Addr())
		}
		if a.ClusterID() == b.ClusterID() {
			t.Errorf("both are of cluster %s", a.ClusterID())
		}
		for topic := range 3 {
			client := a.client(t, kgo.DefaultProduceTopic(fmt.Sprintf("topic-%d", topic)), kgo.AllowAutoTopicCreation())
			if err := client.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
				t.Fatal(err)
			}
			client.Close()
		}
		if inA, inB := a.caches.Files.Len(), b.caches.Files.Len(); inA < 3 || inB != 0 {
			t.Errorf("%d and %d descriptors are cached, want 3 in the broker that was used and none in the other", inA, inB)
		}
		b.caches.CloseIdle()
		b.caches.CloseIdle()
		if n := a.caches.Files.Len(); n < 3 {
			t.Errorf("%d descriptors are cached, after another broker has dropped its own", n)
		}
		if topics, err := kadm.NewClient(b.client(t)).ListTopics(t.Context()); err != nil || len(topics) > 0 {
			t.Errorf("the other broker has the topics %v, %v", topics.Names(), err)
		}
		wantOwnLimits(t, a, b)
		wantOwnStop(t, a, b)
	})
}

// wantOwnLimits takes all connections that a has, to no harm of b.
func wantOwnLimits(t *testing.T, a, b *memWorld) {
	t.Helper()
	synctest.Wait()
	for a.server.Load().Connections() < 3 {
		c, err := a.clients.Dial(t.Context(), "tcp", "broker:9092")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
	}
	refused, err := a.clients.Dial(t.Context(), "tcp", "broker:9092")
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	if _, err := refused.Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond max.connections is served")
	}
	if err := b.client(t).Ping(t.Context()); err != nil {
		t.Errorf("a broker beside one that has no connection left: %v", err)
	}
}

// wantOwnStop stops a, and b goes on.
func wantOwnStop(t *testing.T, a, b *memWorld) {
	t.Helper()
	stop(t, a.Broker)
	client := b.client(t, kgo.DefaultProduceTopic("later"), kgo.AllowAutoTopicCreation())
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Errorf("a broker beside one that has stopped: %v", err)
	}
}

// What old clients of one broker wait for, converted, is no other broker's memory.
func TestTwoBrokersConvertAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := startInMemory(t, nil), startInMemory(t, nil)
		req := fetchRequest("old", 0, 10<<20)
		ask := func(w *memWorld) *wireClient {
			t.Helper()
			c, err := w.clients.Dial(t.Context(), "tcp", w.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			client := &wireClient{t: t, c: c}
			createTopic(t, kadm.NewClient(w.client(t)), "old")
			for range 20 { // more than a connection takes whose client reads nothing
				client.mustProduce("old", logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 100_000)))
			}
			client.write(client.frame(3, req))
			return client
		}
		ask(a)
		synctest.Wait()
		if used, _ := a.api.ConversionBytes(); used == 0 {
			t.Fatal("a conversion that its client does not take holds no memory")
		}
		if used, most := b.api.ConversionBytes(); used != 0 || most == 0 {
			t.Errorf("%d bytes of %d are used in a broker that converts nothing", used, most)
		}
		client := ask(b)
		answer, err := client.read(client.correlation, req)
		if err != nil {
			t.Fatal(err)
		}
		if got := values(t, answer.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches); len(got) != 20 {
			t.Errorf("an old client got %d records beside a broker whose conversions stand still, want 20", len(got))
		}
	})
}

// With the same randomness a broker is the same: its cluster, its directory, its topics, its members. What
// others draw before changes nothing.
func TestRandomnessIsGiven(t *testing.T) {
	f := func(seed uint64, before func(*testing.T, *memWorld)) (ids []string) {
		synctest.Test(t, func(t *testing.T) {
			b := startInMemory(t, random.NewSeeded(seed).Stream)
			before(t, b)
			client := b.client(t)
			id := createTopic(t, kadm.NewClient(client), "orders")
			member := kmsg.NewPtrJoinGroupRequest()
			member.Group, member.ProtocolType, member.SessionTimeoutMillis = "g", "consumer", 10000
			member.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
			joined, err := member.RequestWith(t.Context(), client)
			if err != nil || joined.MemberID == "" {
				t.Fatalf("got %+v, %v", joined, err)
			}
			ids = []string{b.ClusterID(), b.logs.Dirs()[0].ID.String(), uuid.UUID(id).String(), joined.MemberID}
		})
		return ids
	}
	nothing := func(*testing.T, *memWorld) {}
	others := func(t *testing.T, b *memWorld) {
		if _, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(t.Context(), b.client(t)); err != nil { // a decision
			t.Error(err)
		}
		random.Uint64(b.world.Random("client instances"))
	}
	a, again, other, late := f(1, nothing), f(1, nothing), f(2, nothing), f(1, others)
	if !slices.Equal(a, again) || !slices.Equal(a, late) {
		t.Errorf("got %q, %q, and %q when others draw before, want the same", a, again, late)
	}
	for i := range a {
		if a[i] == other[i] {
			t.Errorf("%q is the same with another seed", a[i])
		}
	}
}

// Each purpose of a broker has a stream of its own.
func TestRandomPurposes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		b := startInMemory(t, func(purpose string) io.Reader {
			mu.Lock()
			defer mu.Unlock()
			asked[purpose]++
			return random.Host(purpose)
		})
		createTopic(t, kadm.NewClient(b.client(t)), "orders")
		want := map[string]int{"cluster id": 1, "log directories": 1, "decisions": 1, "incarnations": 1, "client instances": 1, "fetch sessions": 1, "keys of the cleaner": 1}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
