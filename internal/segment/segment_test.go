package segment

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
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
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: base, LeaderEpoch: new(int32(3))})
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
	info, err := s.files.fs.Stat(s.Path(kind))
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
	f("00000001099511627776.index", 1<<40, IndexFile, "", true)
	f("partition.metadata", 0, "", "", false)
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
			sl, err := s.Read(4, 1<<20, s.Size(), WholeFirst)
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
			if _, err := s.Read(0, 1, 1, WholeFirst); !errors.Is(err, fs.ErrClosed) {
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

// TestIndexFilesComeLater: Create makes no index files, and what has their names is of no segment.
func TestIndexFilesComeLater(t *testing.T) {
	f := func(name string, complete func(s *Segment) error) {
		t.Helper()
		m := newFS(t)
		for _, kind := range []Kind{IndexFile, TimeIndexFile, TxnIndexFile} {
			must(t, vfs.WriteFileAtomic(m, filepath.Join(testDir, Name(0, kind, "")), bytes.Repeat([]byte{1}, 1<<10)))
		}
		s := create(t, m, 0, smallConfig())
		must(t, complete(s))
		entries := int64(len(s.idx.Load().offsets.Load().view()))
		if got := fileSize(t, s, IndexFile); got != entries*offsetEntrySize {
			t.Errorf("%s: .index has %d bytes, want %d entries", name, got, entries)
		}
		if _, err := m.Stat(s.Path(TxnIndexFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: .txnindex: got %v, want ErrNotExist", name, err)
		}
	}
	f("asked for", (*Segment).MakeIndexFiles)
	f("sealed", func(s *Segment) error { fill(t, s, 40); return s.Seal() })
	f("closed empty", (*Segment).writeBack)
	f("times", func(s *Segment) error { return s.SetModTime(time.UnixMilli(t0)) })

	m := newFS(t)
	s, err := Create(m, testDir, 0, smallConfig(), time.UnixMilli(t0))
	must(t, err)
	if _, err := m.Stat(s.Path(IndexFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Create: got %v, want ErrNotExist", err)
	}
	must(t, s.Remove())
	must(t, s.MakeIndexFiles())
	if _, err := m.Stat(s.Path(IndexFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Remove: got %v, want ErrNotExist", err)
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
	_, recovered := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
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
	cut, err := crashed.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
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
