package files

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

const offsetsSuffix = "-offset-checkpoint"

// A Kind says what a file of a log directory contains.
type Kind int

const (
	OtherFile Kind = iota
	LogFile
	OffsetIndexFile
	TimeIndexFile
	TxnIndexFile
	ProducerSnapshot
	KRaftSnapshot
	OffsetCheckpoint
	EpochCheckpoint
	PartitionMetadata
	MetaProperties
	QuorumState
	CleanShutdown
	CleanState
	LeftAlone // by a gregor whose metadata does not know them
	LossList  // gregor-losses and gregor-transactions
	Running   // there while a broker runs
	Leftover  // on its way in or out, or written to replace another one
)

var fixedNames = map[string]Kind{
	checkpoint.LeaderEpochs:          EpochCheckpoint,
	checkpoint.PartitionMetadataFile: PartitionMetadata,
	checkpoint.MetaPropertyFile:      MetaProperties,
	checkpoint.CleanShutdown:         CleanShutdown,
	checkpoint.QuorumState:           QuorumState,
	checkpoint.BootstrapSnapshot:     KRaftSnapshot,
	checkpoint.CleanState:            CleanState,
	checkpoint.LeftAlone:             LeftAlone,
	checkpoint.Losses:                LossList,
	checkpoint.TransactionsFile:      LossList,
	checkpoint.LockFile:              Running,
	checkpoint.Socket:                Running,
}

// leftovers are the suffixes of files that are not part of the data, with what each means.
var leftovers = map[string]string{
	segment.SwapSuffix:        "output of compaction that was about to replace its originals; the next start finishes that or undoes it",
	segment.CleanedSuffix:     "unfinished output of compaction; the next start removes it",
	segment.DeletedSuffix:     "waits for its removal; the next start removes it",
	".tmp":                    "a crash interrupted the writing of a file; the next writing replaces it",
	checkpoint.PartSuffix:     "an unfinished snapshot; the next start removes it",
	checkpoint.ReceivedSuffix: "a snapshot from the leader that was about to replace the metadata log; the next start finishes that",
}

// LeftoverReason says what a leftover means, by the suffix of its name.
func LeftoverReason(path string) string { return leftovers[filepath.Ext(path)] }

// Classify tells from a file's name what it is. base is the offset that the name begins with,
// or 0.
func Classify(path string) (kind Kind, base int64) {
	name := filepath.Base(path)
	if kind, ok := fixedNames[name]; ok {
		return kind, 0
	}
	if _, ok := leftovers[filepath.Ext(name)]; ok {
		return Leftover, 0
	}
	if base, kind, suffix, ok := segment.ParseName(name); ok && suffix == "" {
		return map[segment.Kind]Kind{
			segment.LogFile: LogFile, segment.IndexFile: OffsetIndexFile,
			segment.TimeIndexFile: TimeIndexFile, segment.TxnIndexFile: TxnIndexFile,
		}[kind], base
	}
	if strings.HasSuffix(name, offsetsSuffix) {
		return OffsetCheckpoint, 0
	}
	if base, ok := checkpoint.ParseProducersName(name); ok {
		return ProducerSnapshot, base
	}
	if end, _, ok := checkpoint.ParseSnapshotName(name); ok {
		return KRaftSnapshot, end
	}
	return OtherFile, 0
}

// Suffixes of directories that are no live partition.
var asideDirs = map[string]string{
	checkpoint.DeleteDirSuffix: "deleted topic; the broker removes the directory",
	checkpoint.StrayDirSuffix:  "belongs to no partition of its broker, which keeps it and never reads it",
	checkpoint.FutureDirSuffix: "copy of a partition on its way from another log directory",
}

// ParseDir returns the partition in the name of a directory. aside explains a directory that
// is not the live one; ok is false for names of another kind.
func ParseDir(path string) (p topic.Partition, aside string, ok bool) {
	name := filepath.Base(path)
	for suffix, why := range asideDirs {
		if rest, found := strings.CutSuffix(name, suffix); found {
			if dot := strings.LastIndexByte(rest, '.'); dot > 0 {
				name, aside = rest[:dot], why
			}
		}
	}
	p, err := topic.ParsePartition(name)
	return p, aside, err == nil && topic.ValidateName(p.Topic) == nil
}

// IsPartitionDir tells a partition from a log directory: by its name or by a segment in it.
func IsPartitionDir(path string, entries []fs.DirEntry) bool {
	for _, e := range entries {
		if kind, _ := Classify(e.Name()); !e.IsDir() && kind == LogFile {
			return true
		}
	}
	_, _, ok := ParseDir(path)
	return ok && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() })
}

// Sorted puts partitions in the order of their topics and numbers, with files in front.
func Sorted(entries []fs.DirEntry) []fs.DirEntry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return 1
			}
			return -1
		}
		p, _, _ := ParseDir(a.Name())
		q, _, _ := ParseDir(b.Name())
		return cmp.Or(p.Compare(q), strings.Compare(a.Name(), b.Name()))
	})
}
