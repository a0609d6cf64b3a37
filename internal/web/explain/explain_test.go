package explain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/cleaner"
)

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// shown is the text of a report, as the command shows what it got from a broker.
func shown(t *testing.T, r *cleaner.Report, now time.Time) string {
	t.Helper()
	encoded, err := json.Marshal(Of(r))
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := got.WriteText(&b, now); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Who holds back what may not be cleaned, what is missing until the ratio is reached, and what comes next.
func TestText(t *testing.T) {
	now := epoch.Add(90 * time.Minute)
	until := func(d time.Duration) *time.Time { u := now.Add(d); return &u }
	f := func(p cleaner.PartitionReport, lines ...string) {
		t.Helper()
		p.Compacted, p.MinDirtyRatio = true, 0.5
		text := shown(t, &cleaner.Report{Topic: "t", Partitions: []cleaner.PartitionReport{p}}, now)
		for _, want := range lines {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no line %q in\n%s", want, text)
			}
		}
	}
	f(cleaner.PartitionReport{
		Directory: "/a", Segments: 3, Bytes: 1536, State: "idle", Due: true, CleanableBytes: 332, HeldBytes: 402, FirstUncleanable: 2, LastStable: 2,
		DirtyRatio: 1, Deleted: true, Limit: cleaner.LimitTransaction, Transaction: &cleaner.OpenTransaction{ProducerID: 4000, ProducerEpoch: 3, Since: epoch},
	}, "t-0  1.5 KiB in 3 segments, in /a",
		"  held back  402 B from offset 2 on: last stable offset 2, by a transaction of producer 4000 (epoch 3) open since 2000-01-01T00:00:00Z (1h30m ago)",
		"  dirty      332 B that a cleaning may go through, offsets 0 to 2",
		"  ratio      1.00 dirty, limit 0.50 (min.cleanable.dirty.ratio)",
		"  next       due, cleaned as soon as a thread is free",
		"  retention  cleanup.policy has delete too: old segments go as a whole, by retention.ms and retention.bytes")
	f(cleaner.PartitionReport{HeldBytes: 664, Limit: cleaner.LimitHighWatermark, HighWatermark: 1, State: "idle", Skip: cleaner.SkipHeld},
		"  held back  664 B from offset 0 on: high watermark 1, replicas are behind",
		"  next       not due: what is dirty is held back")
	f(cleaner.PartitionReport{Limit: cleaner.LimitTransaction, LastStable: 7},
		"  held back  0 B from offset 0 on: last stable offset 7, by a transaction that is not replicated yet")
	f(cleaner.PartitionReport{HeldBytes: 332, Limit: cleaner.LimitMinLag, YoungUntil: until(50 * time.Minute)},
		"  held back  332 B from offset 0 on: min.compaction.lag.ms, over in 50m0s")
	f(cleaner.PartitionReport{Limit: cleaner.LimitActive, State: "idle", DirtyRatio: 0.33, MissingBytes: 333, CleanableBytes: 1, Skip: cleaner.SkipRatio, OverdueAt: until(2 * time.Hour)},
		"  held back  0 B from offset 0 on: the active segment, which is never cleaned",
		"  ratio      0.33 dirty, limit 0.50 (min.cleanable.dirty.ratio): 333 B more to go",
		"  next       not due: dirty ratio not above min.cleanable.dirty.ratio; due anyway in 2h0m (max.compaction.lag.ms)")
	f(cleaner.PartitionReport{MissingBytes: 1, State: "paused"},
		"  ratio      0.00 dirty, limit 0.50 (min.cleanable.dirty.ratio): the next segment that is not held back is enough",
		"  next       paused: the log is being moved, truncated or deleted")
	f(cleaner.PartitionReport{Uncleanable: "segment 0: corrupt"}, "  next       uncleanable until the next start or a forced clean: segment 0: corrupt")
	f(cleaner.PartitionReport{State: "cleaning", Progress: &cleaner.ProgressReport{
		Phase: "rewrite", MapBytes: 40, MapTotal: 40, ReadBytes: 60, ReadTotal: 400, ElapsedMs: 2000, BytesPerSecond: 50, RemainingMs: 6800, Forced: true,
	}}, "  next       cleaning", "  running    rewrite, 23% after 2s, 50 B/s, 7s left (asked for)")
	f(cleaner.PartitionReport{Last: &cleaner.Outcome{
		Started: epoch, TookMs: 1000, EndOffset: 100, BytesBefore: 2048, BytesAfter: 1024, Rate: 3072, RecordsKept: 10, Damaged: 2, Removed: cleaner.Removed{Superseded: 90},
	}}, "  last       2000-01-01T00:00:00Z: offsets 0 to 100 cleaned in 1s, 2.0 KiB to 1.0 KiB, 3.0 KiB/s",
		"             10 records kept; removed: 90 superseded by later ones",
		"             2 segments have damage and were left as they are")
	f(cleaner.PartitionReport{Last: &cleaner.Outcome{Started: epoch, TookMs: 1000, Error: "no space"}},
		"  last       2000-01-01T00:00:00Z: ended after 1s: no space")
	f(cleaner.PartitionReport{Undecided: []cleaner.UndecidedTxn{{ProducerID: 4, FirstOffset: 9, EndOffset: 19}}},
		"  undecided  the end of a transaction of producer 4, offsets 9 to 19, is lost in damage; its records are CORRUPT_MESSAGE to readers of committed records",
		"             gregor topics decide t-0 --producer 4 --first 9 {--commit|--abort}")
}

func TestTextOfTheCleaner(t *testing.T) {
	f := func(o cleaner.Overview, want string) {
		t.Helper()
		if got := shown(t, &cleaner.Report{Topic: "t", Cleaner: o}, epoch); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	f(cleaner.Overview{}, "cleaner  off (log.cleaner.enable=false): nothing is compacted, and compacted topics have no retention\n")
	f(cleaner.Overview{Enabled: true}, "cleaner  off (log.cleaner.threads=0): nothing is compacted, and compacted topics have no retention\n")
	f(cleaner.Overview{Enabled: true, Threads: 1, BackoffMs: 15000, Running: []cleaner.RunningReport{{Partition: "orders-0", Progress: cleaner.ProgressReport{Phase: "map", RemainingMs: -1}}}},
		"cleaner  1 threads, 1 at work, nothing else is due (next look within 15s)\n  orders-0  map, 0% after 0s, 0 B/s\n")
	f(cleaner.Overview{Enabled: true, Threads: 2, Next: &cleaner.NextReport{Partition: "orders-1", DirtyRatio: 0.75}, Skipped: map[cleaner.Skip]int{cleaner.SkipBusy: 2}},
		"cleaner  2 threads, 0 at work, next is orders-1 (ratio 0.75)\n  2 not due: something is under way or it is paused\n")
}

func TestRemovedText(t *testing.T) {
	f := func(r Removed, want string) {
		t.Helper()
		if got := r.text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(Removed{1, 2, 3, 4, 5}, "1 superseded by later ones, 2 tombstones older than delete.retention.ms, 3 of aborted transactions, 4 without key, 5 transaction markers")
	f(Removed{}, "none")
}

// What the cleaner says is shown whole, under the same names.
func TestNothingIsLeftOut(t *testing.T) {
	var r cleaner.Report
	n := 0
	fill(reflect.ValueOf(&r).Elem(), &n)
	compare(t, "Report", reflect.ValueOf(r), reflect.ValueOf(*Of(&r)))
	if Of(nil) != nil || OutcomeOf(nil) != nil {
		t.Error("nil is shown")
	}
}

// fill gives each field a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(epoch.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[cleaner.Skip]int{cleaner.SkipHeld: *n}))
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		v.SetInt(int64(*n))
	}
}

func compare(t *testing.T, path string, want, got reflect.Value) {
	t.Helper()
	switch {
	case want.Kind() != got.Kind():
		t.Errorf("%s: a %v is shown as %v", path, want.Kind(), got.Kind())
	case want.Kind() == reflect.Pointer:
		compare(t, path, want.Elem(), got.Elem())
	case want.Kind() == reflect.Slice && want.Len() == got.Len():
		for i := range want.Len() {
			compare(t, path, want.Index(i), got.Index(i))
		}
	case want.Kind() == reflect.Struct && want.Type() != got.Type():
		for i := range want.NumField() {
			name := want.Type().Field(i).Name
			if !got.FieldByName(name).IsValid() {
				t.Errorf("%s.%s is not shown", path, name)
				continue
			}
			compare(t, path+"."+name, want.Field(i), got.FieldByName(name))
		}
	case !reflect.DeepEqual(want.Interface(), got.Interface()):
		t.Errorf("%s: %v is shown as %v", path, want, got)
	}
}
