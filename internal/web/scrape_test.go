package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

const testNode = 1

// startParts makes logs in memory and what hosts them: topics with so many partitions each.
func startParts(t testing.TB, topics, partitions int) (*logdir.Manager, *replica.Manager) {
	t.Helper()
	cfg := logdir.DefaultConfig()
	cfg.FS, cfg.Dirs, cfg.NodeID = vfs.NewMem(), []string{"data"}, testNode
	logs, err := logdir.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.Load(context.Background(), logdir.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { logs.Close(context.Background()) })
	m := replica.NewManager(replica.Options{
		NodeID: testNode, Logs: logs, LogConfig: func(string) commitlog.Config { return commitlog.DefaultConfig() },
	})
	var records []metadata.Record
	for i := range topics {
		r := metadata.NewTopicRecord()
		r.Name, r.TopicID = fmt.Sprintf("topic-%05d", i), uuid.UUID{6: 0x40, 14: byte(i >> 8), 15: byte(i)}
		records = append(records, r)
		for n := range partitions {
			p := metadata.NewPartitionRecord()
			p.PartitionID, p.TopicID, p.Leader = int32(n), r.TopicID, testNode
			p.Replicas, p.ISR, p.Directories = []int32{testNode}, []int32{testNode}, make([]uuid.UUID, 1)
			records = append(records, p)
		}
	}
	_, delta, err := metadata.NewImage("cluster").Apply(records, int64(len(records)), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(delta); err != nil {
		t.Fatal(err)
	}
	return logs, m
}

func newPartsServer(t testing.TB, topics, partitions int) *Server {
	s, _ := newServer(t)
	logs, replicas := startParts(t, topics, partitions)
	s.Collect(Logs(logs), Replicas(replicas, replica.NewSessions(replica.SessionOptions{})),
		Cluster(testNode, replicas.Image), Broker("cluster", testNode, func() Health { return Health{State: Running} }))
	return s
}

// Each partition has its samples, each topic its, and the sums are theirs.
func TestSamplesOfPartitions(t *testing.T) {
	s := newPartsServer(t, 3, 4)
	var text bytes.Buffer
	if err := s.writeMetrics(&text, time.Now()); err != nil {
		t.Fatal(err)
	}
	f := func(want int, sample string) {
		t.Helper()
		if got := strings.Count(text.String(), "\n"+sample); got != want {
			t.Errorf("%d lines begin with %s, want %d in\n%s", got, sample, want, text.String())
		}
	}
	f(12, "kafka_log_log_size{")
	f(12, "kafka_cluster_partition_replicascount{")
	f(1, `kafka_log_log_size{topic="topic-00002",partition="3"} 0`)
	f(3, "kafka_server_brokertopicmetrics_bytesin_total{")
	f(1, "kafka_server_brokertopicmetrics_bytesin_total 0")
	f(1, "kafka_server_replicamanager_leadercount 12")
	f(1, "kafka_controller_kafkacontroller_globalpartitioncount 12")
	f(1, "gregor_partitions_without_samples 0")
	f(1, "kafka_server_replicamanager_produceridcount 0")
	f(1, "kafka_log_logflushstats_logflushrateandtimems_count 0")
}

// The cost grows with the number of partitions and topics: ten thousand cost ten times as
// much.
func BenchmarkScrape(b *testing.B) {
	const topics, partitions = 100, 1000
	s := newPartsServer(b, topics, partitions/topics)
	b.Run("plain", func(b *testing.B) {
		benchmarkScrape(b, func(w *countingWriter) error { return s.writeMetrics(w, time.Now()) })
	})
	b.Run("gzip", func(b *testing.B) {
		benchmarkScrape(b, func(w *countingWriter) error {
			z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
			if err == nil {
				err = s.writeMetrics(z, time.Now())
			}
			return errors.Join(err, z.Close())
		})
	})
}

func benchmarkScrape(b *testing.B, write func(*countingWriter) error) {
	b.ReportAllocs()
	var size countingWriter
	for b.Loop() {
		size = 0
		if err := write(&size); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}

type countingWriter int

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}
