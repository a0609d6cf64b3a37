package logdir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Evidence is what the log directories say of themselves before Open has written anything.
type Evidence struct {
	NodeID       int32 // the broker's, if nothing speaks against it
	ClusterID    string
	ClusterKnown bool       // a file or the configuration has the id; otherwise it is a new one
	Dirs         []FoundDir // those that are online
}

// A FoundDir is a log directory as it was found.
type FoundDir struct {
	Path       string
	HoldsLogs  bool // false: only a metadata.log.dir
	HasMeta    bool // meta.properties is there
	Meta       checkpoint.MetaProperties
	Partitions []FoundPartition // the live ones
}

func (f *FoundDir) metaPath() string { return filepath.Join(f.Path, checkpoint.MetaPropertyFile) }

// A FoundPartition is a partition's directory as it was found.
type FoundPartition struct {
	Partition topic.Partition
	Path      string
	TopicID   uuid.UUID // as its partition.metadata says; zero if that is missing or damaged
	IDErr     error     // why there is no id: it matches fs.ErrNotExist or checkpoint.ErrCorrupt

	// Changed: what Open found was what the last clean stop had left, and has changed since.
	Changed bool
	// Accepted: it was left alone at the last start that went on.
	Accepted bool

	remembered bool // the id is that of the last clean stop, not read from the file
}

// look reads what lies in every directory that is online, and changes nothing.
func (m *Manager) look() error {
	dirs := m.dirs.online()
	errs := make([]error, len(dirs))
	var looking sync.WaitGroup
	for i, d := range dirs {
		looking.Go(func() {
			if err := m.lookInto(d); err != nil {
				errs[i] = m.failedToOpen(d, err)
			}
		})
	}
	looking.Wait()
	return errors.Join(errs...)
}

func (m *Manager) lookInto(d *dir) error {
	found, err := m.list(d)
	if err != nil {
		return err
	}
	found.states = m.readCleanState(d)
	accepted, err := m.readLeftAlone(d)
	if err != nil {
		return err
	}
	var forgotten []*FoundPartition
	for i := range found.live {
		at := &found.live[i]
		_, at.Accepted = accepted[at.Partition]
		if s := found.states[at.Partition]; s != nil {
			at.TopicID, at.remembered = s.TopicID(), true
			if at.TopicID.IsZero() {
				at.IDErr = fs.ErrNotExist
			}
			continue
		}
		forgotten = append(forgotten, at)
	}
	m.readTopicIDs(forgotten)
	d.listing, d.found.Partitions = found, found.live
	return nil
}

// readTopicIDs reads the ids of many partitions, with as many threads as load their logs.
func (m *Manager) readTopicIDs(list []*FoundPartition) {
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(int(m.live.recoveryThreads.Load()), len(list)) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				m.readTopicID(list[i])
			}
		})
	}
	readers.Wait()
}

// readTopicID reads the id of a partition's topic. What is wrong with the disk, loading will find
// out as well.
func (m *Manager) readTopicID(at *FoundPartition) {
	meta, err := checkpoint.ReadPartitionMetadata(m.cfg.FS, filepath.Join(at.Path, checkpoint.PartitionMetadataFile))
	at.TopicID, at.IDErr, at.remembered = meta.TopicID, err, false
	if err != nil {
		at.TopicID = uuid.Zero
	}
}

// judge asks the configuration's judge, if there is one, whether the broker may go on.
func (m *Manager) judge(id identity) error {
	if m.cfg.Judge == nil {
		return nil
	}
	e := Evidence{NodeID: id.nodeID, ClusterID: id.clusterID, ClusterKnown: id.clusterKnown}
	for _, d := range m.dirs {
		if d.failure() == nil {
			e.Dirs = append(e.Dirs, d.found)
		}
	}
	return m.cfg.Judge(e)
}

// A Fate is what becomes of a partition's directory when it is loaded.
type Fate int

const (
	Keep       Fate = iota // it is loaded
	Heal                   // its damaged topic id is written anew, and it is loaded
	LeaveAlone             // it stays where it is, and is not loaded
	PutAside               // it is renamed to -stray
)

// A Decision is the fate of one partition, and why.
type Decision struct {
	Fate    Fate
	TopicID uuid.UUID // the right one, for Heal
	Reason  string
}
