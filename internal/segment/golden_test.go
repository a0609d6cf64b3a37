package segment

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
			cut, err := s.Recover(func(Located) error { count++; return nil }, math.MaxInt64, nil)
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
	b, err := vfs.ReadFile(s.files.fs, s.Path(kind), 1<<30)
	must(t, err)
	return b
}

func readIndexes(t *testing.T, s *Segment) string {
	t.Helper()
	return fmt.Sprintf("%x %x", content(t, s, IndexFile), content(t, s, TimeIndexFile))
}
