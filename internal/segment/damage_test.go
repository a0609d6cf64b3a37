package segment

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// damages are ways in which an index file can be wrong.
var damages = []struct {
	name string
	do   func(rng *rand.Rand, b []byte) []byte
}{
	{"missing", func(*rand.Rand, []byte) []byte { return missing }},
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

// missing stands for a file that is not there.
var missing = []byte("missing")

// mustReplace gives an index file other bytes, or removes it.
func mustReplace(t *testing.T, s *Segment, kind Kind, b []byte) {
	t.Helper()
	if bytes.Equal(b, missing) {
		must(t, s.files.remove(kind))
		return
	}
	must(t, vfs.WriteFileAtomic(s.files.fs, s.Path(kind), b))
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
		mustReplace(t, s, kind, b)
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
					mustReplace(t, s, IndexFile, b)
					checkLookups(t, s)
				}
				checkTimes(t, openAll(t, m, testDir, goldenConfig()), dir)
			})
		}
	}
}

// TestDamagedTimeIndex is the same for the time index.
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
					mustReplace(t, s, TimeIndexFile, b)
					for _, w := range want {
						got, ok, err := s.OffsetByTimestamp(w.Timestamp, base)
						if err != nil || !ok || got != w {
							t.Errorf("segment %d: OffsetByTimestamp(%d): got %+v, %v, %v, want %+v", base, w.Timestamp, got, ok, err, w)
						}
					}
					if !strings.Contains(dir, "v0") {
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
			want = maxTimestamp{timestamp: ts, offset: l.Batch.LastOffset()}
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
