package commitlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/cputime"
)

// BenchmarkRoll measures how long a roll holds the log's mutex, while the background syncs what
// the roll before has sealed. A segment has 1 MiB in batches of 16 KiB. The target is 100 us. A
// roll makes four files; what the file system takes for that is measured in turns with it.
func BenchmarkRoll(b *testing.B) {
	o := diskOptions(b)
	o.Config.RetentionBytes, o.Config.RetentionMs = 16<<20, -1
	l := openLog(b, o)
	a := newAppender(b, l, 16<<10)
	scratch := b.TempDir()
	var held []time.Duration
	var used, floor time.Duration
	for b.Loop() {
		b.StopTimer()
		for range 64 {
			a.append(b)
		}
		if len(held)%64 == 0 {
			_, err := l.DeleteOldSegments(time.Now())
			must(b, err)
		}
		floor += cputime.OfThread(func() { makeFiles(b, scratch, len(held)) })
		b.StartTimer()
		used += cputime.OfThread(func() {
			l.mu.Lock()
			began := time.Now()
			err := l.rollLocked(l.offsets.data, "asked", l.config.Load())
			held = append(held, time.Since(began))
			l.mu.Unlock()
			must(b, err)
		})
		b.StopTimer()
		must(b, l.offsets.Load().active().MakeIndexFiles())
		b.StartTimer()
	}
	slices.Sort(held)
	b.ReportMetric(float64(held[len(held)/2].Nanoseconds())/1e3, "us-median")
	b.ReportMetric(float64(held[len(held)*99/100].Nanoseconds())/1e3, "us-p99")
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us")
	b.ReportMetric(float64(floor.Nanoseconds())/1e3/float64(b.N), "cpu-us-of-two-files")
}

func makeFiles(b *testing.B, dir string, i int) {
	for _, suffix := range []string{"log", "snapshot"} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%020d.%s", i, suffix)))
		must(b, err)
		_, err = f.Write(make([]byte, 10))
		must(b, errors.Join(err, f.Close()))
	}
}
