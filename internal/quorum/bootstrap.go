package quorum

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// metadataTopicID is the id of __cluster_metadata in every cluster.
var metadataTopicID = uuid.Metadata

// bootstrap returns the first records of a cluster, as one transaction: those that Kafka's
// storage tool left in a checkpoint, or else ours, for which it writes that checkpoint.
func (q *Quorum) bootstrap() ([]metadata.Record, error) {
	records, err := q.formatted()
	if err != nil {
		return nil, err
	}
	if records == nil {
		records = []metadata.Record{&metadata.FeatureLevelRecord{Name: metadata.MetadataVersion, FeatureLevel: metadata.LevelCurrent}}
		if err := q.writeBootstrap(records); err != nil {
			return nil, err
		}
	}
	name := "Bootstrap records"
	return slices.Concat(
		[]metadata.Record{&metadata.BeginTransactionRecord{Name: &name}}, records, []metadata.Record{metadata.NewEndTransactionRecord()},
	), nil
}

// formatted returns the records that a storage tool left, nil when there are none.
func (q *Quorum) formatted() ([]metadata.Record, error) {
	for _, path := range []string{q.snapshots.path(bootstrapID), filepath.Join(q.opts.Dir, bootstrapFile)} {
		c, _, err := q.readCheckpoint(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(c.records) > 0 {
			q.machine.noteCheckpoint(c)
			return c.records, nil
		}
	}
	return nil, nil
}

func (q *Quorum) writeBootstrap(records []metadata.Record) error {
	var b bytes.Buffer
	now := q.opts.Now().UnixMilli()
	if err := writeCheckpoint(&b, checkpointData{timestamp: now}, slices.Values(records), metadata.LevelCurrent, 0, now); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(q.opts.FS, q.snapshots.path(bootstrapID), b.Bytes())
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
