package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A copy of a segment under another name costs nothing: not the records beside it, nor the log end.
// Only a file that stands in for another takes that one's records with it.
func TestMisnamedSegmentIsSetAside(t *testing.T) {
	const dir = "/data/t-0/"
	nobody := false // knows where the log ends
	f := func(clean bool, from, to int64, lost int) {
		t.Helper()
		mem := vfs.NewMem()
		o := testOptions(mem)
		o.Clean = true
		o.Config.SegmentBytes = 1000
		l := openLog(t, o)
		for range 20 {
			mustAppend(t, l, spec{records: 2, size: 50}.build(t))
		}
		end := l.Offsets().End
		if to < 0 {
			to = l.Segments()[len(l.Segments())-1].BaseOffset
		}
		must(t, l.Close())
		b, err := vfs.ReadFile(mem, dir+segment.Name(from, segment.LogFile, ""), 1<<20)
		must(t, err)
		must(t, vfs.WriteFileAtomic(mem, dir+segment.Name(to, segment.LogFile, ""), b))
		o.Clean, o.RecoveryPoint, o.HighWatermark = clean, end, end
		if nobody {
			o.RecoveryPoint, o.HighWatermark = 0, 0
		}
		what := fmt.Sprintf("clean %t, %d as %d", clean, from, to)
		l = openLog(t, o)
		if got := l.Offsets().End; got != end {
			t.Errorf("%s: the log ends at %d, want %d", what, got, end)
		}
		if _, err := mem.Stat(dir + segment.Name(to, segment.LogFile, asideSuffix)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := unreadable(t, l); got != lost {
			t.Errorf("%s: %d offsets cannot be read, want %d", what, got, lost)
		}
		info, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})
		if err != nil || info.FirstOffset != end {
			t.Errorf("%s: append at %d, %v, want %d", what, info.FirstOffset, err, end)
		}
		must(t, l.Close())
	}
	for _, clean := range []bool{true, false} {
		f(clean, 0, 1, 0)     // begins in front of its name
		f(clean, 0, 7, 0)     // inside another
		f(clean, 0, 13, 0)    // in the last one
		f(clean, 0, 1000, 0)  // behind the end
		f(clean, 0, 1<<40, 0) // far behind it
	}
	f(true, 0, -1, 10) // in place of the last one
	f(false, 0, -1, 10)
	nobody = true // but the snapshot and the indexes
	f(true, 0, -1, 10)
}

// unreadable counts the offsets that a read refuses.
func unreadable(t *testing.T, l *Log) (n int) {
	t.Helper()
	for at := l.Offsets().LogStart; at < l.Offsets().End; at++ {
		read, err := l.Read(at, 1, ReadLogEnd, segment.WholeFirst)
		if err == nil {
			read.Slice.Release()
		} else if n++; !errors.Is(err, segment.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("offset %d: %v", at, err)
		}
	}
	return n
}

// A log that was cut behind a batch, of which no checkpoint knows anything: the index leads beyond its
// end, so that the producer snapshot is believed.
func TestIndexBeyondTheEndIsEvidence(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Clean = true
	l := openLog(t, o)
	var second int64
	for i := range 20 {
		mustAppend(t, l, spec{records: 2, size: 100, producer: &record.Producer{ID: 7, BaseSequence: int32(2 * i)}}.build(t))
		if i == 1 {
			second = l.Size()
		}
	}
	end := l.Offsets().End
	must(t, l.Close())
	f, err := mem.OpenFile("/data/t-0/"+segment.Name(0, segment.LogFile, ""), os.O_RDWR, 0)
	must(t, err)
	must(t, errors.Join(f.Truncate(second), f.Close()))
	l = openLog(t, o)
	if got := l.Offsets().End; got != end {
		t.Errorf("the log ends at %d, want %d", got, end)
	}
	must(t, l.Close())
}

// A last segment of nothing but bad bytes, which nothing proves to have been records: what is appended is
// found again after the next starts.
func TestNothingIsAppendedBehindBadBytes(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Clean = true
	l := openLog(t, o)
	mustAppend(t, l, spec{records: 3}.build(t))
	must(t, l.Close())
	must(t, removeFiles(mem, o.Dir, []string{snapshotName(3), segment.Name(0, segment.IndexFile, ""), segment.Name(0, segment.TimeIndexFile, "")}))
	must(t, vfs.WriteFileAtomic(mem, "/data/t-0/"+segment.Name(0, segment.LogFile, ""), make([]byte, 300)))
	for i := range 3 {
		l = openLog(t, o)
		info, err := l.AppendAsLeader(spec{}.build(t), 0, AppendOptions{})
		if err != nil || info.FirstOffset != int64(i) {
			t.Fatalf("start %d: append at %d, %v", i, info.FirstOffset, err)
		}
		l.SetHighWatermark(l.Offsets().End)
		if n := unreadable(t, l); n > 0 {
			t.Errorf("start %d: %d offsets cannot be read", i, n)
		}
		must(t, l.Close())
	}
}

// One high bit of the base offset of the last batch, which no checksum covers, moves no record to the end of
// all offsets.
func TestHighBitOfAnOffset(t *testing.T) {
	for bit := range 32 {
		mem := vfs.NewMem()
		o := testOptions(mem)
		o.Clean = true
		l := openLog(t, o)
		for range 3 {
			mustAppend(t, l, spec{records: 2}.build(t))
		}
		size := l.Size()
		must(t, l.Close())
		name := "/data/t-0/" + segment.Name(0, segment.LogFile, "")
		b, err := vfs.ReadFile(mem, name, 1<<20)
		must(t, err)
		b[size/3*2+int64(3-bit/8)] ^= 1 << (bit % 8)
		must(t, vfs.WriteFileAtomic(mem, name, b))
		o.Clean, o.HighWatermark, o.RecoveryPoint = false, 6, 4
		l = openLog(t, o)
		if got := l.Offsets().End; got != 6 {
			t.Errorf("bit %d: the log ends at %d, want 6", 32+bit, got)
		}
		must(t, l.Close())
	}
}

// A file whose two indexes are there was part of the log, also if nobody else knows it.
func TestMissingFileWithIndexes(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.Clean = true
	o.Config.SegmentBytes = 400
	l := openLog(t, o)
	for i := range 6 {
		mustAppend(t, l, spec{records: 2, size: 50, producer: &record.Producer{ID: 7, BaseSequence: int32(2 * i)}}.build(t))
	}
	last := l.Segments()[len(l.Segments())-1].BaseOffset
	must(t, l.Close())
	must(t, removeFiles(mem, o.Dir, []string{segment.Name(last, segment.LogFile, ""), snapshotName(last)}))
	l = openLog(t, o)
	if got := l.Offsets().End; got != 12 {
		t.Errorf("the log ends at %d, want 12", got)
	}
	must(t, l.Close())
}

// What stands in the last segment twice can be read where it stands first: the index that is made anew leads
// to no batch of the second time.
func TestContentTwice(t *testing.T) {
	mem := vfs.NewMem()
	golden.Unpack(t, mem, "", "kafka-0.8.2.2")
	o := Options{FS: mem, Dir: "data/plain-1", Partition: topic.Partition{Topic: "plain", Partition: 1}, Config: DefaultConfig(), Clean: true}
	name := filepath.Join(o.Dir, segment.Name(120, segment.LogFile, ""))
	b, err := vfs.ReadFile(mem, name, 1<<20)
	must(t, err)
	must(t, vfs.WriteFileAtomic(mem, name, append(b, b...)))
	for end := int64(150); end < 153; end++ {
		o.RecoveryPoint, o.HighWatermark = end, end
		l := openLog(t, o)
		read, err := l.Read(120, 1<<20, ReadLogEnd, segment.WholeFirst) // all of it is looked at
		must(t, err)
		read.Slice.Release()
		if n := unreadable(t, l); n > 0 || l.Offsets().End != end {
			t.Errorf("%d offsets cannot be read, the log ends at %d, want %d", n, l.Offsets().End, end)
		}
		mustAppend(t, l, spec{}.build(t))
		must(t, l.Close())
	}
}
