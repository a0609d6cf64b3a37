package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// A snapshotSink writes one checkpoint. Close makes it durable and then the newest one. One that this
// node takes is placed by its log. One that the leader sends says itself where it belongs, which
// has to be what raft says; it takes the place of the log.
type snapshotSink struct {
	store  *snapshotStore
	index  uint64 // raft's, of the last entry in it
	term   uint64
	voters raft.Configuration
	path   string
	file   vfs.File // nil after Close or Cancel
	snap   snapshot // id is bootstrapID until it is known
}

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, voters raft.Configuration, _ uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("%v-raft%s%s", snapshotID{int64(index), int32(term)}, checkpoint.SnapshotSuffix, checkpoint.PartSuffix))
	file, err := s.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o400)
	if err != nil {
		return nil, err
	}
	return &snapshotSink{store: s, index: index, term: term, voters: voters, path: path, file: file}, nil
}

// take places the snapshot as one that this node takes, and returns what it is to say besides the image.
func (s *snapshotSink) take() (c checkpointData, err error) {
	if s.snap, c.timestamp, err = s.store.log.placeOf(s.index); err != nil {
		return c, err
	}
	if uint64(s.snap.id.epoch) != s.term {
		return c, fmt.Errorf("snapshot at index %d has term %d, its batch epoch %d", s.index, s.term, s.snap.id.epoch)
	}
	c.epoch = s.snap.id.epoch // of a barrier too, which the image does not see
	c.kraftVersion, c.voters, c.place = s.snap.kraft.version, s.snap.kraft.voters, s.snap.place()
	return c, nil
}

// ID implements raft.SnapshotSink.
func (s *snapshotSink) ID() string { return s.snap.id.String() }

// Write implements io.Writer.
func (s *snapshotSink) Write(b []byte) (int, error) {
	n, err := s.file.WriteAt(b, s.snap.size)
	s.snap.size += int64(n)
	return n, err
}

// Close implements raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Sync()
	if err == nil && s.snap.id == bootstrapID {
		err = s.receive()
	}
	err = errors.Join(err, s.file.Close())
	s.file = nil
	if err != nil {
		return errors.Join(err, s.store.fs.Remove(s.path))
	}
	if s.snap.received {
		s.snap.received = false
		err = s.store.install(s.snap, s.path)
	} else {
		err = s.store.rename(s.path, s.store.path(s.snap.id))
	}
	if err == nil {
		s.store.taken(s.snap)
	}
	return err
}

// receive reads what was sent, and refuses what is not the snapshot that raft spoke of, or not newer
// than what is here.
func (s *snapshotSink) receive() error {
	b := make([]byte, s.snap.size)
	if _, err := s.file.ReadAt(b, 0); err != nil {
		return err
	}
	c, err := readCheckpoint(b)
	if err != nil {
		return fmt.Errorf("the leader's snapshot: %w", err)
	}
	snap := c.snapshot(snapshotID{c.place.endOffset, int32(s.term)})
	snap.size, snap.received = s.snap.size, true
	switch {
	case snap.index != s.index || uint64(c.epoch) != s.term || int64(snap.index) > snap.id.endOffset:
		return fmt.Errorf("the leader's snapshot is of index %d and term %d and ends at offset %d, raft says index %d and term %d", snap.index, c.epoch, snap.id.endOffset, s.index, s.term)
	case !sameVoters(snap.kraft.configuration(s.store.static), s.voters):
		return fmt.Errorf("the leader's snapshot has the voters %v, raft says %v", snap.kraft.configuration(s.store.static).Servers, s.voters.Servers)
	case s.store.log.has(s.index, s.term) || s.store.current().index >= s.index:
		return fmt.Errorf("the leader's snapshot is of index %d, which is here", s.index)
	}
	s.snap = snap
	return nil
}

// snapshot is what a checkpoint says of itself.
func (c *checkpointData) snapshot(id snapshotID) snapshot {
	return snapshot{id: id, index: c.place.index, kraft: kraftState{
		index: c.place.index, version: c.kraftVersion, voters: c.voters, votersIndex: c.place.votersIndex, votersOffset: -1,
	}}
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return errors.Join(err, s.store.fs.Remove(s.path))
}

// install makes a received snapshot take the place of the log. From the first new name on, a start
// completes what a crash interrupts; before it, the log is what it was.
func (s *snapshotStore) install(snap snapshot, part string) error {
	received := s.path(snap.id) + checkpoint.ReceivedSuffix
	err := s.rename(part, received)
	if err == nil {
		err = s.log.restart(snap)
	}
	if err == nil {
		err = s.rename(received, s.path(snap.id))
	}
	if err != nil {
		s.fail.set(err)
	}
	return err
}

func (s *snapshotStore) rename(from, to string) error {
	if err := s.fs.Rename(from, to); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}
