package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// Bounds of a checkpoint's size and of the data batches in it.
const (
	checkpointSizeMax    = 4 << 30
	checkpointBatchBytes = 512 << 10
)

// snapshotStore is the checkpoints of the metadata log as raft's snapshot store. There is
// always one: before the first snapshot it is the empty state at index 0, which tells raft who
// votes. Methods may be called concurrently.
type snapshotStore struct {
	fs      vfs.FS
	dir     string
	voters  raft.Configuration
	log     *metadataLog
	current func() (snapshotID, uint64)                   // newest snapshot and its raft index
	taken   func(id snapshotID, index uint64, size int64) // makes one the newest
}

func (s *snapshotStore) path(id snapshotID) string {
	return filepath.Join(s.dir, id.String()+checkpointSuffix)
}

// metaOf describes a snapshot to raft.
func (s *snapshotStore) metaOf(id snapshotID, index uint64) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: id.String(), Index: index, Term: uint64(id.epoch),
		Configuration: s.voters, ConfigurationIndex: 1,
	}
}

// List implements raft.SnapshotStore.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	return []*raft.SnapshotMeta{s.metaOf(s.current())}, nil
}

// Open implements raft.SnapshotStore.
func (s *snapshotStore) Open(name string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	id, index := s.current()
	if name != id.String() {
		return nil, nil, fmt.Errorf("snapshot %s: %w", name, fs.ErrNotExist)
	}
	b, err := vfs.ReadFile(s.fs, s.path(id), checkpointSizeMax)
	if err != nil {
		return nil, nil, err
	}
	meta := s.metaOf(id, index)
	meta.Size = int64(len(b))
	return meta, io.NopCloser(bytes.NewReader(b)), nil
}

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, _ raft.Configuration, _ uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	id, err := s.log.offsetAfter(index)
	if err != nil {
		return nil, err
	}
	if uint64(id.epoch) != term {
		return nil, fmt.Errorf("snapshot at index %d has term %d, its batch epoch %d", index, term, id.epoch)
	}
	file, err := s.fs.OpenFile(s.path(id)+partSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o400)
	if err != nil {
		return nil, err
	}
	return &snapshotSink{store: s, id: id, index: index, file: file}, nil
}

// A snapshotSink writes one checkpoint. Close makes it durable and then the newest one.
type snapshotSink struct {
	store *snapshotStore
	id    snapshotID
	index uint64
	file  vfs.File // nil after Close or Cancel
	size  int64
}

// ID implements raft.SnapshotSink.
func (s *snapshotSink) ID() string { return s.id.String() }

// Write implements io.Writer.
func (s *snapshotSink) Write(b []byte) (int, error) {
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	return n, err
}

// Close implements raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Sync(), s.file.Close())
	s.file = nil
	if err != nil {
		return err
	}
	path := s.store.path(s.id)
	if err := s.store.fs.Rename(path+partSuffix, path); err != nil {
		return err
	}
	if err := s.store.fs.SyncDir(s.store.dir); err != nil {
		return err
	}
	s.store.taken(s.id, s.index, s.size)
	return nil
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return errors.Join(err, s.store.fs.Remove(s.store.path(s.id)+partSuffix))
}

// checkpoints lists the snapshots in the directory, newest first, without the bootstrap
// checkpoint.
func (s *snapshotStore) checkpoints() ([]snapshotID, error) {
	list, err := s.fs.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []snapshotID
	for _, e := range list {
		if id, ok := parseCheckpoint(e.Name()); ok && id != bootstrapID {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b snapshotID) int { return int(max(-1, min(1, b.endOffset-a.endOffset))) })
	return ids, nil
}

// removeParts removes what a crash left of snapshots that were being written.
func (s *snapshotStore) removeParts() error {
	list, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), partSuffix) {
			if err := s.fs.Remove(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes the checkpoints that nobody can use any more: those before the start of the
// log, and the bootstrap one with the first of them. The newest one stays.
func (s *snapshotStore) prune() error {
	start := s.log.start()
	newest, _ := s.current()
	ids, err := s.checkpoints()
	if err != nil {
		return err
	}
	for _, id := range append(ids, bootstrapID) {
		if id == newest || id.endOffset >= start {
			continue
		}
		if err := s.fs.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// A checkpointData is the content of a snapshot.
type checkpointData struct {
	timestamp    int64                        // of the last record in it, in ms
	kraftVersion *metadata.KRaftVersionRecord // nil in a quorum of version 0
	voters       *metadata.VotersRecord
	records      []metadata.Record
}

// writeCheckpoint writes a checkpoint as Kafka does: header, data batches, footer. Offsets
// count from 0.
func writeCheckpoint(w io.Writer, c checkpointData, records iter.Seq[metadata.Record], level int16, epoch int32, now int64) error {
	cw := &checkpointWriter{w: w}
	header := []controlRecord{{controlSnapshotHeader, &metadata.SnapshotHeaderRecord{LastContainedLogTimestamp: c.timestamp}}}
	if c.kraftVersion != nil {
		header = append(header, controlRecord{controlKRaftVersion, c.kraftVersion})
	}
	if c.voters != nil {
		header = append(header, controlRecord{controlKRaftVoters, c.voters})
	}
	cw.write(controlBatch(epoch, now, header...))
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: epoch})
	for r := range records {
		value := metadata.Append(nil, r, level)
		if err := b.Append(record.Record{Offset: int64(b.Count()), Timestamp: now, Value: value}); err != nil {
			return err
		}
		if b.Size() >= checkpointBatchBytes {
			cw.write(b.Build(), nil)
			b.Reset(record.BuilderOptions{LeaderEpoch: epoch})
		}
	}
	cw.write(b.Build(), nil)
	cw.write(controlBatch(epoch, now, controlRecord{controlSnapshotFooter, &metadata.SnapshotFooterRecord{}}))
	return cw.err
}

// A checkpointWriter gives batches their offsets. After an error it does nothing.
type checkpointWriter struct {
	w      io.Writer
	offset int64
	err    error
}

func (c *checkpointWriter) write(b []byte, err error) {
	if c.err == nil {
		c.err = err
	}
	if c.err != nil || b == nil {
		return
	}
	batch := record.Batch(b)
	batch.SetBaseOffset(c.offset)
	c.offset = batch.NextOffset()
	_, c.err = c.w.Write(b)
}

// readCheckpoint reads a checkpoint. One without its footer was not written to the end.
func readCheckpoint(b []byte) (checkpointData, error) {
	var c checkpointData
	first, done := true, false
	for batch, err := range record.Batches(b) {
		if err == nil {
			err = batch.Verify()
		}
		switch {
		case err != nil:
			return c, err
		case done:
			return c, errors.New("a batch follows the footer")
		case first != batchHasHeader(batch):
			return c, errors.New("the header is not the first batch")
		}
		first = false
		if done, err = c.add(batch); err != nil {
			return c, err
		}
	}
	if !done {
		return c, errors.New("the footer is missing")
	}
	return c, nil
}

func batchHasHeader(b record.Batch) bool {
	if !b.IsControl() {
		return false
	}
	records, err := decodeControl(b)
	return err == nil && len(records) > 0 && records[0].kind == controlSnapshotHeader
}

// add takes one batch; done reports the footer.
func (c *checkpointData) add(b record.Batch) (done bool, err error) {
	if !b.IsControl() {
		records, err := decodeData(b)
		c.records = append(c.records, records...)
		return false, err
	}
	records, err := decodeControl(b)
	for _, r := range records {
		switch v := r.value.(type) {
		case *metadata.SnapshotHeaderRecord:
			c.timestamp = v.LastContainedLogTimestamp
		case *metadata.KRaftVersionRecord:
			c.kraftVersion = v
		case *metadata.VotersRecord:
			c.voters = v
		case *metadata.SnapshotFooterRecord:
			done = true
		}
	}
	return done, err
}
