package commitlog

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func wantOffsets(t *testing.T, l *Log, logStart, lastStable, highWatermark, end int64) {
	t.Helper()
	o := l.Offsets()
	got := [...]int64{o.LogStart, o.LastStable, o.HighWatermark, o.End}
	if want := [...]int64{logStart, lastStable, highWatermark, end}; got != want {
		t.Errorf("log start, last stable, high watermark, end: got %v, want %v", got, want)
	}
}

func bases(l *Log) (list []int64) {
	for _, s := range l.Segments() {
		list = append(list, s.BaseOffset)
	}
	return list
}

func TestAppendAndRead(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	info := mustAppend(t, l, spec{records: 3, tag: "a"}.build(t))
	want := AppendInfo{FirstOffset: 0, LastOffset: 2, MaxTimestamp: testTime.UnixMilli(), LogAppendTime: -1, Count: 3}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	mustAppend(t, l, spec{records: 2, tag: "b", codec: record.LZ4}.build(t))
	wantOffsets(t, l, 0, 5, 5, 5)
	for start, want := range []string{"0:a0 1:a1 2:a2 3:b0 4:b1", "1:a1 2:a2 3:b0 4:b1", "2:a2 3:b0 4:b1", "3:b0 4:b1", "4:b1", ""} {
		if got, _ := readAll(t, l, int64(start), ReadUncommitted); strings.Join(got, " ") != want {
			t.Errorf("from %d: got %v, want %s", start, got, want)
		}
	}
	for _, start := range []int64{-1, 6} {
		if r, err := l.Read(start, 100, ReadUncommitted, segment.WholeFirst); !errors.Is(err, ErrOffsetOutOfRange) || r.Offsets == nil {
			t.Errorf("read at %d: %v", start, err)
		}
	}
}

// A fetch offset inside of a batch, also of the last one, gets the whole batch.
func TestReadSizes(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	set := spec{records: 3}.build(t)
	size := len(set)
	mustAppend(t, l, set)
	mustAppend(t, l, spec{records: 3}.build(t))
	f := func(start int64, maxBytes int, minOne segment.FirstBatch, wantSize int, wantIncomplete bool) {
		t.Helper()
		r, err := l.Read(start, maxBytes, ReadUncommitted, minOne)
		must(t, err)
		defer r.Slice.Release()
		if r.Slice.Size() != wantSize || r.Slice.FirstBatchIncomplete() != wantIncomplete {
			t.Errorf("read(%d, %d, %v): %d bytes, incomplete %v; want %d, %v", start, maxBytes, minOne,
				r.Slice.Size(), r.Slice.FirstBatchIncomplete(), wantSize, wantIncomplete)
		}
	}
	f(0, 1<<20, true, 2*size, false)
	f(0, 10, true, size, false)
	f(0, 10, false, 10, true)
	f(0, 0, false, 0, false)
	f(2, 1<<20, true, 2*size, false)
	f(5, 1<<20, true, size, false)
	f(6, 1<<20, true, 0, false)
}

// Readers stop at the high watermark and the last stable offset of one snapshot, also
// when the limit lies inside a batch or in another segment.
func TestReadLimits(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	for range 3 {
		_, err := l.AppendAsLeader(spec{records: 2}.build(t), 0, AppendOptions{})
		must(t, err)
	}
	must(t, l.Roll())
	_, err := l.AppendAsLeader(spec{records: 2}.build(t), 0, AppendOptions{})
	must(t, err)
	for hw, wantEnd := range []int64{0, 0, 2, 2, 4, 4, 6, 6, 8} {
		l.offsets.recent.clear() // no place is remembered: readers find it
		l.SetHighWatermark(int64(hw))
		if _, end := readAll(t, l, 0, ReadUncommitted); end != wantEnd {
			t.Errorf("high watermark %d: read up to %d, want %d", hw, end, wantEnd)
		}
	}
	l.SetHighWatermark(3)
	if _, end := readAll(t, l, 0, ReadLogEnd); end != 8 {
		t.Errorf("a follower reads up to %d, want 8", end)
	}
	if !l.IncrementHighWatermark(100) || l.IncrementHighWatermark(7) || l.Offsets().HighWatermark != 8 {
		t.Errorf("high watermark %d, want 8", l.Offsets().HighWatermark)
	}
	if got := l.SetHighWatermark(-5); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}

// KAFKA-2477: bytes in the file that are not published yet are not read.
func TestReadDuringAppend(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	mustAppend(t, l, spec{}.build(t))
	reading := false
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind != vfs.OpWrite || reading || filepath.Ext(op.Name) != ".log" {
			return nil
		}
		reading = true
		for _, upTo := range []Isolation{ReadUncommitted, ReadLogEnd} {
			if _, end := readAll(t, l, 0, upTo); end != 1 {
				t.Errorf("during the append: read up to %d, want 1", end)
			}
		}
		return nil
	})
	mustAppend(t, l, spec{}.build(t))
	mem.SetHook(nil)
	if !reading {
		t.Fatal("the append wrote nothing")
	}
}

func TestRefusedAppendLeavesNoTrace(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Config.MaxMessageBytes, o.Config.SegmentBytes = 500, 400
	l := openLog(t, o)
	p := &record.Producer{ID: 7, BaseSequence: 0}
	mustAppend(t, l, spec{size: 200, producer: p}.build(t))
	f := func(set []byte, epoch int32, want error) {
		t.Helper()
		if _, err := l.AppendAsLeader(set, epoch, AppendOptions{}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	f(spec{size: 600}.build(t), 1, ErrMessageTooLarge)
	f(spec{size: 420}.build(t), 1, ErrRecordListTooLarge)
	f(spec{size: 200, producer: &record.Producer{ID: 7, BaseSequence: 5}}.build(t), 1, ErrOutOfOrderSequence) // would roll
	broken := spec{}.build(t)
	broken[len(broken)-1]++
	f(broken, 1, record.ErrCorrupt)
	f(marker(7, 0, false, 0), 1, record.ErrInvalidRecord)
	if l.LatestEpoch() != 0 || l.NumSegments() != 1 || l.Failed() != nil {
		t.Errorf("epoch %d, %d segments, %v", l.LatestEpoch(), l.NumSegments(), l.Failed())
	}
	wantOffsets(t, l, 0, 1, 1, 1)
}

func TestDuplicateIsAnsweredWithItsOffsets(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	set := func(sequence int32) []byte {
		return spec{records: 2, producer: &record.Producer{ID: 7, BaseSequence: sequence}}.build(t)
	}
	mustAppend(t, l, set(0))
	mustAppend(t, l, spec{}.build(t))
	mustAppend(t, l, set(2))
	info := mustAppend(t, l, set(0))
	if !info.Duplicate || info.FirstOffset != 0 || info.LastOffset != 1 || info.Count != 2 {
		t.Errorf("got %+v", info)
	}
	wantOffsets(t, l, 0, 5, 5, 5)
}

func TestTransactionsInTheLog(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	txn := func(id int64, sequence int32, tag string) {
		t.Helper()
		mustAppend(t, l, spec{producer: &record.Producer{ID: id, BaseSequence: sequence}, txn: true, tag: tag}.build(t))
	}
	txn(1, 0, "abort") // 0
	txn(2, 0, "keep")  // 1
	mustAppend(t, l, spec{tag: "plain"}.build(t))
	wantOffsets(t, l, 0, 0, 3, 3)
	mustMark(t, l, marker(1, 0, true, 0)) // 3
	wantOffsets(t, l, 0, 1, 4, 4)
	must(t, l.Roll())
	mustMark(t, l, marker(2, 0, false, 0)) // 4
	wantOffsets(t, l, 0, 5, 5, 5)
	r, err := l.Read(0, 1<<20, ReadCommitted, segment.WholeFirst)
	must(t, err)
	r.Slice.Release()
	want := []segment.AbortedTxn{{ProducerID: 1, FirstOffset: 0, LastOffset: 3, LastStableOffset: 1}}
	if diff := cmp.Diff(want, r.Aborted); diff != "" {
		t.Errorf("aborted (-want +got):\n%s", diff)
	}
	if r, err = l.Read(0, 1<<20, ReadUncommitted, segment.WholeFirst); err != nil || r.Aborted != nil {
		t.Errorf("read_uncommitted gets %v, %v", r.Aborted, err)
	}
	r.Slice.Release()

	// A transaction is stable when its marker is below the high watermark, not before.
	txn(3, 0, "x")                        // 5
	hw := l.Offsets().HighWatermark       // 6
	mustMark(t, l, marker(3, 0, true, 0)) // 6
	l.SetHighWatermark(hw)
	wantOffsets(t, l, 0, 6, 6, 7)
	l.SetHighWatermark(7)
	wantOffsets(t, l, 0, 7, 7, 7)
}

func TestRollNamesAndSnapshots(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	set := spec{size: 100}.build(t)
	o.Config.SegmentBytes = 2 * len(set)
	l := openLog(t, o)
	for range 5 {
		mustAppend(t, l, slices.Clone(set))
	}
	if got := bases(l); !slices.Equal(got, []int64{0, 2, 4}) {
		t.Errorf("segments %v", got)
	}
	for _, s := range l.Segments() {
		if s.Size > int64(o.Config.SegmentBytes) {
			t.Errorf("segment %d has %d bytes, more than segment.bytes", s.BaseOffset, s.Size)
		}
	}
	for _, name := range []string{snapshotName(2), snapshotName(4), "partition.metadata", "leader-epoch-checkpoint"} {
		if _, err := mem.Stat("/data/t-0/" + name); err != nil {
			t.Error(err)
		}
	}
	l.background.Wait()
	if got := l.RecoveryPoint(); got != 4 {
		t.Errorf("recovery point %d after the rolls, want 4", got)
	}
}

func TestRollByTimeOfRecords(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Config.SegmentMs = 1000
	o.Config.TimestampAfterMaxMs = math.MaxInt64
	l := openLog(t, o)
	at := testTime.UnixMilli()
	for _, timestamp := range []int64{at, at + 1000, at - 5000, at + 1001, at + 1500} {
		mustAppend(t, l, spec{timestamp: timestamp}.build(t))
	}
	if got := bases(l); !slices.Equal(got, []int64{0, 3}) {
		t.Errorf("segments %v, want [0 3]", got)
	}
}

func TestFollowerAppend(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	batch := func(base int64, epoch int32) record.Batch {
		b := record.Batch(spec{records: 2}.build(t))
		b.SetBaseOffset(base)
		b.SetLeaderEpoch(epoch)
		return b
	}
	info, err := l.AppendAsFollower(slices.Concat(batch(5, 1), batch(9, 2), batch(11, 4)), 3)
	must(t, err)
	if info.FirstOffset != 5 || info.LastOffset != 10 || info.Count != 4 {
		t.Errorf("got %+v; the batch of epoch 4 is newer than the fetch", info)
	}
	wantOffsets(t, l, 0, 0, 0, 11)
	torn := batch(20, 3)
	info, err = l.AppendAsFollower(slices.Concat(batch(11, 3), torn[:len(torn)-1]), 3)
	if err != nil || info.LastOffset != 12 {
		t.Errorf("got %+v, %v", info, err)
	}
	_, err = l.AppendAsFollower(batch(12, 3), 3)
	if e, ok := errors.AsType[*UnexpectedOffsetError](err); !ok || e.FirstOffset != 12 || e.End != 13 || !errors.Is(err, ErrUnexpectedOffset) {
		t.Errorf("got %v", err)
	}
	if _, err = l.AppendAsFollower(slices.Concat(batch(20, 3), batch(18, 3)), 3); !errors.Is(err, ErrOffsetsOutOfOrder) {
		t.Errorf("got %v", err)
	}
	if info, err = l.AppendAsFollower(nil, 3); err != nil || info.Count != 0 {
		t.Errorf("got %+v, %v", info, err)
	}
	wantEpochs(t, l.epochs, 1, 5, 2, 9, 3, 11)

	// KAFKA-4451: an offset that does not fit begins a segment with its own name.
	_, err = l.AppendAsFollower(batch(1<<33, 3), 3)
	must(t, err)
	if got := bases(l); !slices.Equal(got, []int64{0, 1 << 33}) {
		t.Errorf("segments %v", got)
	}
}

func TestTruncate(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	for i := range int32(6) {
		mustAppend(t, l, spec{records: 2, producer: &record.Producer{ID: 7, BaseSequence: 2 * i}}.build(t))
		if i == 2 || i == 4 {
			must(t, l.Roll())
		}
	}
	must(t, l.Flush())
	must(t, l.TruncateTo(99))
	wantOffsets(t, l, 0, 12, 12, 12)
	must(t, l.TruncateTo(9)) // inside [8,9]
	wantOffsets(t, l, 0, 9, 9, 9)
	if got := bases(l); !slices.Equal(got, []int64{0, 6}) {
		t.Errorf("segments %v", got)
	}
	if got := l.RecoveryPoint(); got != 8 {
		t.Errorf("recovery point %d, want 8", got)
	}
	if p := l.Producers(); len(p) != 1 || p[0].LastSequence != 7 {
		t.Errorf("producers %+v, want last sequence 7", p)
	}
	mustCheck(t, l)
	l.EnterEpoch(1)
	info, err := l.AppendAsLeader(spec{producer: &record.Producer{ID: 7, BaseSequence: 8}}.build(t), 1, AppendOptions{})
	if err != nil || info.FirstOffset != 9 {
		t.Errorf("append after the truncation: %+v, %v", info, err)
	}

	// KAFKA-6492: the active segment becomes empty, and takes the next append.
	must(t, l.TruncateTo(6))
	mustAppend(t, l, spec{}.build(t))
	if got := bases(l); !slices.Equal(got, []int64{0, 6}) {
		t.Errorf("segments %v", got)
	}
	must(t, l.TruncateFullyAndStartAt(100))
	wantOffsets(t, l, 100, 100, 100, 100)
	mustAppend(t, l, spec{}.build(t))
	must(t, l.TruncateTo(50)) // below all there is
	wantOffsets(t, l, 50, 50, 50, 50)
}

// Epochs that wrote nothing go, though no byte is cut.
func TestKAFKA10706(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	mustAppend(t, l, spec{records: 5}.build(t))
	l.EnterEpoch(3)
	must(t, l.TruncateTo(5))
	wantEpochs(t, l.epochs, 0, 0)
	if e, o := l.EpochEndOffset(0); e != 0 || o != 5 {
		t.Errorf("epoch 0 ends at %d, %d", e, o)
	}
}

func TestRetention(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.RetentionMs = 1000
	var removals []func()
	o.DeleteLater = func(delay time.Duration, remove func()) {
		if delay != time.Minute {
			t.Errorf("delay %v, want file.delete.delay.ms", delay)
		}
		removals = append(removals, remove)
	}
	l := openLog(t, o)
	for i := range 4 {
		mustAppend(t, l, spec{timestamp: testTime.UnixMilli() + int64(i)*1000}.build(t))
		if i < 3 {
			must(t, l.Roll())
		}
	}
	r, err := l.Read(0, 1<<20, ReadUncommitted, segment.WholeFirst)
	must(t, err)
	n, err := l.DeleteOldSegments(testTime.Add(2001 * time.Millisecond))
	if err != nil || n != 2 {
		t.Errorf("deleted %d, %v; want 2", n, err)
	}
	wantOffsets(t, l, 2, 4, 4, 4)
	if _, err := l.Read(1, 100, ReadUncommitted, segment.WholeFirst); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Errorf("got %v", err)
	}
	if _, err := mem.Stat("/data/t-0/" + segment.Name(0, segment.LogFile, segment.DeletedSuffix)); err != nil {
		t.Error(err)
	}
	if b := contents(t, r); len(b) == 0 { // a reader from before goes on
		t.Error("nothing read")
	}
	for _, remove := range removals {
		remove()
	}
	if _, err := mem.Stat("/data/t-0/" + segment.Name(0, segment.LogFile, segment.DeletedSuffix)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}

	// All expired: an empty active segment stays, and stays alone.
	n, err = l.DeleteOldSegments(testTime.Add(time.Hour))
	if err != nil || n != 2 {
		t.Errorf("deleted %d, %v; want 2", n, err)
	}
	wantOffsets(t, l, 4, 4, 4, 4)
	if n, _ = l.DeleteOldSegments(testTime.Add(time.Hour)); n != 0 || !slices.Equal(bases(l), []int64{4}) {
		t.Errorf("deleted %d, segments %v", n, bases(l))
	}
	mustAppend(t, l, spec{}.build(t))
}

func TestIncrementLogStart(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	for range 3 {
		mustAppend(t, l, spec{records: 4}.build(t))
		must(t, l.Roll())
	}
	l.SetHighWatermark(9)
	if err := l.IncrementLogStart(10); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Errorf("above the high watermark: %v", err)
	}
	must(t, l.IncrementLogStart(6))
	must(t, l.IncrementLogStart(2)) // no way back
	wantOffsets(t, l, 6, 9, 9, 12)
	if n, err := l.DeleteOldSegments(testTime); err != nil || n != 1 {
		t.Errorf("deleted %d, %v; want 1", n, err)
	}
	if got, _ := readAll(t, l, 6, ReadUncommitted); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	wantEpochs(t, l.epochs, 0, 6)
}

func TestLookup(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Config.TimestampAfterMaxMs = math.MaxInt64
	l := openLog(t, o)
	at := testTime.UnixMilli()
	for _, timestamp := range []int64{1000, 5000, 2000, 3000} { // redpanda#6604
		mustAppend(t, l, spec{timestamp: at + timestamp}.build(t))
	}
	must(t, l.Roll())
	mustAppend(t, l, spec{timestamp: at + 5000}.build(t))
	mustAppend(t, l, spec{timestamp: at + 9000, producer: &record.Producer{ID: 1}, txn: true}.build(t))
	f := func(timestamp int64, isolation Isolation, want int64) {
		t.Helper()
		got, ok, err := l.Lookup(LookupRequest{timestamp, isolation})
		must(t, err)
		if !ok {
			got.Offset = -1
		}
		if got.Offset != want {
			t.Errorf("lookup(%d, %d) = %+v, want offset %d", timestamp, isolation, got, want)
		}
	}
	f(at, ReadUncommitted, 0)
	f(at+1001, ReadUncommitted, 1)
	f(at+2500, ReadUncommitted, 1)
	f(at+5000, ReadUncommitted, 1)
	f(at+5001, ReadUncommitted, 5)
	f(at+9001, ReadUncommitted, -1) // redpanda#4308
	f(at+5001, ReadCommitted, -1)   // KAFKA-5522
	f(Latest, ReadUncommitted, 6)
	f(Latest, ReadCommitted, 5)
	f(Latest, ReadLogEnd, 6)
	f(Earliest, ReadUncommitted, 0)
	f(EarliestLocal, ReadUncommitted, 0)
	f(LatestTiered, ReadUncommitted, -1)
	f(EarliestPendingUpload, ReadUncommitted, -1)
	f(MaxTimestamp, ReadUncommitted, 5)
	f(MaxTimestamp, ReadCommitted, -1) // it is in an open transaction
	must(t, l.IncrementLogStart(3))
	f(Earliest, ReadUncommitted, 3)
	f(at, ReadUncommitted, 3)
	f(at+4000, ReadUncommitted, 4) // the first segment has such a record, below the log start
}

// A time index may know more than the messages: those of format v0 have no timestamp, whatever they came with, and the file
// may be another segment's. The largest timestamp is that of a record that is there.
func TestLookupMaxPastMessagesWithoutTimestamps(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Config.TimestampAfterMaxMs = math.MaxInt64
	o.Config.MessageFormat = 0
	l := openLog(t, o)
	at := testTime.UnixMilli()
	mustAppend(t, l, spec{timestamp: at + 9000}.build(t))
	must(t, l.Roll())
	mustAppend(t, l, spec{timestamp: at + 8000}.build(t))
	must(t, l.Roll())
	want := func(name string, offset, timestamp int64) {
		t.Helper()
		got, ok, err := l.Lookup(LookupRequest{MaxTimestamp, ReadLogEnd})
		must(t, err)
		if ok != (offset >= 0) || ok && (got.Offset != offset || got.Timestamp != timestamp) {
			t.Errorf("%s: %+v, %v, want offset %d at %d", name, got, ok, offset, timestamp)
		}
	}
	want("no message has a timestamp", -1, 0)
	o.Config.MessageFormat = 2
	l.SetConfig(o.Config)
	for _, timestamp := range []int64{1000, 3000, 2000} {
		mustAppend(t, l, spec{timestamp: at + timestamp}.build(t))
		must(t, l.Roll())
	}
	want("converted", 3, at+3000)
	must(t, l.Close())

	foreign := binary.BigEndian.AppendUint64(nil, uint64(at+99999))
	foreign = binary.BigEndian.AppendUint32(foreign, 0)
	must(t, vfs.WriteFileAtomic(mem, filepath.Join(o.Dir, segment.Name(0, segment.TimeIndexFile, "")), foreign))
	o.Clean, o.RecoveryPoint = true, l.RecoveryPoint()
	l = openLog(t, o)
	want("another segment's time index", 3, at+3000)
}

// An empty segment, as compaction leaves it, has the time of its file and no record.
func TestLookupBehindAnEmptySegment(t *testing.T) {
	mem := vfs.NewMem()
	o := threeSegments(t, mem)
	o.Clean, o.Config.Compact = true, true
	for _, name := range []string{logName(0), indexName(0), timeName(0)} {
		must(t, writeFile(mem, dir+name, nil))
	}
	l := openLog(t, o)
	got, ok, err := l.Lookup(LookupRequest{0, ReadLogEnd})
	if err != nil || !ok || got.Offset != 2 {
		t.Errorf("got %+v, %v, %v, want offset 2", got, ok, err)
	}
}

func TestTopicID(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	must(t, openLog(t, o).Close())
	o.TopicID = uuid.Zero
	if id := openLog(t, o).TopicID(); id != testTopicID {
		t.Errorf("got %v from the file, want %v", id, testTopicID)
	}
	o.TopicID = uuid.UUID{9}
	if _, err := Open(o); !errors.Is(err, ErrInconsistentTopicID) {
		t.Errorf("got %v", err)
	}

	// KAFKA-16814: a log of an old broker has no file; it is there before the next record.
	must(t, mem.Remove("/data/t-0/partition.metadata"))
	o.TopicID = testTopicID
	o.Background = func(func()) {}
	l := openLog(t, o)
	mustAppend(t, l, spec{}.build(t))
	if _, err := mem.Stat("/data/t-0/partition.metadata"); err != nil {
		t.Error(err)
	}
}

func TestRenameAndDelete(t *testing.T) {
	mem := vfs.NewMem()
	l := openLog(t, testOptions(mem))
	mustAppend(t, l, spec{tag: "x"}.build(t))
	must(t, l.RenameDir("/data/t-0.0123-delete"))
	if got, _ := readAll(t, l, 0, ReadUncommitted); !slices.Equal(got, []string{"0:x0"}) {
		t.Errorf("got %v", got)
	}
	mustAppend(t, l, spec{}.build(t))
	must(t, l.Roll())
	must(t, l.Delete())
	if entries, err := mem.ReadDir("/data"); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{}); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrStorage) {
		t.Errorf("got %v", err)
	}
}

func TestSetConfig(t *testing.T) {
	l := openLog(t, testOptions(vfs.NewMem()))
	mustAppend(t, l, spec{}.build(t))
	c := l.Config()
	c.TimestampType = record.LogAppendTime
	c.Compression = record.Gzip
	l.SetConfig(c)
	info := mustAppend(t, l, spec{timestamp: 5}.build(t))
	if info.LogAppendTime != testTime.UnixMilli() {
		t.Errorf("got %+v", info)
	}
	r, err := l.Read(1, 1<<20, ReadUncommitted, segment.WholeFirst)
	must(t, err)
	if b := record.Batch(contents(t, r)); b.Codec() != record.Gzip || b.TimestampType() != record.LogAppendTime {
		t.Errorf("stored with codec %v, %v", b.Codec(), b.TimestampType())
	}
}

// There may be ten thousand idle logs: a few bytes more would put each into the next size class of
// the allocator, 128 bytes above. It adds 8 bytes of its own to what has pointers.
func TestLogKeepsItsSizeClass(t *testing.T) {
	if got := unsafe.Sizeof(Log{}); got > 768-8 {
		t.Errorf("%d bytes, want 760 at most", got)
	}
}

// With nobody else to have it, what is appended is below the high watermark at once, in new segments and old formats too.
func TestAppendCommits(t *testing.T) {
	for _, magic := range []int8{1, 2} {
		o := testOptions(vfs.NewMem())
		o.Config.MessageFormat, o.Config.SegmentBytes = magic, 300
		l := openLog(t, o)
		for i := range 8 {
			commits := i != 3 && i != 4
			_, err := l.AppendAsLeader(spec{records: 2}.build(t), 0, AppendOptions{Commits: commits})
			must(t, err)
			want := int64(2*i + 2)
			if !commits {
				want = 6
			}
			if got := l.Offsets(); got.HighWatermark != want || got.LastStable != want {
				t.Errorf("format %d, set %d: high watermark %d, last stable %d, want %d", magic, i, got.HighWatermark, got.LastStable, want)
			}
		}
	}
}
