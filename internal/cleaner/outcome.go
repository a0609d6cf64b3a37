package cleaner

import (
	"context"
	"errors"
	"time"

	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// An Outcome says how a cleaning ended, or several of one log, one behind the other, that
// somebody asked for. It does not change.
type Outcome struct {
	Partition string
	Started   time.Time
	TookMs    int64
	Rounds    int
	Forced    bool
	Error     string

	FirstDirty  int64 // offsets [FirstDirty, EndOffset) are clean now
	EndOffset   int64
	BytesBefore int64 // of the whole log
	BytesAfter  int64
	Rate        float64 // read and written

	BytesRead      int64 // in both phases
	BytesWritten   int64
	RecordsRead    int64
	RecordsKept    int64
	MapKeys        int64
	MapUtilization float64
	Damaged        int

	Removed Removed
}

// Removed counts records that went, by reason.
type Removed struct {
	Superseded int64 // a later record has the same key
	Tombstones int64 // older than delete.retention.ms
	Aborted    int64 // of aborted transactions
	Keyless    int64
	Markers    int64 // of transactions that have no records left
}

func (r *Removed) add(o Removed) {
	r.Superseded += o.Superseded
	r.Tombstones += o.Tombstones
	r.Aborted += o.Aborted
	r.Keyless += o.Keyless
	r.Markers += o.Markers
}

// newOutcome describes a cleaning that ended at a time.
func newOutcome(c *cleaning, r *compaction.Result, before, after int64, ended time.Time, err error) *Outcome {
	took := ended.Sub(c.started)
	out := &Outcome{
		Partition: c.log.Partition().String(), Started: c.started, TookMs: took.Milliseconds(), Rounds: 1, Forced: c.forced,
		FirstDirty: c.plan.FirstDirty, EndOffset: r.EndOffset, BytesBefore: before, BytesAfter: after,
		BytesRead: r.MapBytesRead + r.BytesRead, BytesWritten: r.BytesWritten,
		RecordsRead: r.RecordsRead, RecordsKept: r.RecordsWritten,
		MapKeys: r.MapEntries, Damaged: r.Damaged,
		Removed: Removed{r.Superseded, r.Tombstones, r.Aborted, r.Keyless, r.Markers},
	}
	if r.MapSlots > 0 {
		out.MapUtilization = float64(r.MapEntries) / float64(r.MapSlots)
	}
	if took > 0 {
		out.Rate = float64(out.BytesRead+out.BytesWritten) / took.Seconds()
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// then returns the outcome of a cleaning and one that followed.
func (o Outcome) then(next *Outcome) *Outcome {
	took := float64(o.TookMs)*o.Rate + float64(next.TookMs)*next.Rate
	o.TookMs += next.TookMs
	if o.TookMs > 0 {
		o.Rate = took / float64(o.TookMs)
	}
	o.Rounds += next.Rounds
	o.Error, o.EndOffset, o.BytesAfter = next.Error, next.EndOffset, next.BytesAfter
	o.BytesRead += next.BytesRead
	o.BytesWritten += next.BytesWritten
	o.RecordsRead += next.RecordsRead
	o.RecordsKept = next.RecordsKept
	o.MapKeys += next.MapKeys
	o.MapUtilization = max(o.MapUtilization, next.MapUtilization)
	o.Damaged = next.Damaged
	o.Removed.add(next.Removed)
	return &o
}

// Totals count cleanings since the start.
type Totals struct {
	Cleanings, Aborted, Failed int64
	BytesRead, BytesWritten    int64
	RecordsRead, RecordsKept   int64
	Removed                    Removed
}

// note remembers the outcome of a cleaning.
func (m *Manager) note(p topic.Partition, out *Outcome, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.mu.totals
	switch {
	case err == nil:
		t.Cleanings++
		m.mu.history[p] = out
	case errors.Is(err, context.Canceled):
		t.Aborted++
	default:
		t.Failed++
		m.mu.history[p] = out
	}
	t.BytesRead += out.BytesRead
	t.BytesWritten += out.BytesWritten
	t.RecordsRead += out.RecordsRead
	t.RecordsKept += out.RecordsKept
	t.Removed.add(out.Removed)
}
