package offline

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/segment"
)

const (
	snapshotSuffix   = ".snapshot"
	checkpointSuffix = ".checkpoint"
	offsetsSuffix    = "-offset-checkpoint"
	bootstrapFile    = "bootstrap.checkpoint"
	quorumStateFile  = "quorum-state"
	lockFile         = ".lock"
	copyFile         = "gregor-copy"        // marks a partition that moves here from another log directory
	cleanStateFile   = "gregor-clean-state" // what each log knew of itself at a clean stop
	leftAloneFile    = "gregor-left-alone"  // partitions that are not served
	socketFile       = "gregor.sock"        // of a running gregor
)

// A fileKind says what a file of a log directory contains.
type fileKind int

const (
	otherFile fileKind = iota
	logFile
	offsetIndexFile
	timeIndexFile
	txnIndexFile
	producerSnapshot
	kraftSnapshot
	offsetCheckpoint
	epochCheckpoint
	partitionMetadata
	metaProperties
	quorumState
	cleanShutdown
	cleanState
	leftAlone // by a gregor whose metadata does not know them
	lossList  // gregor-losses and gregor-transactions
	running   // there while a broker runs
	leftover  // on its way in or out, or written to replace another one
)

var fixedNames = map[string]fileKind{
	checkpoint.LeaderEpochs:          epochCheckpoint,
	checkpoint.PartitionMetadataFile: partitionMetadata,
	checkpoint.MetaPropertyFile:      metaProperties,
	checkpoint.CleanShutdown:         cleanShutdown,
	quorumStateFile:                  quorumState,
	bootstrapFile:                    kraftSnapshot,
	cleanStateFile:                   cleanState,
	leftAloneFile:                    leftAlone,
	checkpoint.Losses:                lossList,
	checkpoint.TransactionsFile:      lossList,
	lockFile:                         running,
	socketFile:                       running,
}

// leftovers are the suffixes of files that are not part of the data, with what each means.
var leftovers = map[string]string{
	segment.SwapSuffix:    "output of compaction that was about to replace its originals; the next start finishes that or undoes it",
	segment.CleanedSuffix: "unfinished output of compaction; the next start removes it",
	segment.DeletedSuffix: "waits for its removal; the next start removes it",
	".tmp":                "a crash interrupted the writing of a file; the next writing replaces it",
	".part":               "an unfinished snapshot; the next start removes it",
	".received":           "a snapshot from the leader that was about to replace the metadata log; the next start finishes that",
}

// classify tells from a file's name what it is. base is the offset that the name begins with,
// or 0.
func classify(path string) (kind fileKind, base int64) {
	name := filepath.Base(path)
	if kind, ok := fixedNames[name]; ok {
		return kind, 0
	}
	if _, ok := leftovers[filepath.Ext(name)]; ok {
		return leftover, 0
	}
	if base, kind, suffix, ok := segment.ParseName(name); ok && suffix == "" {
		return map[segment.Kind]fileKind{
			segment.LogFile: logFile, segment.IndexFile: offsetIndexFile,
			segment.TimeIndexFile: timeIndexFile, segment.TxnIndexFile: txnIndexFile,
		}[kind], base
	}
	switch {
	case strings.HasSuffix(name, offsetsSuffix):
		return offsetCheckpoint, 0
	case strings.HasSuffix(name, snapshotSuffix):
		if base, ok := parseOffset(strings.TrimSuffix(name, snapshotSuffix)); ok {
			return producerSnapshot, base
		}
	case strings.HasSuffix(name, checkpointSuffix):
		if end, _, ok := parseSnapshotName(name); ok {
			return kraftSnapshot, end
		}
	}
	return otherFile, 0
}

// parseSnapshotName takes the name of a KRaft snapshot apart: the offset and the epoch where
// it ends.
func parseSnapshotName(name string) (end int64, epoch int32, ok bool) {
	offset, rest, ok := strings.Cut(strings.TrimSuffix(name, checkpointSuffix), "-")
	if !ok {
		return 0, 0, false
	}
	end, ok = parseOffset(offset)
	e, err := strconv.ParseUint(rest, 10, 31)
	return end, int32(e), ok && err == nil
}

func parseOffset(digits string) (int64, bool) {
	offset, err := strconv.ParseUint(digits, 10, 63) // which takes no sign
	return int64(offset), err == nil
}

// Suffixes of directories that are no live partition.
var asideDirs = map[string]string{
	"-delete": "deleted topic; the broker removes the directory",
	"-stray":  "belongs to no partition of its broker, which keeps it and never reads it",
	"-future": "copy of a partition on its way from another log directory",
}

// parseDir returns the partition in the name of a directory. aside explains a directory that
// is not the live one; ok is false for names of another kind.
func parseDir(path string) (p topic.Partition, aside string, ok bool) {
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
