package logdir

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/cputime"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// BenchmarkLoadClean is what a start costs for each partition after a clean stop, from Open on, and
// what an idle partition holds. The directories lie in TMPDIR; a partition holds a few records.
func BenchmarkLoadClean(b *testing.B) {
	benchmarkLoad(b, func(m *Manager) error { return m.Close(context.Background()) })
}

// BenchmarkLoadKilled is the same after a kill.
func BenchmarkLoadKilled(b *testing.B) {
	benchmarkLoad(b, func(m *Manager) error { return m.dirs.unlock() })
}

func benchmarkLoad(b *testing.B, stop func(*Manager) error) {
	for _, partitions := range []int{100, 10_000} {
		b.Run(strconv.Itoa(partitions), func(b *testing.B) {
			c := testConfig(vfs.OS, b.TempDir())
			m := mustLoad(b, c)
			for i := range partitions {
				mustAppend(b, mustCreate(b, m, topic.Partition{Topic: "orders", Partition: int32(i)}), 3)
			}
			var idle int64
			var used time.Duration
			for b.Loop() {
				b.StopTimer()
				if err := stop(m); err != nil {
					b.Fatal(err)
				}
				m = nil
				before := heapBytes()
				b.StartTimer()
				used += cputime.Of(func() {
					m = mustOpen(b, c)
					if err := m.Load(context.Background(), LoadOptions{Fate: func(FoundPartition) Decision { return Decision{} }}); err != nil {
						b.Fatal(err)
					}
				})
				b.StopTimer()
				idle = heapBytes() - before
				b.StartTimer()
			}
			reportPerPartition(b, used, partitions)
			b.ReportMetric(float64(idle)/float64(partitions), "heapB/partition")
		})
	}
}

// BenchmarkCreate is what a new partition costs, in one directory and in several, created one after the
// other and beside each other. BenchmarkClose is the stop when all have records that are not on disk. The
// directories lie in TMPDIR.
func BenchmarkCreate(b *testing.B) {
	for _, dirs := range []int{1, 4} {
		for _, workers := range []int{1, 8} {
			b.Run(fmt.Sprintf("dirs=%d/workers=%d", dirs, workers), func(b *testing.B) {
				benchmarkCreate(b, vfs.OS, dirs, workers)
			})
		}
	}
}

// BenchmarkCreateOnSlowDisks is the same where each operation that makes a file or a directory takes a
// disk 0.2 ms, and one disk does one after the other.
func BenchmarkCreateOnSlowDisks(b *testing.B) {
	for _, dirs := range []int{1, 4} {
		b.Run(fmt.Sprintf("dirs=%d", dirs), func(b *testing.B) { benchmarkCreate(b, nil, dirs, 8) })
	}
}

// slowDisks are directories in memory, each on a disk of its own.
func slowDisks(dirs []string) vfs.FS {
	fsys := vfs.NewMem()
	disks := make([]sync.Mutex, len(dirs))
	fsys.SetHook(func(op vfs.Op) error {
		for i, dir := range dirs {
			if (op.Kind == vfs.OpCreate || op.Kind == vfs.OpMkdir) && strings.HasPrefix(op.Name, dir+"/") {
				disks[i].Lock()
				time.Sleep(200 * time.Microsecond)
				disks[i].Unlock()
			}
		}
		return nil
	})
	return fsys
}

func benchmarkCreate(b *testing.B, fsys vfs.FS, dirs, workers int) {
	const partitions = 1000
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		paths := make([]string, dirs)
		for i := range paths {
			paths[i] = "/" + strconv.Itoa(i)
			if fsys != nil {
				paths[i] = b.TempDir()
			}
		}
		disks := fsys
		if disks == nil {
			disks = slowDisks(paths)
		}
		m := mustLoad(b, testConfig(disks, paths...))
		b.StartTimer()
		used += cputime.Of(func() {
			var creators sync.WaitGroup
			for w := range workers {
				creators.Go(func() {
					for i := w; i < partitions; i += workers {
						if _, err := m.Create(topic.Partition{Topic: "orders", Partition: int32(i)}, ordersID, commitlog.DefaultConfig(), uuid.Zero, true); err != nil {
							b.Error(err)
						}
					}
				})
			}
			creators.Wait()
		})
		b.StopTimer()
		mustClose(b, m)
		b.StartTimer()
	}
	reportPerPartition(b, used, partitions)
}

func BenchmarkClose(b *testing.B) {
	const partitions = 1000
	m := mustLoad(b, testConfig(vfs.OS, b.TempDir()))
	for i := range partitions {
		mustCreate(b, m, topic.Partition{Topic: "orders", Partition: int32(i)})
	}
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		for _, l := range m.Logs() {
			mustAppend(b, l, 3)
		}
		b.StartTimer()
		used += cputime.Of(func() { mustClose(b, m) })
		b.StopTimer()
		m = mustLoad(b, m.cfg)
		b.StartTimer()
	}
	reportPerPartition(b, used, partitions)
}

func reportPerPartition(b *testing.B, used time.Duration, partitions int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*partitions), "us/partition")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N*partitions), "cpu-us/partition")
}

func heapBytes() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
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
