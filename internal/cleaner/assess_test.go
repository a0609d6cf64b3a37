package cleaner

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// The script has the shape of a log, one segment a line, the last one active:
//
//	BASE BYTES [LARGEST-TIMESTAMP [FIRST-TIMESTAMP]]      in ms; 0 is none
func TestAssess(t *testing.T) {
	datadriven.RunTest(t, "testdata/assess", func(t *testing.T, d *datadriven.TestData) string {
		checkpoint, start, stable, hw, end := int64(noCheckpoint), int64(0), int64(-1), int64(-1), int64(-1)
		now, minLag, maxLag := int64(1000), int64(0), int64(math.MaxInt64)
		c := commitlog.Config{MinCleanableRatio: 0.5}
		for name, value := range map[string]*int64{
			"checkpoint": &checkpoint, "start": &start, "stable": &stable, "hw": &hw, "end": &end, "now": &now, "min-lag": &minLag, "max-lag": &maxLag,
		} {
			d.MaybeScanArgs(t, name, value)
		}
		if s := ""; d.MaybeScanArgs(t, "ratio", &s) {
			fmt.Sscan(s, &c.MinCleanableRatio)
		}
		c.MinCompactionLagMs, c.MaxCompactionLagMs = minLag, maxLag
		s := parseShape(t, d.Input, end)
		s.logStart, s.highWatermark, s.lastStable = start, s.end, s.end
		if hw >= 0 {
			s.highWatermark, s.lastStable = hw, hw
		}
		if stable >= 0 {
			s.lastStable = stable
		}
		a, err := assess(s, checkpoint, &c, time.UnixMilli(now))
		if err != nil {
			t.Fatal(err)
		}
		forced, err := assessForced(s, checkpoint, &c, time.UnixMilli(now))
		if err != nil {
			t.Fatal(err)
		}
		return describe(&a, s, c.MinCleanableRatio) + describeForced(&forced)
	})
}

func parseShape(t *testing.T, text string, end int64) *shape {
	t.Helper()
	s := &shape{}
	for line := range strings.Lines(text) {
		var seg stretch
		var largest, first int64
		if n, _ := fmt.Sscan(line, &seg.base, &seg.bytes, &largest, &first); n < 2 {
			t.Fatalf("segment %q", line)
		}
		seg.largest = func() (int64, error) { return largest, nil }
		seg.first = func() (int64, error) { return first, nil }
		if n := len(s.segments); n > 0 {
			s.segments[n-1].next = seg.base
		}
		s.segments = append(s.segments, seg)
	}
	if s.end = end; end < 0 {
		s.end = s.active().base
		if s.active().bytes > 0 {
			s.end += 10
		}
	}
	s.active().next = s.end
	return s
}

func describe(a *assessment, s *shape, minRatio float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dirty=%d uncleanable=%d limit=%q", a.firstDirty, a.firstUncleanable, a.limit)
	if a.corrected {
		b.WriteString(" corrected")
	}
	fmt.Fprintf(&b, "\nclean=%d cleanable=%d held=%d ratio=%.3f", a.cleanBytes, a.cleanableBytes, a.heldBytes, a.ratio)
	if !a.mustFrom.IsZero() {
		fmt.Fprintf(&b, " due=%d", a.mustFrom.UnixMilli())
	}
	switch skip := a.skip(s); {
	case a.must:
		b.WriteString("\neligible: overdue")
	case skip == "":
		b.WriteString("\neligible: ratio")
	default:
		fmt.Fprintf(&b, "\nnot eligible: %s", skip)
		if missing := a.missingBytes(minRatio); missing > 0 && a.cleanBytes+a.cleanableBytes > 0 {
			fmt.Fprintf(&b, ", %d bytes missing", missing)
		}
	}
	return b.String() + "\n"
}

func describeForced(a *assessment) string {
	if a.cleanableBytes == 0 {
		return "forced: nothing\n"
	}
	return fmt.Sprintf("forced: [%d,%d) %d bytes\n", a.firstDirty, a.firstUncleanable, a.cleanableBytes)
}

// Timestamps are read from files only where a rule needs them, and an error of that is told.
func TestAssessReadsTimestampsWhereTheyCount(t *testing.T) {
	broken := errors.New("disk")
	fail := func() (int64, error) { return 0, broken }
	s := &shape{end: 20, highWatermark: 20, lastStable: 20, segments: []stretch{
		{base: 0, next: 10, bytes: 5, largest: fail, first: fail}, {base: 10, next: 20, bytes: 5, largest: fail, first: fail},
	}}
	f := func(minLag, maxLag int64, want error) {
		t.Helper()
		_, err := assess(s, noCheckpoint, &commitlog.Config{MinCompactionLagMs: minLag, MaxCompactionLagMs: maxLag}, time.UnixMilli(0))
		if !errors.Is(err, want) {
			t.Errorf("min lag %d, max lag %d: got %v, want %v", minLag, maxLag, err, want)
		}
	}
	f(0, math.MaxInt64, nil)
	f(1, math.MaxInt64, broken)
	f(0, 1, broken)
}
