package api

import (
	"bytes"
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/wire"
	"github.com/gregor-kafka/gregor/vfs"
)

// allocations returns how many allocations one request costs.
func allocations(t *testing.T, n *node, version int16, req kmsg.Request) float64 {
	t.Helper()
	req.SetVersion(version)
	body := req.AppendTo(nil)
	work := make([]byte, len(body))
	r := &Request{Key: req.Key(), Version: version, Listener: testListener}
	w := &wire.Response{Buf: make([]byte, 0, 1<<20)}
	return testing.AllocsPerRun(200, func() {
		copy(work, body) // an append changes it
		r.Body, w.Buf = work, w.Buf[:0]
		if err := n.Handle(context.Background(), r, w); err != nil {
			t.Fatal(err)
		}
	})
}

// A request for many partitions allocates as little as one for a single partition.
func TestNoAllocationPerPartition(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops things on purpose under the race detector")
	}
	const partitions = 100
	n := startNode(t, vfs.OS, t.TempDir())
	var list []*metadata.PartitionRecord
	for range partitions {
		list = append(list, testPartition(testNode, testNode))
	}
	n.Commit(testTopic("many", 9, list...)...)
	set := logtest.Values(t, record.BuilderOptions{}, "v")
	request := func(count int) (*kmsg.ProduceRequest, *kmsg.FetchRequest) {
		produce := produceRequest(-1, 0)
		fetch := fetchRequest(0, 0)
		asked := fetch.Topics[0].Partitions[0]
		fetch.Topics[0].Partitions = nil
		produce.Topics[0].Topic, produce.Topics[0].TopicID[15] = "many", 9
		fetch.Topics[0].Topic, fetch.Topics[0].TopicID[15] = "many", 9
		for i := range count {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition, p.Records = int32(i), bytes.Clone(set)
			produce.Topics[0].Partitions = append(produce.Topics[0].Partitions, p)
			asked.Partition = int32(i)
			asked.PartitionMaxBytes = 100
			fetch.Topics[0].Partitions = append(fetch.Topics[0].Partitions, asked)
		}
		return produce, fetch
	}
	for _, v := range []int16{3, 9, 13} {
		one, _ := request(1)
		all, _ := request(partitions)
		a, b := allocations(t, n, v, one), allocations(t, n, v, all)
		// A log allocates one block of snapshots per 16 appends, and grows its
		// index now and then.
		if perPartition := (b - a) / (partitions - 1); perPartition > 0.25 {
			t.Errorf("produce version %d: %.2f allocations per partition (%v for one, %v for all)", v, perPartition, a, b)
		}
	}
	for _, v := range []int16{4, 12, 18} {
		_, one := request(1)
		_, all := request(partitions)
		a, b := allocations(t, n, v, one), allocations(t, n, v, all)
		if a > 0 || b > 0 {
			t.Errorf("fetch version %d: %v allocations for one partition, %v for %d, want 0", v, a, b, partitions)
		}
	}
}

// An incremental fetch of a session allocates nothing either.
func TestNoAllocationInSession(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops things on purpose under the race detector")
	}
	n := startNode(t, vfs.OS, t.TempDir())
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "v"))
	open := fetchRequest(0, 0)
	open.SessionEpoch = 0
	id := call[*kmsg.FetchResponse](c, 12, open).SessionID
	req := fetchRequest(0, 0)
	req.SessionID, req.SessionEpoch = id, 1
	req.SetVersion(12)
	body := req.AppendTo(nil)
	r := &Request{Key: req.Key(), Version: 12, Listener: testListener, Body: body}
	w := &wire.Response{Buf: make([]byte, 0, 1<<20)}
	at := 4 + 4 + 4 + 1 + 4 + 4 // of the session epoch
	if got := testing.AllocsPerRun(100, func() {
		w.Buf = w.Buf[:0]
		if err := n.Handle(context.Background(), r, w); err != nil {
			t.Fatal(err)
		}
		body[at+3]++ // 1 to 101
	}); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
	if got := w.Buf[4:6]; got[0] != 0 || got[1] != 0 {
		t.Errorf("got error %x", got)
	}
}

func benchmarkHandle(b *testing.B, n *node, version int16, req kmsg.Request) {
	req.SetVersion(version)
	body := req.AppendTo(nil)
	work := make([]byte, len(body))
	r := &Request{Key: req.Key(), Version: version, Listener: testListener}
	w := &wire.Response{Buf: make([]byte, 0, 1<<20)}
	b.ReportAllocs()
	for b.Loop() {
		copy(work, body)
		r.Body, r.Received, w.Buf = work, metrics.StartStopwatch(), w.Buf[:0]
		if err := n.Handle(context.Background(), r, w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProduce(b *testing.B) {
	n := startNode(b, vfs.OS, b.TempDir())
	b.Run("100B", func(b *testing.B) {
		benchmarkHandle(b, n, 9, produceRequest(1, 0, logtest.Values(b, record.BuilderOptions{}, string(make([]byte, 100)))))
	})
	b.Run("16KiB", func(b *testing.B) {
		set := logtest.Values(b, record.BuilderOptions{}, string(make([]byte, 16<<10)))
		b.SetBytes(int64(len(set)))
		benchmarkHandle(b, n, 9, produceRequest(1, 0, set))
	})
}

func BenchmarkFetch(b *testing.B) {
	n := startNode(b, vfs.OS, b.TempDir())
	c := n.client()
	for range 10 {
		c.produce(9, 1, 0, logtest.Values(b, record.BuilderOptions{}, string(make([]byte, 10_000))))
	}
	b.Run("empty", func(b *testing.B) { benchmarkHandle(b, n, 12, fetchRequest(0, 10)) })
	b.Run("16KiB", func(b *testing.B) {
		req := fetchRequest(0, 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 16 << 10
		b.SetBytes(16 << 10)
		benchmarkHandle(b, n, 12, req)
	})
	b.Run("committed-16KiB", func(b *testing.B) {
		req := fetchRequest(0, 0)
		req.IsolationLevel = 1
		req.Topics[0].Partitions[0].PartitionMaxBytes = 16 << 10
		b.SetBytes(16 << 10)
		benchmarkHandle(b, n, 12, req)
	})
}
