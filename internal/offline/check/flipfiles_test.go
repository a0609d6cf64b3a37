package check

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A victim is a file of a log directory that a bit is flipped in.
type victim struct {
	path string
	kind files.Kind
	base int64
	data []byte
}

// victims returns the files of a directory that have anything in them, by kind.
func victims(t *testing.T, mem *vfs.Mem, dir string) map[files.Kind][]victim {
	t.Helper()
	byKind := map[files.Kind][]victim{}
	eachFile(t, mem, dir, func(path string, data []byte) {
		if kind, base := files.Classify(path); kind != files.Leftover {
			byKind[kind] = append(byKind[kind], victim{path, kind, base, data})
		}
	})
	return byKind
}

// A flipped bit in a file of any kind is named with the file, after a clean stop and after one
// that left no marker and no recovery points, unless it changes nothing that a reader gets or
// no other byte could tell that it is wrong. See silent. Ten thousand: -flips 5000.
func TestCheckNamesAFlippedBitInAnyFile(t *testing.T) {
	seed := seedOfFlips(t)
	for _, clean := range []bool{true, false} {
		_, mem := offlinetest.Unpack(t, "kafka-4.4.0-kraft")
		if !clean {
			for _, name := range []string{checkpoint.CleanShutdown, checkpoint.RecoveryPoints} {
				if err := mem.Remove("data/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		byKind := victims(t, mem, "data")
		kinds := []files.Kind{
			files.LogFile, files.OffsetIndexFile, files.TimeIndexFile, files.TxnIndexFile, files.ProducerSnapshot, files.KRaftSnapshot, files.EpochCheckpoint, files.PartitionMetadata,
			files.OffsetCheckpoint, files.MetaProperties, files.QuorumState,
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		named, quiet := 0, 0
		for i := range *flips {
			kind := kinds[i%len(kinds)]
			list := byKind[kind]
			if len(list) == 0 {
				t.Fatalf("no file of kind %d", kind)
			}
			v := list[rng.IntN(len(list))]
			at, bit := rng.IntN(len(v.data)), rng.IntN(8)
			if flipFile(t, mem, v, at, bit) {
				named++
			} else if quiet++; !v.silent(t, mem, at, bit) {
				t.Errorf("clean %t: bit %d of byte %d of %d of %s: not found", clean, bit, at, len(v.data), v.path)
			}
		}
		t.Logf("clean %t: %d named, %d not", clean, named, quiet)
	}
}

// flipFile reports whether a check names a file with one bit flipped.
func flipFile(t *testing.T, mem *vfs.Mem, v victim, at, bit int) (named bool) {
	t.Helper()
	for _, f := range checkFlipped(t, mem, v.path, v.data, int64(at), bit) {
		if f.File == v.path || f.File == filepath.Dir(v.path) && strings.Contains(f.Message, "index files end in zeros") {
			return true
		}
	}
	return false
}

// silent reports whether nobody can be expected to notice a flipped bit.
func (v victim) silent(t *testing.T, mem *vfs.Mem, at, bit int) bool {
	t.Helper()
	data := bytes.Clone(v.data)
	data[at] ^= 1 << bit
	switch v.kind {
	case files.LogFile: // where compaction has been, a batch may be anywhere; see TestCheckNamesAFlippedBit
		list := spansOf(t, mem, v.path, v.base)
		for i, sp := range list {
			if in := int64(at) - sp[0]; sp[0] <= int64(at) && int64(at) < sp[1] {
				l := &target{v.path, v.data, list}
				return in < 8 && hasRoom(l) || in >= 12 && in < 16 && beforeOldFormat(l, i)
			}
		}
	case files.OffsetIndexFile:
		entries, _ := files.DecodeOffsets(data, v.base)
		return leadRight(t, mem, v, entries)
	case files.TimeIndexFile:
		entries, _ := files.DecodeTimes(data, v.base)
		return tellTruth(t, mem, v, entries)
	case files.TxnIndexFile: // compaction may have taken the beginning of any transaction
		field := at % files.TxnEntrySize
		return hasRoom(&target{path: v.path}) && (field >= 10 && field < 18 || field >= 26)
	case files.KRaftSnapshot: // no checksum covers the leader epoch, and nothing repeats it
		for pos := 0; ; {
			b, err := record.First(v.data[pos:])
			if err != nil {
				return false
			}
			if at >= pos+12 && at < pos+16 {
				return true
			}
			pos += b.Size()
		}
	case files.EpochCheckpoint, files.PartitionMetadata, files.OffsetCheckpoint, files.MetaProperties, files.QuorumState:
		return true // another number, which may be as good as the right one
	}
	return false
}

// batchesBeside returns the batches of the .log file beside an index.
func batchesBeside(t *testing.T, mem *vfs.Mem, v victim) []files.Span {
	t.Helper()
	return batchesOf(t, mem, strings.TrimSuffix(v.path, filepath.Ext(v.path))+".log", v.base)
}

// leadRight reports whether each entry leads to a batch that begins at or before its offset.
func leadRight(t *testing.T, mem *vfs.Mem, v victim, entries []files.OffsetEntry) bool {
	t.Helper()
	begins := map[int64]int64{}
	for _, sp := range batchesBeside(t, mem, v) {
		begins[sp.Position] = sp.Batch.BaseOffset()
	}
	for _, e := range entries {
		if first, ok := begins[e.Position]; !ok || first > e.Offset {
			return false
		}
	}
	return true
}

// tellTruth reports whether no batch in front of an entry's offset has its timestamp or more.
func tellTruth(t *testing.T, mem *vfs.Mem, v victim, entries []files.TimeEntry) bool {
	t.Helper()
	for _, e := range entries {
		for _, sp := range batchesBeside(t, mem, v) {
			if sp.Batch.LastOffset() < e.Offset && sp.Batch.MaxTimestamp() > e.Timestamp {
				return false
			}
		}
	}
	return true
}
