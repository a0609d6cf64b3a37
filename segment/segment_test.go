package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

const testDir = "/log/t-0"

// t0 is the time of the first record in tests, in ms.
const t0 = 1_700_000_000_000

func newFS(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	if err := vfs.MkdirAll(m, testDir, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// smallConfig makes an entry for nearly every batch of a test.
func smallConfig() Config {
	return Config{IndexIntervalBytes: 100, Files: NewFileCache(2), Indexes: NewIndexCache(1 << 20)}
}

// create makes a segment that is checked when the test ends.
func create(t testing.TB, fsys vfs.FS, base int64, cfg Config) *Segment {
	t.Helper()
	s, err := Create(fsys, testDir, base, cfg, time.UnixMilli(t0))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

func open(t testing.TB, fsys vfs.FS, base int64, cfg Config) *Segment {
	t.Helper()
	s, err := Open(fsys, testDir, base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

func closeAtEnd(t testing.TB, s *Segment) {
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := s.Check(); err != nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("check: %v", err)
		}
		must(t, s.Close())
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batch makes a batch of count records with timestamps from ts on and values of a size.
func batch(t testing.TB, base int64, count int, ts int64, size int) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: base, LeaderEpoch: 3})
	for i := range count {
		must(t, b.Append(record.Record{Offset: base + int64(i), Timestamp: ts + int64(i), Value: bytes.Repeat([]byte{'v'}, size)}))
	}
	return b.Build()
}

// fill appends batches of two records, one ms apart, until a segment has so many records.
func fill(t testing.TB, s *Segment, records int64) {
	t.Helper()
	for o, err := s.NextOffset(); o < s.BaseOffset()+records; o += 2 {
		must(t, err)
		must(t, s.Append(batch(t, o, 2, t0+o, 50)))
	}
}

func fileSize(t testing.TB, s *Segment, kind Kind) int64 {
	t.Helper()
	info, err := s.fs.Stat(s.Path(kind))
	must(t, err)
	return info.Size()
}

func TestNames(t *testing.T) {
	f := func(name string, base int64, kind Kind, suffix string, ok bool) {
		t.Helper()
		b, k, s, found := ParseName(name)
		if found != ok || b != base || k != kind || s != suffix {
			t.Errorf("ParseName(%q): got %d %q %q %v", name, b, k, s, found)
		}
		if ok && Name(b, k, s) != name && len(name) > 24 {
			t.Errorf("Name(%d, %q, %q): got %q, want %q", b, k, s, Name(b, k, s), name)
		}
	}
	f("00000000000000000005.log", 5, LogFile, "", true)
	f("00000000000000000005.log.cleaned", 5, LogFile, CleanedSuffix, true)
	f("09223372036854775807.timeindex.swap", math.MaxInt64, TimeIndexFile, SwapSuffix, true)
	f("00000000000000000042.index.deleted", 42, IndexFile, DeletedSuffix, true)
	f("00000000000000000042.txnindex", 42, TxnIndexFile, "", true)
	f("7.log", 7, LogFile, "", true)
	f("00000000000000000042.snapshot", 0, "", "", false)
	f("00000000000000000042.logs", 0, "", "", false)
	f("-0000000000000000042.log", 0, "", "", false)
	f("+0000000000000000042.log", 0, "", "", false)
	f("99999999999999999999.log", 0, "", "", false)
	f("leader-epoch-checkpoint", 0, "", "", false)
	f(".log", 0, "", "", false)
	f("", 0, "", "", false)
}

// TestIndexRule is the measured example of Kafka: interval 1000, batches of 389 bytes, the
// first entry at the fourth append.
func TestIndexRule(t *testing.T) {
	s := create(t, newFS(t), 100, Config{IndexIntervalBytes: 1000})
	for i := range int64(8) {
		b := batch(t, 100+2*i, 2, t0+i, 155)
		if len(b) != 389 {
			t.Fatalf("batch has %d bytes, want 389", len(b))
		}
		must(t, s.Append(b))
	}
	got := s.idx.Load().offsets.Load().view()
	if want := (offsetEntry{7, 1167}); len(got) != 2 || got[0] != want {
		t.Errorf("got entries %v, want %v first", got, want)
	}
	times := s.idx.Load().times.Load().view()
	if want := (timeEntry{t0 + 4, 7}); len(times) != 2 || times[0] != want {
		t.Errorf("got times %v, want %v first", times, want)
	}
}

func TestAppendSeveralBatches(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	var set []byte
	for i := range int64(6) {
		set = append(set, batch(t, i*3, 3, t0+i, 40)...)
	}
	must(t, s.Append(set))
	if s.Size() != int64(len(set)) {
		t.Errorf("Size: got %d, want %d", s.Size(), len(set))
	}
	for _, e := range s.idx.Load().offsets.Load().view() {
		if e.offset%3 != 2 || int(e.position)%(len(set)/6) != 0 || e.position == 0 {
			t.Errorf("entry %v does not have the last offset and the start of a batch", e)
		}
	}
	if next, err := s.NextOffset(); next != 18 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 18", next, err)
	}
}

func TestAppendRefusals(t *testing.T) {
	s := create(t, newFS(t), 1000, smallConfig())
	good := batch(t, 1000, 2, t0, 10)
	must(t, s.Append(good))
	f := func(what string, set []byte, want error) {
		t.Helper()
		err := s.Append(set)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
		if s.Size() != int64(len(good)) {
			t.Fatalf("%s: size is %d, want %d", what, s.Size(), len(good))
		}
	}
	f("below the base", batch(t, 998, 1, t0, 1), ErrOffsetOverflow)
	f("too far above", batch(t, 1001+math.MaxInt32, 1, t0, 1), ErrOffsetOverflow)
	f("half a batch", batch(t, 1002, 2, t0, 10)[:70], errTorn)
	f("a batch and half of one", append(batch(t, 1002, 2, t0, 10), batch(t, 1004, 2, t0, 10)[:20]...), errTorn)
	f("twice the same offsets", append(batch(t, 1002, 2, t0, 10), batch(t, 1002, 2, t0, 10)...), nil)
	f("garbage", bytes.Repeat([]byte{0xff}, 100), nil)
	must(t, s.Append(batch(t, 1000+math.MaxInt32, 1, t0, 1)))
}

func TestAppendFailedWrite(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 10)
	size := s.Size()
	full := errors.New("disk full")
	b := batch(t, 10, 2, t0+10, 50)
	for _, n := range []int{0, 1, 60, len(b) - 1} {
		m.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpWrite {
				return &vfs.ShortWrite{N: n, Err: full}
			}
			return nil
		})
		if err := s.Append(b); !errors.Is(err, full) || s.Size() != size {
			t.Fatalf("write of %d bytes: got %v and size %d, want size %d", n, err, s.Size(), size)
		}
		m.SetHook(nil)
		if next, err := s.NextOffset(); next != 10 || err != nil {
			t.Fatalf("NextOffset: got %d, %v, want 10", next, err)
		}
	}
	must(t, s.Append(b))
	must(t, s.Check())
}

func TestRead(t *testing.T) {
	s := create(t, newFS(t), 100, smallConfig())
	fill(t, s, 60)
	size := int(s.Size() / 30)
	f := func(start int64, maxBytes int, maxPosition int64, minOne bool, position, want int, incomplete bool) {
		t.Helper()
		sl, err := s.Read(start, maxBytes, maxPosition, minOne)
		if err != nil {
			t.Fatal(err)
		}
		defer sl.Release()
		if sl.Position() != int64(position) || sl.Size() != want || sl.FirstBatchIncomplete() != incomplete {
			t.Errorf("Read(%d, %d, %d, %v): got [%d,+%d) incomplete %v, want [%d,+%d) %v", start, maxBytes, maxPosition, minOne,
				sl.Position(), sl.Size(), sl.FirstBatchIncomplete(), position, want, incomplete)
		}
		if want == 0 {
			return
		}
		b := make([]byte, sl.Size()+5)
		if n, err := sl.ReadAt(b, 0); n != want || err != io.EOF {
			t.Errorf("ReadAt: got %d, %v, want %d and EOF", n, err, want)
		}
		if got := record.Batch(b); want >= size && (got.LastOffset() < start || got.BaseOffset() > max(start, 100)) {
			t.Errorf("Read(%d): first batch has %d-%d", start, got.BaseOffset(), got.LastOffset())
		}
	}
	end := s.Size()
	f(100, 1<<20, end, false, 0, 30*size, false)
	f(105, 1<<20, end, false, 2*size, 28*size, false)
	f(105, 10, end, true, 2*size, size, false)
	f(105, 10, end, false, 2*size, 10, true)
	f(105, 0, end, false, 2*size, 0, true)
	f(159, 1<<20, end, true, 29*size, size, false)
	f(105, 1<<20, int64(3*size), true, 2*size, size, false)
	f(120, 1<<20, int64(3*size), true, 10*size, 0, true)
	f(0, 1, end, true, 0, size, false)
	if _, err := s.Read(160, 10, end, true); err != ErrNotFound {
		t.Errorf("Read at the end: got %v, want ErrNotFound", err)
	}
	if _, err := s.Read(100, -1, end, true); err == nil {
		t.Error("Read of -1 bytes: no error")
	}
}

func TestSliceBounds(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	fill(t, s, 4)
	sl, err := s.Read(0, 20, s.Size(), false)
	must(t, err)
	defer sl.Release()
	b := make([]byte, 10)
	if n, err := sl.ReadAt(b, 5); n != 10 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := sl.ReadAt(b, 15); n != 5 || err != io.EOF {
		t.Errorf("got %d, %v, want 5 and EOF", n, err)
	}
	if n, err := sl.ReadAt(b, 20); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v, want EOF", n, err)
	}
	if _, err := sl.ReadAt(b, -1); err == nil || err == io.EOF {
		t.Errorf("got %v, want an error", err)
	}
}

// TestSlicesOutliveTheirFile has a cache of one descriptor, and a slice out over everything that
// can happen to a file.
func TestSlicesOutliveTheirFile(t *testing.T) {
	for _, fsys := range []struct {
		name string
		fs   vfs.FS
		dir  string
	}{{"mem", newFS(t), testDir}, {"os", vfs.OS, t.TempDir()}} {
		t.Run(fsys.name, func(t *testing.T) {
			cfg := smallConfig()
			cfg.Files = NewFileCache(1)
			s, err := Create(fsys.fs, fsys.dir, 0, cfg, time.Now())
			must(t, err)
			fill(t, s, 10)
			sl, err := s.Read(4, 1<<20, s.Size(), true)
			must(t, err)
			want := make([]byte, sl.Size())
			_, err = sl.ReadAt(want, 0)
			must(t, err)
			same := func(after string) {
				t.Helper()
				got := make([]byte, sl.Size())
				if _, err := sl.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("after %s: other bytes, %v", after, err)
				}
			}
			other, err := Create(fsys.fs, fsys.dir, 10, cfg, time.Now())
			must(t, err)
			fill(t, other, 4)
			same("eviction")
			must(t, s.ChangeSuffix("", DeletedSuffix))
			same("rename")
			if _, err := fsys.fs.Stat(s.Path(LogFile)); err != nil || !strings.HasSuffix(s.Path(LogFile), ".log.deleted") {
				t.Errorf("renamed to %s, %v", s.Path(LogFile), err)
			}
			if next, err := s.NextOffset(); next != 10 || err != nil {
				t.Errorf("NextOffset after the rename: got %d, %v", next, err)
			}
			must(t, s.Remove())
			must(t, s.Remove())
			same("removal")
			if _, err := s.Read(0, 1, 1, true); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("Read after Remove: got %v, want ErrClosed", err)
			}
			sl.Release()
			must(t, other.Close())
			if n := cfg.Files.Len(); n != 0 {
				t.Errorf("%d descriptors left", n)
			}
			entries, err := fsys.fs.ReadDir(fsys.dir)
			must(t, err)
			if len(entries) != 3 {
				t.Errorf("files left: %v, want those of the other segment", entries)
			}
		})
	}
}

func TestRenameDir(t *testing.T) {
	m := newFS(t)
	a, b := create(t, m, 0, smallConfig()), create(t, m, 10, smallConfig())
	fill(t, a, 10)
	must(t, RenameDir(m, testDir, "/log/t-0-delete", []*Segment{a, b}))
	a.cfg.Files.CloseIdle()
	a.cfg.Files.CloseIdle()
	if next, err := a.NextOffset(); next != 10 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 10", next, err)
	}
	fill(t, b, 4)
	if RenameDir(m, "/log/none", testDir, []*Segment{a}) == nil {
		t.Error("renamed a directory that is not there")
	}
	must(t, a.Check())
}

func TestCreateRefusesToOverwrite(t *testing.T) {
	m := newFS(t)
	create(t, m, 0, smallConfig())
	if _, err := Create(m, testDir, 0, smallConfig(), time.Now()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	if _, err := Open(m, testDir, 1, smallConfig()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: got %v, want ErrNotExist", err)
	}
}

func TestOpenNothingEagerly(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	s := create(t, m, 0, cfg)
	fill(t, s, 40)
	must(t, s.Close())
	var ops []string
	m.SetHook(func(op vfs.Op) error {
		ops = append(ops, op.Kind.String())
		return nil
	})
	s, err := Open(m, testDir, 0, cfg)
	must(t, err)
	must(t, s.Close())
	if len(ops) != 1 || ops[0] != "stat" {
		t.Errorf("Open and Close did %v, want one stat", ops)
	}
}

func TestCloseAndOpen(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	entries := len(s.idx.Load().offsets.Load().view())
	must(t, s.Close())
	if got := fileSize(t, s, IndexFile); got != int64(entries*offsetEntrySize) {
		t.Errorf(".index has %d bytes, want %d entries", got, entries)
	}
	s = open(t, m, 0, smallConfig())
	if ts, offset, err := s.MaxTimestamp(); ts != t0+39 || offset != 39 || err != nil {
		t.Errorf("MaxTimestamp: got %d, %d, %v", ts-t0, offset, err)
	}
	fill(t, s, 80)
	must(t, s.Check())
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	if next, err := s.NextOffset(); next != 80 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 80", next, err)
	}
}

func TestReadOnly(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 10)
	must(t, s.Close())
	must(t, m.Remove(s.Path(IndexFile)))
	cfg := smallConfig()
	cfg.ReadOnly = true
	s = open(t, m, 0, cfg)
	if next, err := s.NextOffset(); next != 10 || err != nil {
		t.Errorf("NextOffset: got %d, %v", next, err)
	}
	_, truncate := s.TruncateTo(0)
	_, recovered := s.Recover(func(record.Batch) error { return nil })
	for _, err := range []error{s.Append(batch(t, 10, 1, t0, 1)), truncate, recovered, s.AppendAborted(AbortedTxn{})} {
		if err != ErrReadOnly {
			t.Errorf("got %v, want ErrReadOnly", err)
		}
	}
	must(t, s.Close())
	if _, err := m.Stat(s.Path(IndexFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a read-only segment wrote its index")
	}
}

func TestPreallocate(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Preallocate = 1 << 20
	s := create(t, m, 0, cfg)
	if got := fileSize(t, s, LogFile); got != 1<<20 || s.Size() != 0 {
		t.Errorf("file of %d bytes, size %d", got, s.Size())
	}
	fill(t, s, 20)
	must(t, s.Flush())
	crashed, err := Open(m.CrashClone(nil), testDir, 0, cfg)
	must(t, err)
	cut, err := crashed.Recover(func(record.Batch) error { return nil })
	if cut != 1<<20-s.Size() || err != nil || crashed.Size() != s.Size() {
		t.Errorf("Recover: cut %d, %v, size %d, want size %d", cut, err, crashed.Size(), s.Size())
	}
	must(t, s.Seal())
	if got := fileSize(t, s, LogFile); got != s.Size() {
		t.Errorf("sealed file of %d bytes, want %d", got, s.Size())
	}
}

// TestTinyIndexes has room for three offset entries, and for one time entry and the final one.
func TestTinyIndexes(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.MaxIndexSize = 2 * timeEntrySize
	s := create(t, m, 0, cfg)
	fill(t, s, 2)
	if s.IndexFull() {
		t.Error("full without an entry")
	}
	fill(t, s, 100)
	if !s.IndexFull() {
		t.Error("not full")
	}
	must(t, s.Seal())
	times := s.idx.Load().times.Load().view()
	if len(times) != 2 || times[1] != (timeEntry{t0 + 99, 99}) {
		t.Errorf("got times %v, want the reserved slot used for the last", times)
	}
	if fileSize(t, s, IndexFile) != 3*offsetEntrySize || fileSize(t, s, TimeIndexFile) != 2*timeEntrySize {
		t.Errorf("index files of %d and %d bytes", fileSize(t, s, IndexFile), fileSize(t, s, TimeIndexFile))
	}
	s.SetIndexLimits(100, 1<<20)
	if s.IndexFull() {
		t.Error("full after the limit was raised")
	}
}

func TestTimeIndexSkipsEqualAndSmaller(t *testing.T) {
	s := create(t, newFS(t), 0, Config{})
	for i, ts := range []int64{5, 5, 3, -1, 5, 9, 9, 7, 10} {
		must(t, s.Append(batch(t, int64(i), 1, ts, 10)))
	}
	must(t, s.Seal())
	want := []timeEntry{{5, 0}, {9, 5}, {10, 8}}
	got := s.idx.Load().times.Load().view()
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTimestamps(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 50, smallConfig())
	if ts, offset, err := s.MaxTimestamp(); ts != -1 || offset != 50 || err != nil {
		t.Errorf("empty MaxTimestamp: got %d, %d, %v", ts, offset, err)
	}
	if _, ok, err := s.MaxTimestampRecord(); ok || err != nil {
		t.Errorf("empty MaxTimestampRecord: got %v, %v", ok, err)
	}
	if ts, err := s.FirstTimestamp(); ts != math.MaxInt64 || err != nil {
		t.Errorf("empty FirstTimestamp: got %d, %v", ts, err)
	}
	modified := time.UnixMilli(t0 - 5000)
	must(t, s.SetModTime(modified))
	if ts, err := s.LargestTimestamp(); ts != t0-5000 || err != nil {
		t.Errorf("empty LargestTimestamp: got %d, %v, want the time of the file", ts, err)
	}
	for i, ts := range []int64{1000, 5000, 2000, 3000} { // redpanda#6604
		must(t, s.Append(batch(t, 50+int64(i), 1, ts, 60)))
	}
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: 54, LeaderEpoch: 7})
	for i, ts := range []int64{100, 8000, 8000, 6000} {
		must(t, b.Append(record.Record{Offset: 54 + int64(i), Timestamp: ts}))
	}
	must(t, s.Append(b.Build()))
	f := func(ts, start, wantTs, want int64) {
		t.Helper()
		got, ok, err := s.OffsetByTimestamp(ts, start)
		if err != nil || ok != (want >= 0) || ok && (got.Offset != want || got.Timestamp != wantTs) {
			t.Errorf("OffsetByTimestamp(%d, %d): got %+v, %v, %v, want %d at %d", ts, start, got, ok, err, wantTs, want)
		}
	}
	check := func() {
		t.Helper()
		f(0, 50, 1000, 50)
		f(1000, 50, 1000, 50)
		f(1001, 50, 5000, 51)
		f(2500, 50, 5000, 51)
		f(2500, 52, 3000, 53)
		f(2500, 54, 8000, 55)
		f(5001, 50, 8000, 55)
		f(5500, 56, 8000, 56)
		f(5500, 57, 6000, 57)
		f(8001, 50, 0, -1)
		f(0, 58, 0, -1)
		if r, ok, err := s.MaxTimestampRecord(); r != (TimestampOffset{8000, 55, 7}) || !ok || err != nil {
			t.Errorf("MaxTimestampRecord: got %+v, %v, %v", r, ok, err)
		}
		if ts, err := s.LargestTimestamp(); ts != 8000 || err != nil {
			t.Errorf("LargestTimestamp: got %d, %v", ts, err)
		}
		if ts, err := s.FirstTimestamp(); ts != 1000 || err != nil {
			t.Errorf("FirstTimestamp: got %d, %v", ts, err)
		}
	}
	check()
	must(t, s.Close())
	s = open(t, m, 50, smallConfig())
	check()
}

func TestUpperBound(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	check := func() {
		t.Helper()
		for i := range int64(20) {
			offset, ok := s.UpperBound(i*size, int(size))
			if ok && offset < 2*i+2 {
				t.Errorf("batch %d: bound %d is inside of it", i, offset)
			}
			if !ok && i < 17 {
				t.Errorf("batch %d: no bound", i)
			}
		}
		if _, ok := s.UpperBound(0, math.MaxInt32); ok {
			t.Error("a bound behind the end")
		}
	}
	check()
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	check()
}

func TestAborted(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 100, smallConfig())
	if list, done, err := s.Aborted(0, 1000); list != nil || done || err != nil {
		t.Errorf("none: got %v, %v, %v", list, done, err)
	}
	txns := []AbortedTxn{{1, 90, 105, 103}, {2, 103, 110, 111}, {3, 112, 120, 121}}
	for _, a := range txns {
		must(t, s.AppendAborted(a))
	}
	if s.AppendAborted(AbortedTxn{4, 100, 120, 121}) == nil {
		t.Error("appended a transaction with the same last offset")
	}
	f := func(fetch, upper int64, want []AbortedTxn, wantDone bool) {
		t.Helper()
		got, done, err := s.Aborted(fetch, upper)
		if err != nil || done != wantDone || len(got) != len(want) {
			t.Fatalf("Aborted(%d, %d): got %v, %v, %v, want %v, %v", fetch, upper, got, done, err, want, wantDone)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("Aborted(%d, %d): got %v, want %v", fetch, upper, got, want)
			}
		}
	}
	check := func() {
		t.Helper()
		f(100, 103, txns[:1], true)
		f(100, 104, txns[:2], true)
		f(106, 111, txns[1:2], true)
		f(100, 121, txns, true)
		f(100, 500, txns, false)
		f(121, 500, nil, false)
	}
	check()
	must(t, s.Close())
	s = open(t, m, 100, smallConfig())
	check()
	must(t, s.CheckTxnIndex())

	// A bad entry is found, and a torn one at the end is not.
	file, err := m.OpenFile(s.Path(TxnIndexFile), os.O_RDWR, 0)
	must(t, err)
	write := func(b []byte, off int64) {
		t.Helper()
		_, err := file.WriteAt(b, off)
		must(t, err)
	}
	write([]byte{1, 2, 3}, 3*txnEntrySize)
	s = open(t, m, 100, smallConfig())
	check()
	must(t, s.AppendAborted(AbortedTxn{9, 121, 130, 131}))
	write([]byte{1}, txnEntrySize)
	s = open(t, m, 100, smallConfig())
	var corrupt *CorruptError
	if err := s.CheckTxnIndex(); !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt) || corrupt.Position != txnEntrySize {
		t.Errorf("got %v, want corruption at byte %d", err, txnEntrySize)
	}
	_, err = s.Recover(func(record.Batch) error { return nil })
	must(t, err)
	f(0, 1000, nil, false)
	must(t, file.Close())
}

func TestTruncateTo(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	must(t, s.AppendAborted(AbortedTxn{1, 0, 9, 10}))
	must(t, s.AppendAborted(AbortedTxn{1, 10, 31, 32}))
	size := s.Size() / 20
	f := func(offset, wantCut, wantNext int64) {
		t.Helper()
		cut, err := s.TruncateTo(offset)
		if cut != wantCut || err != nil {
			t.Errorf("TruncateTo(%d): cut %d, %v, want %d", offset, cut, err, wantCut)
		}
		if next, err := s.NextOffset(); next != wantNext || err != nil {
			t.Errorf("TruncateTo(%d): next offset %d, %v, want %d", offset, next, err, wantNext)
		}
		if got := fileSize(t, s, LogFile); got != s.Size() {
			t.Errorf("TruncateTo(%d): file has %d bytes, want %d", offset, got, s.Size())
		}
		must(t, s.Check())
	}
	f(40, 0, 40)
	f(31, 5*size, 30) // in the middle of [30,31]
	if ts, offset, err := s.MaxTimestamp(); ts != t0+29 || offset != 29 || err != nil {
		t.Errorf("MaxTimestamp: got %d, %d, %v", ts-t0, offset, err)
	}
	if list, _, err := s.Aborted(0, 100); len(list) != 1 || err != nil {
		t.Errorf("Aborted: got %v, %v, want the first only", list, err)
	}
	must(t, s.Append(batch(t, 31, 1, t0-50, 10)))
	if next, err := s.NextOffset(); next != 32 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 32", next, err)
	}
	must(t, s.Seal())
	f(10, s.Size()-5*size, 10)
	f(0, 5*size, 0)
	if ts, err := s.FirstTimestamp(); ts != math.MaxInt64 || err != nil {
		t.Errorf("FirstTimestamp of nothing: got %d, %v", ts, err)
	}
	fill(t, s, 20)
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	f(15, 3*size, 14)
}

func TestBatches(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	sizes := []int{10, 300_000, 10, 1000, 200_000, chunkSize, 10}
	var positions []int64
	for i, size := range sizes {
		positions = append(positions, s.Size())
		must(t, s.Append(batch(t, int64(i), 1, t0, size)))
	}
	i := 0
	for l, err := range s.Batches(0, s.Size()) {
		must(t, err)
		if l.Position != positions[i] || l.Batch.BaseOffset() != int64(i) || l.Batch.Verify() != nil {
			t.Errorf("batch %d: got offset %d at %d, want %d", i, l.Batch.BaseOffset(), l.Position, positions[i])
		}
		i++
	}
	if i != len(sizes) {
		t.Errorf("got %d batches, want %d", i, len(sizes))
	}
	for _, err := range s.Batches(positions[2], positions[3]-1) {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Position != positions[2] || !errors.Is(err, errTorn) {
			t.Errorf("limit inside of a batch: got %v", err)
		}
	}
	for l, err := range s.Batches(positions[2], positions[4]) {
		must(t, err)
		if l.Position >= positions[4] {
			t.Errorf("batch at %d", l.Position)
		}
	}
}

func TestFileCacheEvicts(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Files = NewFileCache(3)
	var segments []*Segment
	for i := range int64(10) {
		s := create(t, m, i*10, cfg)
		fill(t, s, 10)
		segments = append(segments, s)
	}
	if n := cfg.Files.Len(); n != 3 {
		t.Errorf("%d descriptors, want 3", n)
	}
	for range 3 {
		for _, s := range segments {
			if next, err := s.NextOffset(); next != s.base+10 || err != nil {
				t.Errorf("NextOffset: got %d, %v", next, err)
			}
		}
	}
	if n := cfg.Files.Len(); n != 3 {
		t.Errorf("%d descriptors, want 3", n)
	}
	cfg.Files.CloseIdle()
	cfg.Files.CloseIdle()
	if n := cfg.Files.Len(); n != 0 {
		t.Errorf("%d descriptors after CloseIdle, want none", n)
	}
}

func TestIndexCacheEvicts(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Indexes = NewIndexCache(2000)
	var segments []*Segment
	for i := range int64(10) {
		s := create(t, m, i*100, cfg)
		fill(t, s, 60)
		must(t, s.Seal())
		segments = append(segments, s)
	}
	for range 2 {
		for _, s := range segments {
			if p, ok, err := s.Translate(s.base+51, 0); p.BaseOffset != s.base+50 || !ok || err != nil {
				t.Errorf("Translate: got %+v, %v, %v", p, ok, err)
			}
		}
	}
	if count, size := cfg.Indexes.Size(); size > 2000 || count == 0 || count > 5 {
		t.Errorf("%d indexes of %d bytes cached, want at most 2000", count, size)
	}
	must(t, segments[0].Append(batch(t, 60, 1, t0+100, 50)))
	cfg.Indexes.DropIdle()
	cfg.Indexes.DropIdle()
	if count, _ := cfg.Indexes.Size(); count != 0 {
		t.Errorf("%d indexes cached after DropIdle", count)
	}
	if segments[0].idx.Load() == nil || segments[1].idx.Load() != nil {
		t.Error("the index of a writer was dropped, or that of a sealed segment kept")
	}
}
