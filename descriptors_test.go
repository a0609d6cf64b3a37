package gregor_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// 64 descriptors are enough for 1,000 partitions, with 100 idle connections beside: slowly, but
// everything is served, and found again after a kill and after a clean stop.
func TestFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("writes to 1,000 partitions")
	}
	const partitions = 1000
	dir := t.TempDir()
	start := func() *child {
		c := startChildAfter(t, dir, "ulimit -n 64")
		connectIdle(t, c.addr, 100)
		return c
	}
	c := start()
	createMany(t, c.addr, "many", partitions)
	produceToEach(t, c.addr, "many", partitions, "first")
	wantInEach(t, c.addr, "many", partitions, 1)
	c.kill()
	c = start()
	wantInEach(t, c.addr, "many", partitions, 1)
	produceToEach(t, c.addr, "many", partitions, "second")
	c.stop()
	c = start()
	wantInEach(t, c.addr, "many", partitions, 2)
	c.stop()
}

// connectIdle opens connections that say nothing. The broker may close any of them.
func connectIdle(t *testing.T, addr string, count int) {
	t.Helper()
	for range count {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

func limitsClient(t *testing.T, addr string, o ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(o, kgo.SeedBrokers(addr), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createMany(t *testing.T, addr, name string, partitions int32) {
	t.Helper()
	client := limitsClient(t, addr)
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
}

func produceToEach(t *testing.T, addr, name string, partitions int32, value string) {
	t.Helper()
	client := limitsClient(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer client.Close()
	var records []*kgo.Record
	for i := range partitions {
		records = append(records, &kgo.Record{Topic: name, Partition: i, Value: fmt.Appendf(nil, "%s %d", value, i)})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// wantInEach reads until every partition has given count records.
func wantInEach(t *testing.T, addr, name string, partitions, count int) {
	t.Helper()
	client := limitsClient(t, addr, kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got := make(map[int32]int)
	for read := 0; read < partitions*count; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("read %d records of %d: %v", read, partitions*count, fetches.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got[r.Partition]++
			read++
		})
	}
	for i := range int32(partitions) {
		if got[i] != count {
			t.Fatalf("partition %d gave %d records, want %d", i, got[i], count)
		}
	}
}
