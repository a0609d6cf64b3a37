package compaction

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// TestReadPassesDuringCleanings reads from the beginning, again and again, while a log is written
// and cleaned 50 times and old files are removed at once: no error, offsets ascend, and of each
// key there is at least what was written when the reading began.
func TestReadPassesDuringCleanings(t *testing.T) {
	g := newLedger(t)
	must(t, g.log.Close())
	c := g.config
	c.SegmentBytes, c.IndexIntervalBytes, c.FileDeleteDelayMs = 2000, 200, 0
	l, err := commitlog.Open(commitlog.Options{FS: vfs.NewMem(), Dir: "/data/r-0", Partition: topic.Partition{Topic: "r"}, Config: c, Now: g.options.Now})
	must(t, err)
	g.log, g.config = l, c

	const keys, rounds = 7, 50
	var written [keys]atomic.Int64
	append := func(i int64) {
		key := i % keys
		g.put(kind{}, fmt.Sprintf("%d=%d", key, i))
		written[key].Store(i)
	}
	done := make(chan struct{})
	var reader sync.WaitGroup
	passes := 0
	reader.Go(func() {
		for ; ; passes++ {
			select {
			case <-done:
				return
			default:
			}
			readPass(t, l, written[:])
		}
	})
	n := int64(1)
	for range rounds {
		for range 30 {
			append(n)
			n++
		}
		g.roll()
		g.cleaned = 0
		_, err := g.tryClean(t.Context())
		must(t, err)
	}
	close(done)
	reader.Wait()
	if passes == 0 {
		t.Error("nothing was read meanwhile")
	}
	readPass(t, l, written[:])
	must(t, l.Check())
	must(t, l.Close())
}

func readPass(t *testing.T, l *commitlog.Log, written []atomic.Int64) {
	least := make([]int64, len(written))
	for key := range written {
		least[key] = written[key].Load()
	}
	last, got := int64(-1), make([]int64, len(written))
	for _, s := range consume(t, l, 0, commitlog.ReadUncommitted) {
		key, _ := strconv.Atoi(s.key)
		value, err := strconv.ParseInt(s.value, 10, 64)
		if err != nil || s.offset <= last || value != s.offset+1 {
			t.Errorf("read %v behind offset %d", s, last)
		}
		last, got[key] = s.offset, value
	}
	for key, want := range least {
		if got[key] < want {
			t.Errorf("key %d has %d, %d was written before", key, got[key], want)
		}
	}
}
