package replica

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

// What was counted for a topic stays in the sum of all when the topic is deleted.
func TestStatsOutliveTopics(t *testing.T) {
	b := newBench(t, nil)
	b.create("a", 1, testNode, []int32{testNode}, []int32{testNode})
	b.create("b", 2, testNode, []int32{testNode}, []int32{testNode})
	two := set(t, "x", "y")
	for _, name := range []string{"a", "b", "b"} {
		if _, err := b.partition(name).Append(append([]byte(nil), two...), client); err != nil {
			t.Fatal(err)
		}
	}
	f := func(want int64) {
		t.Helper()
		stats := b.Stats()
		if got := stats[MessagesIn].Load(); got != want {
			t.Errorf("%d messages in, want %d", got, want)
		}
		if got := stats[BytesIn].Load(); got != want/2*int64(len(two)) {
			t.Errorf("%d bytes in, want %d", got, want/2*int64(len(two)))
		}
	}
	f(6)
	if got := b.Topic([]byte("b")).Stats[MessagesIn].Load(); got != 4 {
		t.Errorf("%d messages in for topic b, want 4", got)
	}
	r := metadata.NewRemoveTopicRecord()
	r.TopicID = topicID(2)
	b.apply(r)
	f(6)
	for topic := range b.Topics() {
		if topic.Name != "a" {
			t.Errorf("topic %s is still there", topic.Name)
		}
	}
}

// What an idempotent producer sends twice comes in once.
func TestStatsWithoutDuplicates(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	builder := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 7}})
	if err := builder.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	batch := builder.Build()
	for range 2 {
		if _, err := b.partition("t").Append(append([]byte(nil), batch...), client); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Stats()[MessagesIn].Load(); got != 1 {
		t.Errorf("%d messages in, want 1", got)
	}
}

func TestDelayed(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode, 2}, []int32{testNode, 2})
	p := b.partition("t")
	if _, err := p.Append(set(t, "a"), client); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.AwaitCommitted(ctx, 1, time.Now().Add(time.Minute)) }()
	go func() {
		f := &FetchPartition{Name: []byte("t"), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}
		done <- b.Fetch(ctx, &FetchRequest{MinBytes: 1, MaxBytes: 1000, MaxWait: time.Minute}, []*FetchPartition{f})
	}()
	for b.DelayedFetches() != 1 || b.DelayedProduces() != 1 {
		runtime.Gosched()
	}
	cancel()
	<-done
	<-done
	if f, p := b.DelayedFetches(), b.DelayedProduces(); f != 0 || p != 0 {
		t.Errorf("%d fetches and %d produces wait after the end, want none", f, p)
	}
}
