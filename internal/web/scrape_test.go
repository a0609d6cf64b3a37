package web

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// StartBroker starts node 1 in memory with metadata records; it ends with the test. Package broker imports this one:
// broker_test.go, which is outside, says how.
var StartBroker func(testing.TB, ...metadata.Record) *Server

// newPartsServer returns the server of a broker that has so many topics with so many partitions each.
func newPartsServer(t testing.TB, topics, partitions int) *Server {
	t.Helper()
	var records []metadata.Record
	for i := range topics {
		r := metadata.NewTopicRecord()
		r.Name, r.TopicID = fmt.Sprintf("topic-%05d", i), uuid.UUID{6: 0x40, 14: byte(i >> 8), 15: byte(i)}
		records = append(records, r)
		for n := range partitions {
			p := metadata.NewPartitionRecord()
			p.PartitionID, p.TopicID, p.Leader = int32(n), r.TopicID, 1
			p.Replicas, p.ISR, p.Directories = []int32{1}, []int32{1}, make([]uuid.UUID, 1)
			records = append(records, p)
		}
	}
	return StartBroker(t, records...)
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
