package commitlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// anySet draws a set of any format and codec as a client sends it, and what is in it.
func anySet(t *rapid.T, tag int) (set []byte, values []string) {
	format := rapid.Int8Range(0, 2).Draw(t, "format of the set")
	codec := rapid.SampledFrom([]record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4}).Draw(t, "codec")
	b := record.NewBuilder(record.BuilderOptions{Codec: codec})
	old, err := record.NewSetBuilder(record.SetOptions{Magic: min(format, 1), Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(rapid.IntRange(1, 5).Draw(t, "records")) {
		value := fmt.Sprintf("%d.%d", tag, i)
		r := record.Record{Offset: i, Timestamp: testTime.UnixMilli() + i, Key: []byte("k"), Value: []byte(value)}
		if err := b.Append(r); err != nil {
			t.Fatal(err)
		}
		if err := old.Append(r); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if format == 2 {
		return b.Build(), values
	}
	return old.Build(), values
}

// A log whose format, codec and timestamp type change now and then has every record at its
// offset, also opened again, cleanly or not.
func TestMessageFormatChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := vfs.NewMem()
		o := testOptions(mem)
		o.Config.SegmentBytes = 600
		l, err := Open(o)
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		for step := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				o.Config.MessageFormat = rapid.Int8Range(0, 2).Draw(rt, "format")
				o.Config.Compression = rapid.SampledFrom([]record.Codec{record.AsProduced, record.None, record.Gzip}).Draw(rt, "codec of the topic")
				o.Config.TimestampType = rapid.SampledFrom([]record.TimestampType{record.CreateTime, record.LogAppendTime}).Draw(rt, "timestamps")
				l.SetConfig(o.Config)
			case 1:
				o.Clean = rapid.Bool().Draw(rt, "clean")
				if err := l.Close(); err != nil {
					rt.Fatal(err)
				}
				o.RecoveryPoint = 0
				if o.Clean {
					o.RecoveryPoint = l.RecoveryPoint()
				}
				if l, err = Open(o); err != nil {
					rt.Fatal(err)
				}
			default:
				set, values := anySet(rt, step)
				info, err := l.AppendAsLeader(set, 3, AppendOptions{})
				if err != nil || info.FirstOffset != int64(len(want)) || info.LastOffset != int64(len(want)+len(values)-1) {
					rt.Fatalf("got %+v, %v, want offset %d and %d records", info, err, len(want), len(values))
				}
				for _, v := range values {
					want = append(want, fmt.Sprintf("%d:%s", len(want), v))
				}
			}
		}
		l.SetHighWatermark(l.Offsets().End)
		if got, _ := readAll(t, l, 0, ReadUncommitted); !slices.Equal(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
		if err := l.Check(); err != nil {
			rt.Fatal(err)
		}
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

// Messages have no epoch: a cache that says they have would truncate a follower wrongly.
func TestOldMessagesClearTheEpochs(t *testing.T) {
	o := testOptions(vfs.NewMem())
	l := openLog(t, o)
	l.EnterEpoch(4)
	_, err := l.AppendAsLeader(spec{}.build(t), 4, AppendOptions{})
	must(t, err)
	if got := l.LatestEpoch(); got != 4 {
		t.Fatalf("latest epoch %d, want 4", got)
	}
	o.Config.MessageFormat = 1
	l.SetConfig(o.Config)
	info, err := l.AppendAsLeader(spec{}.build(t), 4, AppendOptions{})
	must(t, err)
	if epoch, end := l.EpochEndOffset(4); l.LatestEpoch() != -1 || epoch != -1 || end != -1 || !info.Converted {
		t.Errorf("got epoch %d until %d and %+v, want none", epoch, end, info)
	}
	must(t, l.Close())
	o.Clean, o.RecoveryPoint = true, l.RecoveryPoint()
	if l = openLog(t, o); l.LatestEpoch() != -1 {
		t.Errorf("got epoch %d after a restart", l.LatestEpoch())
	}
}

func TestSegmentOffsets(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.SegmentBytes = 150
	l := openLog(t, o)
	f := func(before int64, count int, upTo Isolation, want ...int64) {
		t.Helper()
		got, err := l.SegmentOffsets(before, count, upTo)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("before %d: got %v, want %v", before, got, want)
		}
	}
	f(Latest, 10, ReadLogEnd, 0)
	for range 3 {
		_, err := l.AppendAsLeader(spec{records: 2, size: 20}.build(t), 0, AppendOptions{})
		must(t, err)
	}
	for i, s := range l.offsets.Load().segments {
		must(t, s.SetModTime(testTime.Add(-time.Duration(3-i)*time.Second)))
	}
	ms := testTime.UnixMilli()
	f(Latest, 10, ReadLogEnd, 6, 4, 2, 0)
	f(Latest, 2, ReadLogEnd, 6, 4)
	f(Latest, -1, ReadLogEnd)
	f(Earliest, 10, ReadLogEnd, 0)
	f(ms, 10, ReadLogEnd, 6, 4, 2, 0)
	f(ms-1, 10, ReadLogEnd, 4, 2, 0)
	f(ms-1500, 10, ReadLogEnd, 2, 0)
	f(ms-3000, 10, ReadLogEnd, 0)
	f(ms-3001, 10, ReadLogEnd)
	l.SetHighWatermark(3)
	f(Latest, 10, ReadUncommitted, 3, 2, 0)
	l.SetHighWatermark(6)
	must(t, l.IncrementLogStart(1))
	f(Earliest, 10, ReadUncommitted, 1)
}
