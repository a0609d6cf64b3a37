package cleaner

import (
	"errors"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/compaction"
)

// What a cleaning without a map, or without time, or of no success, reports are numbers all the same.
func TestOutcome(t *testing.T) {
	s := newShelf(t)
	c := &cleaning{log: s.add("/a", orders0, compacted()), started: time.UnixMilli(1000)}
	f := func(r compaction.Result, took time.Duration, err error, utilization, rate float64, text string) {
		t.Helper()
		out := newOutcome(c, &r, 0, 0, c.started.Add(took), err)
		if out.MapUtilization != utilization || out.Rate != rate || out.Error != text || out.TookMs != took.Milliseconds() {
			t.Errorf("got %+v", out)
		}
	}
	f(compaction.Result{}, 0, nil, 0, 0, "")
	f(compaction.Result{MapBytesRead: 100}, 0, nil, 0, 0, "")
	f(compaction.Result{MapEntries: 1, MapSlots: 4, MapBytesRead: 100, BytesRead: 200, BytesWritten: 300}, 2*time.Second, nil, 0.25, 300, "")
	f(compaction.Result{}, time.Second, errors.New("disk"), 0, 0, "disk")
}

// Rounds of one cleaning add up; rates count by their time.
func TestOutcomeThen(t *testing.T) {
	none := Outcome{Rounds: 1}
	if got := none.then(&Outcome{Rounds: 1}); got.Rate != 0 || got.Rounds != 2 {
		t.Errorf("two rounds without time: %+v", got)
	}
	first := Outcome{Rounds: 1, TookMs: 1, Rate: 100, MapUtilization: 0.9, FirstDirty: 5, EndOffset: 7, BytesBefore: 50, BytesAfter: 40}
	got := first.then(&Outcome{Rounds: 1, TookMs: 3, Rate: 200, MapUtilization: 0.5, FirstDirty: 7, EndOffset: 9, BytesBefore: 40, BytesAfter: 30})
	if got.TookMs != 4 || got.Rate != 175 || got.MapUtilization != 0.9 || got.FirstDirty != 5 || got.EndOffset != 9 || got.BytesBefore != 50 || got.BytesAfter != 30 {
		t.Errorf("got %+v", got)
	}
}
