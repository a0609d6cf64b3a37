package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A snapshot is a checkpoint and its place among raft's entries.
type snapshot struct {
	id    snapshotID
	index uint64
	size  int64
	kraft kraftState // who votes behind it

	// received: it takes the place of the log, whatever is there.
	received bool
}

// place is what the file says of itself.
func (s snapshot) place() place { return place{s.id.endOffset, s.index, s.kraft.votersIndex} }

// snapshotStore is the checkpoints of the metadata log as raft's snapshot store. There is
// always one: before the first snapshot it is the empty state at index 0, which tells raft who
// votes. Methods may be called concurrently.
type snapshotStore struct {
	fs      vfs.FS
	dir     string
	static  raft.Configuration // the voters that the configuration file names
	log     *metadataLog
	fail    *failure
	current func() snapshot // the newest one
	taken   func(snapshot)  // makes one the newest
}

func (s *snapshotStore) path(id snapshotID) string {
	return filepath.Join(s.dir, id.String()+checkpoint.SnapshotSuffix)
}

// metaOf describes a snapshot to raft.
func (s *snapshotStore) metaOf(snap snapshot) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: snap.id.String(), Index: snap.index, Term: uint64(snap.id.epoch), Size: snap.size,
		Configuration: snap.kraft.configuration(s.static), ConfigurationIndex: max(1, snap.kraft.votersIndex),
	}
}

// List implements raft.SnapshotStore.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	return []*raft.SnapshotMeta{s.metaOf(s.current())}, nil
}

// Open implements raft.SnapshotStore. What is read says where in the log it belongs, also if the file,
// as one of Kafka's, does not.
func (s *snapshotStore) Open(name string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	snap := s.current()
	if name != snap.id.String() || snap.id == bootstrapID {
		return nil, nil, fmt.Errorf("snapshot %s: %w", name, fs.ErrNotExist)
	}
	file, err := s.fs.OpenFile(s.path(snap.id), os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	meta := s.metaOf(snap)
	r, size, err := placed(file, snap)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	meta.Size = size
	return meta, snapshotReader{r, file}, nil
}

// A snapshotReader reads a checkpoint.
type snapshotReader struct {
	io.Reader
	io.Closer
}

// placed returns the bytes of a checkpoint with its place in the header.
func placed(file vfs.File, snap snapshot) (r io.Reader, size int64, err error) {
	if size, err = file.Size(); err != nil {
		return nil, 0, err
	}
	old, err := firstBatch(file, size)
	if err != nil {
		return nil, 0, err
	}
	var c checkpointData
	if _, err := c.add(old); err != nil {
		return nil, 0, err
	}
	if c.place == snap.place() {
		return io.NewSectionReader(file, 0, size), size, nil
	}
	c.place = snap.place()
	c.kraftVersion, c.voters = snap.kraft.version, snap.kraft.voters
	header, err := controlBatch(old.LeaderEpoch(), old.MaxTimestamp(), c.header()...)
	if err != nil {
		return nil, 0, err
	}
	if record.Batch(header).NextOffset() != old.NextOffset() {
		return nil, 0, errors.New("the header of the snapshot says nothing of the voters, and they are in the log")
	}
	rest := size - int64(old.Size())
	return io.MultiReader(bytes.NewReader(header), io.NewSectionReader(file, int64(old.Size()), rest)), int64(len(header)) + rest, nil
}

// firstBatch reads the first batch of a file.
func firstBatch(file vfs.File, size int64) (first record.Batch, err error) {
	stop := errors.New("one is enough")
	bad, err := walk(file, size, func(b record.Batch) error {
		first = bytes.Clone(b)
		return errors.Join(b.Verify(), stop)
	})
	if err == nil && !errors.Is(bad, stop) {
		err = bad
	}
	return first, err
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

// received returns the snapshot that was about to replace the log when the node stopped, or nil.
func (s *snapshotStore) received() (*snapshotID, error) {
	list, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), checkpoint.ReceivedSuffix)
		if id, isCheckpoint := parseCheckpoint(name); ok && isCheckpoint {
			return &id, err
		}
	}
	return nil, err
}

// nameReceived gives a snapshot that has replaced the log its name.
func (s *snapshotStore) nameReceived() error {
	snap := s.current()
	if !snap.received {
		return nil
	}
	snap.received = false
	if err := s.rename(s.path(snap.id)+checkpoint.ReceivedSuffix, s.path(snap.id)); err != nil {
		return err
	}
	s.taken(snap)
	return nil
}

// removeParts removes what a crash left of snapshots that were being written.
func (s *snapshotStore) removeParts() error {
	list, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), checkpoint.PartSuffix) {
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
	newest := s.current().id
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
