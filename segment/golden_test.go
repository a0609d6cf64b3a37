package segment

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// TestGoldenEntries has the index files that Kafka's own classes made for base 100.
func TestGoldenEntries(t *testing.T) {
	index, _ := hex.DecodeString("00000001000000000000003200001068")
	offsets, sound, err := offsetLayout.decode(bytes.NewReader(index), int64(len(index)), anyOffset)
	if want := []offsetEntry{{1, 0}, {50, 4200}}; !slices.Equal(offsets, want) || !sound || err != nil {
		t.Errorf(".index: got %v, %v, %v, want %v", offsets, sound, err, want)
	}
	timeindex, _ := hex.DecodeString("0000018bcfe56800000000010000018bcfe5680900000033")
	times, sound, err := timeLayout.decode(bytes.NewReader(timeindex), int64(len(timeindex)), anyTime)
	if want := []timeEntry{{t0, 1}, {t0 + 9, 51}}; !slices.Equal(times, want) || !sound || err != nil {
		t.Errorf(".timeindex: got %v, %v, %v, want %v", times, sound, err, want)
	}
	txnindex, _ := hex.DecodeString("00000000000000000fa0000000000000006400000000000000670000000000000068")
	txns, bad, err := decodeTxns(bytes.NewReader(txnindex), 1, 100)
	if want := []AbortedTxn{{4000, 100, 103, 104}}; !slices.Equal(txns, want) || bad != nil || err != nil {
		t.Errorf(".txnindex: got %v, %v, %v, want %v", txns, bad, err, want)
	}
	if got := encode(offsets); !bytes.Equal(got, index) {
		t.Errorf(".index written as %x", got)
	}
	if got := encode(times); !bytes.Equal(got, timeindex) {
		t.Errorf(".timeindex written as %x", got)
	}
	if got := txns[0].append(nil); !bytes.Equal(got, txnindex) {
		t.Errorf(".txnindex written as %x", got)
	}
	f := func(target int64, want offsetEntry, wantOK bool) {
		t.Helper()
		if got, ok := searchOffsets(offsets, target-100); got != want || ok != wantOK {
			t.Errorf("search %d: got %v, %v", target, got, ok)
		}
	}
	f(99, offsetEntry{}, false)
	f(100, offsetEntry{}, false)
	f(101, offsetEntry{1, 0}, true)
	f(149, offsetEntry{1, 0}, true)
	f(150, offsetEntry{50, 4200}, true)
	f(1000, offsetEntry{50, 4200}, true)
	cfg := Config{MaxIndexSize: 83}.withDefaults()
	if cfg.maxOffsetEntries() != 10 || cfg.maxTimeEntries() != 6 {
		t.Errorf("83 bytes hold %d and %d entries, want 10 and 6", cfg.maxOffsetEntries(), cfg.maxTimeEntries())
	}
}

func anyOffset(offsetEntry) bool { return true }
func anyTime(timeEntry) bool     { return true }

func encode[E entry[E]](entries []E) (b []byte) {
	for _, e := range entries {
		b = e.append(b)
	}
	return b
}

// goldenConfig is how the topics of the golden directories were set.
func goldenConfig() Config {
	return Config{IndexIntervalBytes: 512, MaxIndexSize: 1024, Files: NewFileCache(4), Indexes: NewIndexCache(1 << 16)}
}

// partitions returns the folders that real brokers wrote.
func partitions(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/kafka-*/*-[0-9]")
	if err != nil || len(dirs) != 12 {
		t.Fatalf("got %d folders in testdata, %v, want 12", len(dirs), err)
	}
	return dirs
}

// bases returns the base offsets of the segments in a folder, sorted.
func bases(t testing.TB, fsys vfs.FS, dir string) (bases []int64) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if base, kind, suffix, ok := ParseName(e.Name()); ok && kind == LogFile && suffix == "" {
			bases = append(bases, base)
		}
	}
	return bases
}

// copyPartition copies a folder into memory.
func copyPartition(t testing.TB, dir string) *vfs.Mem {
	t.Helper()
	m := newFS(t)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		must(t, vfs.WriteFileAtomic(m, filepath.Join(testDir, e.Name()), b))
	}
	return m
}

func openAll(t testing.TB, fsys vfs.FS, dir string, cfg Config) (list []*Segment) {
	t.Helper()
	for _, base := range bases(t, fsys, dir) {
		s, err := Open(fsys, dir, base, cfg)
		must(t, err)
		list = append(list, s)
	}
	return list
}

// TestGolden looks everything up in directories of real brokers, in place.
func TestGolden(t *testing.T) {
	for _, dir := range partitions(t) {
		t.Run(dir, func(t *testing.T) {
			cfg := goldenConfig()
			cfg.ReadOnly = true
			segments := openAll(t, vfs.OS, dir, cfg)
			for _, s := range segments {
				must(t, s.Check())
				checkLookups(t, s)
			}
			checkTimes(t, segments, dir)
			for _, s := range segments {
				if s.idx.Load().built {
					t.Errorf("segment %d: the index was not trusted", s.base)
				}
				must(t, s.Close())
			}
		})
	}
}

// checkLookups compares every look-up by offset with a walk.
func checkLookups(t *testing.T, s *Segment) {
	t.Helper()
	next := s.base
	for l, err := range s.Batches(0, s.Size()) {
		must(t, err)
		want := BatchPosition{l.Batch.BaseOffset(), l.Position, l.Batch.Size()}
		for _, o := range []int64{next, (next + l.Batch.LastOffset()) / 2, l.Batch.LastOffset()} {
			if got, ok, err := s.Translate(o, 0); got != want || !ok || err != nil {
				t.Fatalf("segment %d: Translate(%d): got %+v, %v, %v, want %+v", s.base, o, got, ok, err, want)
			}
		}
		if bound, ok := s.UpperBound(l.Position, l.Batch.Size()); ok && bound <= l.Batch.LastOffset() {
			t.Errorf("segment %d: UpperBound %d is not above the batch up to %d", s.base, bound, l.Batch.LastOffset())
		}
		next = l.Batch.LastOffset() + 1
	}
	if got, err := s.NextOffset(); got != next || err != nil {
		t.Errorf("segment %d: NextOffset: got %d, %v, want %d", s.base, got, err, next)
	}
	if got, ok, err := s.Translate(next, 0); ok || err != nil {
		t.Errorf("segment %d: Translate behind the end: got %+v, %v", s.base, got, err)
	}
}

// checkTimes compares look-ups by time with what the release answered.
func checkTimes(t *testing.T, segments []*Segment, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join(filepath.Dir(dir), "offsets.txt"))
	must(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var name, query string
		var offset, timestamp int64
		_, err := fmt.Sscan(lines.Text(), &name, &query, &offset, &timestamp)
		must(t, err)
		if name != filepath.Base(dir) {
			continue
		}
		got, ok := lookUp(t, segments, query)
		if !ok {
			got = TimestampOffset{Timestamp: -1, Offset: -1}
		}
		if got.Offset != offset || got.Timestamp != timestamp {
			t.Errorf("%s: got %d at %d, want %d at %d", query, got.Offset, got.Timestamp, offset, timestamp)
		}
	}
}

func lookUp(t *testing.T, segments []*Segment, query string) (TimestampOffset, bool) {
	t.Helper()
	if query == "max" {
		best := slices.MaxFunc(segments, func(a, b *Segment) int { return int(largest(t, a) - largest(t, b)) })
		r, ok, err := best.MaxTimestampRecord()
		must(t, err)
		return r, ok
	}
	var timestamp int64
	_, err := fmt.Sscan(query, &timestamp)
	must(t, err)
	for _, s := range segments {
		if largest(t, s) >= timestamp {
			r, ok, err := s.OffsetByTimestamp(timestamp, 0)
			must(t, err)
			return r, ok
		}
	}
	return TimestampOffset{}, false
}

func largest(t *testing.T, s *Segment) int64 {
	t.Helper()
	ts, _, err := s.MaxTimestamp()
	must(t, err)
	if ts >= 0 {
		return ts
	}
	ts, err = s.LargestTimestamp()
	must(t, err)
	return ts
}

// TestGoldenRecover removes the indexes of Kafka's segments, recovers, and gets the same bytes.
// Compacted segments and those of older brokers have indexes of another density.
func TestGoldenRecover(t *testing.T) {
	for _, dir := range partitions(t) {
		m := copyPartition(t, dir)
		for _, base := range bases(t, m, testDir) {
			s := open(t, m, base, goldenConfig())
			want := readIndexes(t, s)
			damageIndexes(t, s, rand.New(rand.NewPCG(1, uint64(base))))
			var count int
			cut, err := s.Recover(func(b record.Batch) error { count++; return nil })
			if cut != 0 || err != nil || count == 0 && s.Size() > 0 {
				t.Errorf("%s/%d: cut %d of %d batches, %v", dir, base, cut, count, err)
			}
			must(t, s.Check())
			checkLookups(t, s)
			if strings.Contains(dir, "kafka-4.4.0") && !strings.Contains(dir, "compact") && readIndexes(t, s) != want {
				t.Errorf("%s/%d: got\n%s\nwant\n%s", dir, base, readIndexes(t, s), want)
			}
		}
	}
}

// TestGoldenAppend writes Kafka's batches again, one by one, and gets Kafka's files.
func TestGoldenAppend(t *testing.T) {
	for _, dir := range partitions(t) {
		if !strings.Contains(dir, "kafka-4.4.0") || strings.Contains(dir, "compact") {
			continue
		}
		m := copyPartition(t, dir)
		for _, base := range bases(t, m, testDir) {
			from := open(t, m, base, goldenConfig())
			cfg := goldenConfig()
			cfg.Suffix = CleanedSuffix
			to := create(t, m, base, cfg)
			for l, err := range from.Batches(0, from.Size()) {
				must(t, err)
				must(t, to.Append(l.Batch))
			}
			must(t, to.Close())
			for _, kind := range []Kind{LogFile, IndexFile, TimeIndexFile} {
				got, want := content(t, to, kind), content(t, from, kind)
				if !bytes.Equal(got, want) {
					t.Errorf("%s/%d%s: got\n%x\nwant\n%x", dir, base, kind, got, want)
				}
			}
		}
	}
}

func content(t *testing.T, s *Segment, kind Kind) []byte {
	t.Helper()
	b, err := vfs.ReadFile(s.fs, s.Path(kind), 1<<30)
	must(t, err)
	return b
}

func readIndexes(t *testing.T, s *Segment) string {
	t.Helper()
	return fmt.Sprintf("%x %x", content(t, s, IndexFile), content(t, s, TimeIndexFile))
}

// damages are ways in which an index file can be wrong.
var damages = []struct {
	name string
	do   func(rng *rand.Rand, b []byte) []byte
}{
	{"empty", func(_ *rand.Rand, b []byte) []byte { return nil }},
	{"ff", func(_ *rand.Rand, b []byte) []byte { return bytes.Repeat([]byte{0xff}, max(len(b), 24)) }},
	{"zeros", func(_ *rand.Rand, b []byte) []byte { return make([]byte, max(len(b), 24)) }},
	{"padded", func(_ *rand.Rand, b []byte) []byte { return append(b, make([]byte, 240)...) }},
	{"odd length", func(_ *rand.Rand, b []byte) []byte { return append(b, 0) }},
	{"short", func(_ *rand.Rand, b []byte) []byte { return b[:len(b)/24*12] }},
	{"random", func(rng *rand.Rand, b []byte) []byte { return randomBytes(rng, max(len(b), 24)) }},
	{"bit", func(rng *rand.Rand, b []byte) []byte {
		if len(b) > 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		return b
	}},
	{"zero page", func(rng *rand.Rand, b []byte) []byte {
		if len(b) > 0 {
			clear(b[rng.IntN(len(b)):])
		}
		return b
	}},
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func damageIndexes(t *testing.T, s *Segment, rng *rand.Rand) {
	t.Helper()
	for _, kind := range []Kind{IndexFile, TimeIndexFile} {
		b := damages[rng.IntN(len(damages))].do(rng, content(t, s, kind))
		must(t, vfs.WriteFileAtomic(s.fs, s.Path(kind), b))
	}
}

// TestDamagedOffsetIndex looks everything up with indexes that are wrong in all the ways above,
// and then appends.
func TestDamagedOffsetIndex(t *testing.T) {
	for _, dir := range partitions(t) {
		for _, damage := range damages {
			t.Run(dir+"/"+damage.name, func(t *testing.T) {
				m := copyPartition(t, dir)
				rng := rand.New(rand.NewPCG(7, 7))
				for _, base := range bases(t, m, testDir) {
					s, err := Open(m, testDir, base, goldenConfig())
					must(t, err)
					b := damage.do(rng, content(t, s, IndexFile))
					must(t, vfs.WriteFileAtomic(m, s.Path(IndexFile), b))
					checkLookups(t, s)
				}
				checkTimes(t, openAll(t, m, testDir, goldenConfig()), dir)
			})
		}
	}
}

// TestDamagedTimeIndex is the same for the time index. One that is empty or short gives the right
// records still, but not the largest timestamp.
func TestDamagedTimeIndex(t *testing.T) {
	for _, dir := range partitions(t) {
		for _, damage := range damages {
			t.Run(dir+"/"+damage.name, func(t *testing.T) {
				m := copyPartition(t, dir)
				rng := rand.New(rand.NewPCG(8, 8))
				for _, base := range bases(t, m, testDir) {
					s, err := Open(m, testDir, base, goldenConfig())
					must(t, err)
					want := timesByWalk(t, s)
					b := damage.do(rng, content(t, s, TimeIndexFile))
					must(t, vfs.WriteFileAtomic(m, s.Path(TimeIndexFile), b))
					for _, w := range want {
						got, ok, err := s.OffsetByTimestamp(w.Timestamp, base)
						if err != nil || !ok || got != w {
							t.Errorf("segment %d: OffsetByTimestamp(%d): got %+v, %v, %v, want %+v", base, w.Timestamp, got, ok, err, w)
						}
					}
					if damage.name != "empty" && damage.name != "short" && !strings.Contains(dir, "v0") {
						checkMax(t, s)
					}
				}
			})
		}
	}
}

// checkMax compares the largest timestamp with a walk.
func checkMax(t *testing.T, s *Segment) {
	t.Helper()
	want := unknownMax(s.base)
	for l, err := range s.Batches(0, s.Size()) {
		must(t, err)
		if ts := l.Batch.MaxTimestamp(); ts > want.timestamp {
			want = maxTimestamp{ts, l.Batch.LastOffset()}
		}
	}
	ts, offset, err := s.MaxTimestamp()
	if err != nil || ts != want.timestamp || offset != want.offset {
		t.Errorf("segment %d: MaxTimestamp: got %d, %d, %v, want %+v", s.base, ts, offset, err, want)
	}
}

// timesByWalk returns the records that are later than all before them.
func timesByWalk(t *testing.T, s *Segment) (list []TimestampOffset) {
	t.Helper()
	best := int64(-1)
	for l, err := range s.Batches(0, s.Size()) {
		must(t, err)
		for r, err := range l.Batch.Records() {
			must(t, err)
			if r.Timestamp > best {
				best = r.Timestamp + 5000 // one answer for a few records
				list = append(list, TimestampOffset{r.Timestamp, r.Offset, l.Batch.LeaderEpoch()})
			}
		}
	}
	return list
}

// TestForeignIndex gives each segment the indexes of another one.
func TestForeignIndex(t *testing.T) {
	for _, dir := range partitions(t) {
		m := copyPartition(t, dir)
		list := bases(t, m, testDir)
		donor := copyPartition(t, "testdata/kafka-4.4.0/time-create-0")
		from := bases(t, donor, testDir)
		for i, base := range list {
			s := open(t, m, base, goldenConfig())
			other, err := Open(donor, testDir, from[i%len(from)], goldenConfig())
			must(t, err)
			for _, kind := range []Kind{IndexFile, TimeIndexFile} {
				must(t, vfs.WriteFileAtomic(m, s.Path(kind), content(t, other, kind)))
			}
			want := timesByWalk(t, s)
			checkLookups(t, s)
			for _, w := range want {
				if got, ok, err := s.OffsetByTimestamp(w.Timestamp, base); err != nil || !ok || got != w {
					t.Errorf("%s/%d: OffsetByTimestamp(%d): got %+v, %v, %v, want %+v", dir, base, w.Timestamp, got, ok, err, w)
				}
			}
			next, err := s.NextOffset()
			must(t, err)
			for o := next; o < next+40; o += 2 {
				must(t, s.Append(batch(t, o, 2, t0+5e9+o, 100)))
			}
			checkLookups(t, s)
			must(t, s.Close())
		}
	}
}

// TestPaddedIndex is an index as Kafka preallocates it, as large as that of a metadata log.
func TestPaddedIndex(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	must(t, s.Close())
	want := len(content(t, s, IndexFile)) / offsetEntrySize
	pad := func(kind Kind, size int64) {
		t.Helper()
		f, err := m.OpenFile(s.Path(kind), os.O_RDWR, 0)
		must(t, err)
		must(t, f.Truncate(size))
		must(t, f.Close())
	}
	pad(IndexFile, 10<<20)
	s = open(t, m, 0, smallConfig())
	checkLookups(t, s)
	idx := s.idx.Load()
	if got := len(idx.offsets.Load().view()); got != want || idx.built {
		t.Errorf("got %d entries, built %v, want %d from the file", got, idx.built, want)
	}
	must(t, vfs.WriteFileAtomic(m, s.Path(TimeIndexFile), content(t, s, TimeIndexFile)[:timeEntrySize]))
	pad(TimeIndexFile, 10485756)
	s = open(t, m, 0, smallConfig())
	checkLookups(t, s)
	if ts, _, err := s.MaxTimestamp(); ts != t0+39 || err != nil { // KAFKA-10207
		t.Errorf("MaxTimestamp: got %d, %v, want %d", ts, err, t0+39)
	}
	fill(t, s, 44)
	must(t, s.Close())
	if got := len(content(t, s, IndexFile)) / offsetEntrySize; got != want+1 {
		t.Errorf("closed with %d entries, want %d", got, want+1)
	}
}

// TestTimestampZero is a time index with one entry of zeros, which is no padding.
func TestTimestampZero(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	must(t, s.Append(batch(t, 0, 1, 0, 10)))
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	if ts, offset, err := s.MaxTimestamp(); ts != 0 || offset != 0 || err != nil {
		t.Errorf("got %d, %d, %v, want 0, 0", ts, offset, err)
	}
}

// TestCorruptLog is a broken batch in the middle: what is in front is served, what is behind is
// reported.
func TestCorruptLog(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	must(t, s.Close())
	f, err := m.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0, 0, 0, 1}, 10*size+8) // the length
	must(t, err)
	must(t, f.Close())
	must(t, m.Remove(s.Path(IndexFile)))
	s, err = Open(m, testDir, 0, smallConfig())
	must(t, err)
	if p, ok, err := s.Translate(19, 0); p.BaseOffset != 18 || !ok || err != nil {
		t.Errorf("in front: got %+v, %v, %v", p, ok, err)
	}
	for name, err := range map[string]error{"Translate": second(s.Translate(20, 0)), "Check": s.Check()} {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Position != 10*size || corrupt.Path != s.Path(LogFile) {
			t.Errorf("%s: got %v, want corruption at byte %d", name, err, 10*size)
		}
	}
	cut, err := s.Recover(func(record.Batch) error { return nil })
	if cut != 10*size || err != nil {
		t.Errorf("Recover: cut %d, %v, want %d", cut, err, 10*size)
	}
	must(t, s.Check())
}

func second(_ BatchPosition, _ bool, err error) error { return err }

func TestRecoverStopsAt(t *testing.T) {
	garbage := randomBytes(rand.New(rand.NewPCG(2, 2)), 15)
	flipped := batch(t, 40, 2, t0, 50)
	flipped[len(flipped)-1] ^= 1
	huge := batch(t, 40, 2, t0, 50)
	copy(huge[8:], []byte{0x7f, 0xff, 0xff, 0xff})
	f := func(name string, tail []byte) {
		t.Helper()
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		fill(t, s, 40)
		good := s.Size()
		must(t, s.Close())
		file, err := m.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
		must(t, err)
		_, err = file.WriteAt(tail, good)
		must(t, err)
		must(t, file.Close())
		s = open(t, m, 0, smallConfig())
		var seen int64
		cut, err := s.Recover(func(b record.Batch) error { seen = b.NextOffset(); return nil })
		if cut != int64(len(tail)) || err != nil || seen != 40 || s.Size() != good || fileSize(t, s, LogFile) != good {
			t.Errorf("%s: cut %d, %v, saw %d, size %d; want cut %d, size %d", name, cut, err, seen, s.Size(), len(tail), good)
		}
		if ts, offset, err := s.MaxTimestamp(); ts != t0+39 || offset != 39 || err != nil {
			t.Errorf("%s: MaxTimestamp: got %d, %d, %v", name, ts-t0, offset, err)
		}
	}
	f("nothing", nil)
	f("garbage", garbage)
	f("zeros", make([]byte, 5000))
	f("torn header", batch(t, 40, 2, t0, 50)[:30])
	f("torn batch", batch(t, 40, 2, t0, 50)[:150])
	f("wrong crc, then a good batch", append(flipped, batch(t, 42, 2, t0, 50)...))
	f("length of 2 GiB", huge)
	f("offsets again", batch(t, 38, 2, t0, 50))
}

func TestRecoverErrors(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	stop := errors.New("stop")
	if _, err := s.Recover(func(b record.Batch) error {
		if b.BaseOffset() == 10 {
			return stop
		}
		return nil
	}); err != stop || s.Size() != fileSize(t, s, LogFile) {
		t.Errorf("visit failed: got %v, size %d", err, s.Size())
	}
	m.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead {
			return io.ErrClosedPipe
		}
		return nil
	})
	if _, err := s.Recover(func(record.Batch) error { return nil }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("reading failed: got %v", err)
	}
	m.SetHook(nil)
	if _, err := s.Recover(func(record.Batch) error { return nil }); err != nil || s.Size() != fileSize(t, s, LogFile) {
		t.Errorf("got %v, size %d", err, s.Size())
	}

	must(t, vfs.WriteFileAtomic(m, filepath.Join(testDir, Name(100, LogFile, "")), batch(t, 50, 1, t0, 1)))
	low, err := Open(m, testDir, 100, smallConfig())
	must(t, err)
	if _, err := low.Recover(func(record.Batch) error { return nil }); !errors.Is(err, ErrOffsetOverflow) || low.Size() == 0 {
		t.Errorf("offset below the base: got %v, size %d", err, low.Size())
	}
}

// TestHugeLength is a batch that claims to fill a sparse file of 1 GiB: no memory for that.
func TestHugeLength(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(vfs.OS, dir, 0, smallConfig(), time.Now())
	must(t, err)
	fill(t, s, 4)
	good := s.Size()
	must(t, s.Close())
	f, err := os.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	bad := batch(t, 4, 1, t0, 10)
	copy(bad[8:], []byte{0x04, 0, 0, 0})
	_, err = f.WriteAt(bad, good)
	must(t, err)
	must(t, f.Truncate(good+(64<<20)+12))
	must(t, f.Close())
	s, err = Open(vfs.OS, dir, 0, smallConfig())
	must(t, err)
	var cut int64
	before := testing.AllocsPerRun(1, func() {})
	if got := allocatedBytes(func() { cut, err = s.Recover(func(record.Batch) error { return nil }) }); got > 4<<20 {
		t.Errorf("Recover allocated %d bytes", got)
	}
	if cut != 64<<20+12 || err != nil || before != 0 {
		t.Errorf("cut %d, %v", cut, err)
	}
	must(t, s.Close())
}
