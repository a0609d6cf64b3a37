package compaction

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

// TestMetamorphic writes one history to logs that differ in segment size, codec, map size,
// buffers and the number of cleanings on the way. A consumer of any of them sees the same in
// the end.
func TestMetamorphic(t *testing.T) {
	type variant struct {
		segmentBytes, slots, buffer, cleanings int
		codec                                  record.Codec
	}
	var want string
	for i, v := range []variant{
		{1 << 20, 1000, 1 << 20, 1, record.None},
		{400, 1000, 1 << 20, 1, record.None},
		{400, 12, 1, 1, record.None},
		{2000, 10, 1, 7, record.Gzip},
		{700, 5, 4 << 10, 20, record.LZ4},
		{5000, 1000, 4 << 10, 3, record.Snappy},
		{1 << 20, 8, 4 << 10, 2, record.Zstd},
	} {
		t.Run(fmt.Sprintf("%+v", v), func(t *testing.T) {
			g := newLedger(t, func(c *commitlog.Config) { c.SegmentBytes, c.IndexIntervalBytes = v.segmentBytes, 100 })
			g.options.MapBytes, g.options.BufferBytes = int64(v.slots)*slotSize, v.buffer
			got := g.metamorphic(v.codec, v.cleanings)
			if i == 0 {
				want = got
			}
			if got != want {
				t.Errorf("consumer sees\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// metamorphic writes the history and cleans it so many times on the way, then to the end until
// nothing changes any more.
func (g *ledger) metamorphic(codec record.Codec, cleanings int) string {
	const steps = 300
	rng := rand.New(rand.NewPCG(5, 6))
	open := map[int64]bool{}
	for i := range steps {
		producer := rng.Int64N(3)
		var records []string
		for range 1 + rng.IntN(4) {
			r := fmt.Sprintf("k%d", rng.IntN(30))
			if rng.IntN(4) > 0 {
				r += fmt.Sprintf("=%d", i)
			}
			records = append(records, r)
		}
		g.put(kind{producer: producer, txn: producer > 0, codec: codec}, records...)
		open[producer] = producer > 0
		if rng.IntN(3) == 0 && open[producer] {
			g.end(producer, 0, record.ControlType(rng.IntN(2)))
			open[producer] = false
		}
		if (i+1)%(steps/cleanings) == 0 {
			g.clean()
		}
	}
	for producer := range int64(3) {
		if open[producer] {
			g.end(producer, 0, record.ControlCommit)
		}
	}
	g.put(kind{}, "end=1")
	g.roll()
	for range 4 { // tombstones and markers go at last
		for g.cleaned = 0; g.plan().FirstDirty < g.plan().FirstUncleanable; {
			g.clean()
		}
		g.now = g.now.Add(2 * ledgerDelay * 1e6)
	}
	committed := join(consume(g.t, g.log, 0, commitlog.ReadCommitted))
	if got := g.records(); got != committed {
		g.t.Errorf("read_uncommitted sees\n%s\nread_committed\n%s", got, committed)
	}
	return committed
}
