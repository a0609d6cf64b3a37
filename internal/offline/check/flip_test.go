package check

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/vfs"
)

var (
	flips    = flag.Int("flips", 30, "bits that TestCheckNamesAFlippedBit flips in each set")
	flipSeed = flag.Uint64("flip.seed", 0, "seed of TestCheckNamesAFlippedBit; 0 takes a new one")
)

// A target is a .log file, and the spans of its batches.
type target struct {
	path  string
	data  []byte
	spans [][2]int64
}

func targets(t *testing.T, mem *vfs.Mem, dir string) (list []target, total int) {
	t.Helper()
	eachFile(t, mem, dir, func(path string, data []byte) {
		if kind, base := files.Classify(path); kind == files.LogFile {
			list = append(list, target{path, data, spansOf(t, mem, path, base)})
			total += len(data)
		}
	})
	return list, total
}

// eachFile calls visit for the files in a directory and below it that have anything in them.
func eachFile(t *testing.T, mem *vfs.Mem, dir string, visit func(path string, data []byte)) {
	t.Helper()
	entries, err := mem.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			eachFile(t, mem, path, visit)
			continue
		}
		data, err := vfs.ReadFile(mem, path, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 {
			visit(path, data)
		}
	}
}

// seedOfFlips returns what -flip.seed says, or a new seed.
func seedOfFlips(t *testing.T) uint64 {
	t.Helper()
	seed := *flipSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return seed
}

// checkFlipped checks the directory of a file that has one bit flipped meanwhile.
func checkFlipped(t *testing.T, mem *vfs.Mem, path string, data []byte, at int64, bit int) []Finding {
	t.Helper()
	flipped := bytes.Clone(data)
	flipped[at] ^= 1 << bit
	offlinetest.MustWrite(t, mem, path, flipped)
	defer offlinetest.MustWrite(t, mem, path, data)
	return mustCheck(t, offlinetest.ReadOnly{FS: mem}, filepath.Dir(path)).Findings
}

func spansOf(t *testing.T, mem *vfs.Mem, path string, base int64) (spans [][2]int64) {
	t.Helper()
	for _, sp := range batchesOf(t, mem, path, base) {
		if sp.Err != nil {
			t.Fatal(path, sp.Err)
		}
		spans = append(spans, [2]int64{sp.Position, sp.End})
	}
	return spans
}

// batchesOf returns what a .log file has, good and bad.
func batchesOf(t *testing.T, mem *vfs.Mem, path string, base int64) (list []files.Span) {
	t.Helper()
	s, err := files.OpenScanner(mem, path, base)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		sp, err := s.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		sp.Batch = bytes.Clone(sp.Batch)
		list = append(list, sp)
	}
}

// A single flipped bit in a .log file is named with its file and a position inside the batch
// that it is in. The offsets of batches, and the epoch of those that compaction made of an old
// format, are under no checksum: where compaction left holes around a batch nothing
// contradicts an offset that fits in them, so there a flip may only move the batch. The same
// holds for the epoch of a batch in front of messages of an old format, which have none and
// made the broker forget the epochs before them.
func TestCheckNamesAFlippedBit(t *testing.T) {
	seed := seedOfFlips(t)
	for _, set := range []string{"kafka-0.10.2.2", "kafka-1.1.1-mixed", "kafka-4.4.0-kraft"} {
		t.Run(set, func(t *testing.T) {
			_, mem := offlinetest.Unpack(t, set)
			list, total := targets(t, mem, "data")
			rng := rand.New(rand.NewPCG(seed, 0))
			for range *flips {
				at := rng.IntN(total)
				i := 0
				for at >= len(list[i].data) {
					at -= len(list[i].data)
					i++
				}
				flip(t, mem, &list[i], int64(at), rng.IntN(8))
				// once more where no checksum helps: offset, length, leader epoch
				l := &list[i]
				sp := l.spans[rng.IntN(len(l.spans))]
				flip(t, mem, l, sp[0]+rng.Int64N(16), rng.IntN(8))
			}
		})
	}
}

func flip(t *testing.T, mem *vfs.Mem, l *target, at int64, bit int) {
	t.Helper()
	i := slices.IndexFunc(l.spans, func(s [2]int64) bool { return s[0] <= at && at < s[1] })
	sp := l.spans[i]
	findings := checkFlipped(t, mem, l.path, l.data, at, bit)
	for _, f := range findings {
		if f.File == l.path && sp[0] <= f.Position && f.Position < sp[1] {
			return
		}
	}
	if in := at - sp[0]; in < 8 && hasRoom(l) || in >= 12 && in < 16 && beforeOldFormat(l, i) {
		return
	}
	t.Errorf("%s: bit %d of byte %d, byte %d of the batch %v, size %d: not found; findings %v",
		l.path, bit, at, at-sp[0], sp, len(l.data), findings)
}

// hasRoom reports whether a batch of a compacted log may be moved without a contradiction.
func hasRoom(l *target) bool {
	name := filepath.Base(filepath.Dir(l.path))
	return strings.Contains(name, "compact") || strings.HasPrefix(name, "__")
}

func beforeOldFormat(l *target, i int) bool {
	return i+1 < len(l.spans) && l.data[l.spans[i+1][0]+16] < 2
}
