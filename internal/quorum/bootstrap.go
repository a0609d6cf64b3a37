package quorum

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// metadataTopicID is the id of __cluster_metadata in every cluster.
var metadataTopicID = uuid.Metadata

// firstRecords are those of a cluster that no storage tool has formatted.
func firstRecords() []metadata.Record {
	return []metadata.Record{&metadata.FeatureLevelRecord{Name: metadata.MetadataVersion, FeatureLevel: metadata.LevelCurrent}}
}

// bootstrap returns the first records of a cluster, as one transaction: those that Kafka's
// storage tool left in a checkpoint, or else ours.
func (q *Quorum) bootstrap() ([]metadata.Record, error) {
	records, err := q.formatted()
	if err != nil {
		return nil, err
	}
	if records == nil {
		records = firstRecords()
	}
	name := "Bootstrap records"
	return slices.Concat(
		[]metadata.Record{&metadata.BeginTransactionRecord{Name: &name}}, records, []metadata.Record{metadata.NewEndTransactionRecord()},
	), nil
}

// formatted returns the records that a storage tool left, nil when there are none.
func (q *Quorum) formatted() ([]metadata.Record, error) {
	for _, path := range []string{q.snapshots.path(bootstrapID), filepath.Join(q.opts.Dir, checkpoint.BootstrapSnapshot)} {
		c, _, err := q.readCheckpoint(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(c.records) > 0 {
			q.log.noteCheckpoint(c)
			return c.records, nil
		}
	}
	return nil, nil
}

// writeCompanions writes the files beside a log that gregor itself can do without and Kafka
// would make again or miss: partition.metadata, the bootstrap checkpoint of a new log, and
// leader-epoch-checkpoint. An error is logged: the log is sound.
func (q *Quorum) writeCompanions() {
	warn := func(path string, err error) {
		if err != nil {
			q.opts.Logger.Warn("cannot write a file beside the metadata log", "file", path, "err", err)
		}
	}
	if path := filepath.Join(q.dir, checkpoint.PartitionMetadataFile); !q.exists(path) {
		warn(path, checkpoint.WritePartitionMetadata(q.opts.FS, path, metadataTopicID))
	}
	if path := q.snapshots.path(bootstrapID); q.isNew && !q.exists(path) && !q.exists(filepath.Join(q.opts.Dir, checkpoint.BootstrapSnapshot)) {
		warn(path, q.writeBootstrap(path))
	}
	path := filepath.Join(q.dir, checkpoint.LeaderEpochs)
	warn(path, q.writeEpochs(path))
}

func (q *Quorum) exists(path string) bool {
	_, err := q.opts.FS.Stat(path)
	return err == nil
}

func (q *Quorum) writeBootstrap(path string) error {
	var b bytes.Buffer
	now := q.opts.Now().UnixMilli()
	if err := writeCheckpoint(&b, checkpointData{timestamp: now}, slices.Values(firstRecords()), metadata.LevelCurrent, 0, now); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(q.opts.FS, path, b.Bytes())
}

// writeEpochs notes where the epochs of the log begin, the first one not before the log.
func (q *Quorum) writeEpochs(path string) error {
	entries, err := checkpoint.ReadEpochs(q.opts.FS, path)
	if !checkpoint.Whole(err) {
		entries = nil
	}
	for _, start := range q.log.epochStarts() {
		entries = slices.DeleteFunc(entries, func(e checkpoint.EpochEntry) bool { return e.Epoch >= start.epoch || e.StartOffset >= start.endOffset })
		entries = append(entries, checkpoint.EpochEntry{Epoch: start.epoch, StartOffset: start.endOffset})
	}
	start := q.log.start()
	for len(entries) > 1 && entries[1].StartOffset <= start {
		entries = entries[1:]
	}
	if len(entries) > 0 {
		entries[0].StartOffset = max(entries[0].StartOffset, start)
	}
	return checkpoint.WriteEpochs(q.opts.FS, path, entries)
}

// readCheckpoint reads a checkpoint file.
func (q *Quorum) readCheckpoint(path string) (c checkpointData, size int64, err error) {
	b, err := vfs.ReadFile(q.opts.FS, path, checkpointSizeMax)
	if err != nil {
		return c, 0, err
	}
	if c, err = readCheckpoint(b); err != nil {
		return c, 0, &CorruptError{Path: path, Position: -1, Offset: -1, Err: err}
	}
	return c, int64(len(b)), nil
}
