package commitlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A batch whose first copy is in quarantine is written again when its producer sends it again, and is known
// from then on. One in front of others of the producer is refused: neither in its place nor behind them
// can it be read in order.
func TestBatchInQuarantineIsWrittenAgain(t *testing.T) {
	for _, clean := range []bool{true, false} {
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.HighWatermark, o.Clean = 6, clean
		size := int64(len(contentsOf(t, mem, logName(4)))) / 2
		overwrite(t, mem, logName(4), size+70, []byte("x"))
		l, err := Open(o)
		must(t, err)
		again := func() (AppendInfo, error) {
			return l.AppendAsLeader(spec{tag: "b", producer: &record.Producer{ID: 7, BaseSequence: 5}}.build(t), 0, AppendOptions{})
		}
		for _, want := range []string{"6 false", "6 true"} {
			info, err := again()
			must(t, err)
			if got := fmt.Sprint(info.FirstOffset, info.Duplicate); got != want {
				t.Errorf("clean %v: sent again at %s, want %s", clean, got, want)
			}
		}
		r, err := l.Read(6, 1000, ReadLogEnd, true)
		if err != nil || r.Slice.First().BaseOffset != 6 {
			t.Errorf("clean %v: read at %d, %v", clean, r.Slice.First().BaseOffset, err)
		}
		r.Slice.Release()
		if info := mustAppend(t, l, spec{producer: &record.Producer{ID: 7, BaseSequence: 6}}.build(t)); info.FirstOffset != 7 {
			t.Errorf("clean %v: the next one is at %d", clean, info.FirstOffset)
		}
		must(t, l.Close())
	}
}

func TestEarlierBatchInQuarantineIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Clean = true
	l, err := Open(o)
	must(t, err)
	data := func(id int64, sequence int32) []byte {
		return spec{tag: "a", txn: id == 8, producer: &record.Producer{ID: id, BaseSequence: sequence}}.build(t)
	}
	mustAppend(t, l, data(7, 0))
	mustAppend(t, l, data(8, 0))
	size := l.Offsets().active().Size()
	mustAppend(t, l, data(7, 1))
	mustMark(t, l, marker(8, 0, false, 1))
	overwrite(t, mem, logName(0), 70, []byte("x"))
	overwrite(t, mem, logName(0), size-1, []byte("x"))
	l.Offsets().active().Guard(l.Offsets().End) // as after a start, but for what a snapshot leaves out
	must(t, l.Scrub(nil))
	for name, set := range map[string][]byte{"another one is behind it": data(7, 0), "its transaction has ended": data(8, 0)} {
		if info, err := l.AppendAsLeader(set, 0, AppendOptions{}); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	l.Abandon()
}

// Compaction leaves the newest batch of each producer, at least its header. So one that is not there is lost, and written
// again; an earlier one may have been compacted.
func TestBatchThatIsNotThereIsWrittenAgain(t *testing.T) {
	f := func(clean bool, base int64, sequence int32, want string) {
		t.Helper()
		mem := vfs.NewMem()
		o := threeSegments(t, mem)
		o.HighWatermark, o.Clean, o.RecoveryPoint, o.Config.Compact = 6, clean, 4, true
		for _, name := range []string{logName(base), indexName(base), segment.Name(base, segment.TimeIndexFile, "")} {
			must(t, vfs.WriteFileAtomic(mem, dir+name, nil))
		}
		l, err := Open(o)
		must(t, err)
		info, err := l.AppendAsLeader(spec{tag: "b", producer: &record.Producer{ID: 7, BaseSequence: sequence}}.build(t), 0, AppendOptions{})
		must(t, err)
		if got := fmt.Sprint(info.FirstOffset, info.Duplicate); got != want {
			t.Errorf("segment %d is empty: sequence %d sent again is at %s, want %s", base, sequence, got, want)
		}
		must(t, l.Close())
	}
	f(true, 4, 5, "6 false")
	f(false, 2, 3, "3 true") // in the empty one
	f(true, 2, 5, "5 true")
	f(false, 0, 5, "5 true")
}
