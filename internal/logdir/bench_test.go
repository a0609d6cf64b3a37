package logdir

import (
	"context"
	"fmt"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// BenchmarkLoad is what a start costs for each partition after a clean stop. The
// directories lie in TMPDIR; a partition holds a few records.
func BenchmarkLoad(b *testing.B) {
	for _, partitions := range []int{100, 2000} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			c := testConfig(vfs.OS, b.TempDir())
			m := mustLoad(b, c)
			for i := range partitions {
				mustAppend(b, mustCreate(b, m, topic.Partition{Topic: "orders", Partition: int32(i)}), 3)
			}
			for b.Loop() {
				b.StopTimer()
				if err := m.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				m = mustOpen(b, c)
				b.StartTimer()
				err := m.Load(context.Background(), LoadOptions{Keep: func(topic.Partition, uuid.UUID) bool { return true }})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*partitions), "us/partition")
		})
	}
}

// BenchmarkCheckpoint is one run of the high watermark task.
func BenchmarkCheckpoint(b *testing.B) {
	const partitions = 1000
	m := mustLoad(b, testConfig(vfs.NewMem(), "/a"))
	var log *commitlog.Log
	for i := range partitions {
		log = mustCreate(b, m, topic.Partition{Topic: "orders", Partition: int32(i)})
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			m.checkpointAll(highWatermarks)
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			mustAppend(b, log, 1)
			m.checkpointAll(highWatermarks)
		}
	})
}
