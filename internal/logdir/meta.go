package logdir

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// defaultNodeID is that of a broker whom nobody gave one.
const defaultNodeID = 1

// An identity is what all directories of a broker have in common.
type identity struct {
	clusterID    string // "" while nobody knows it
	nodeID       int32
	clusterKnown bool // nobody had to make up the id
}

// identify finds the identity of the broker: what it was told (clusterID "" and a negative
// nodeID say nothing), or else what the files say. They must agree.
func identify(found []FoundDir, clusterID string, nodeID int32) (identity, error) {
	cluster := agreement[string]{key: "cluster.id", value: clusterID, known: clusterID != ""}
	node := agreement[int32]{key: "node.id", value: nodeID, known: nodeID >= 0}
	for _, f := range found {
		if !f.HasMeta {
			continue
		}
		var errs [2]error
		if f.Meta.ClusterID != "" {
			errs[0] = cluster.add(f.metaPath(), f.Meta.ClusterID)
		}
		if f.Meta.NodeID != checkpoint.NoNode {
			errs[1] = node.add(f.metaPath(), f.Meta.NodeID)
		}
		if err := errors.Join(errs[:]...); err != nil {
			return identity{}, err
		}
	}
	if !node.known {
		node.value = defaultNodeID
	}
	return identity{cluster.value, node.value, cluster.known}, nil
}

// An agreement is one value that several sources must have in common.
type agreement[T comparable] struct {
	key   string
	value T
	known bool
	path  string // the file that said it first, or "" for the configuration
}

func (a *agreement[T]) add(path string, value T) error {
	switch {
	case !a.known:
		a.value, a.known, a.path = value, true, path
	case a.value == value:
	case a.path == "":
		return fmt.Errorf("%w: %s: %s=%v, but this broker's is %v", ErrWrongDirectory, path, a.key, value, a.value)
	default:
		return fmt.Errorf("%w: %s: %s=%v, but %s has %v", ErrWrongDirectory, path, a.key, value, a.path, a.value)
	}
	return nil
}

// checkDirectoryIDs refuses ids that are reserved or stand in two files.
func checkDirectoryIDs(found []FoundDir) error {
	first := make(map[uuid.UUID]string)
	for _, f := range found {
		id := f.Meta.DirectoryID
		if id.IsZero() {
			continue
		}
		if id.IsReserved() {
			return fmt.Errorf("%w: %s: directory.id=%v is reserved", ErrWrongDirectory, f.metaPath(), id)
		}
		if other, ok := first[id]; ok {
			return fmt.Errorf("%w: %s: directory.id=%v is also that of %s; one directory is a copy of the other", ErrWrongDirectory, f.metaPath(), id, other)
		}
		first[id] = f.metaPath()
	}
	return nil
}

// readMeta reads meta.properties of every directory that is online, and checks them against each
// other and the configuration. A file that cannot be read puts its directory offline.
func (m *Manager) readMeta() (identity, error) {
	var found []FoundDir
	for _, d := range m.dirs {
		if d.failure() != nil {
			continue
		}
		meta, err := checkpoint.ReadMetaProperties(m.cfg.FS, d.metaProperties())
		has := !errors.Is(err, fs.ErrNotExist)
		if err != nil && has {
			if err := m.failedToOpen(d, err); err != nil {
				return identity{}, err
			}
			continue
		}
		d.found.Path, d.found.HoldsLogs, d.found.HasMeta, d.found.Meta = d.path, d.holdsLogs, has, meta
		found = append(found, d.found)
	}
	id, err := identify(found, m.cfg.ClusterID, m.cfg.NodeID)
	if err == nil {
		err = checkDirectoryIDs(found)
	}
	if err == nil && !id.clusterKnown {
		id.clusterID, err = m.cfg.NewClusterID()
	}
	return id, err
}

// writeMeta writes the files that are missing or incomplete. What a broker with ZooKeeper left waits
// for SettleMeta.
func (m *Manager) writeMeta(id identity) error {
	m.clusterID, m.nodeID = id.clusterID, id.nodeID
	for _, d := range m.dirs {
		if d.failure() != nil {
			continue
		}
		d.meta = d.found.Meta
		d.meta.ClusterID, d.meta.NodeID = id.clusterID, id.nodeID
		if d.meta.DirectoryID.IsZero() {
			d.meta.DirectoryID = uuid.From(m.cfg.Random)
		}
		d.id, d.metaDue = d.meta.DirectoryID, !d.found.HasMeta || d.found.Meta != d.meta
		wait := d.found.beforeKRaft()
		d.found.Partitions = nil // Load has the list
		if wait {
			continue
		}
		if err := m.writeDirMeta(d); err != nil {
			return err
		}
	}
	return nil
}

// beforeKRaft reports whether a directory was never one of a KRaft broker.
func (f *FoundDir) beforeKRaft() bool {
	return f.HasMeta && f.Meta.Version == 0 || !f.HasMeta && len(f.Partitions) > 0
}

// SettleMeta makes the directories that a broker with ZooKeeper left KRaft's. It is called when the
// metadata log has begun, at the latest by Load: a directory of KRaft's with partitions and without
// a metadata log is one that has lost it.
func (m *Manager) SettleMeta() error {
	for _, d := range m.dirs {
		if d.failure() != nil {
			continue
		}
		if err := m.writeDirMeta(d); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) writeDirMeta(d *dir) error {
	if !d.metaDue {
		return nil
	}
	d.metaDue = false
	if err := checkpoint.WriteMetaProperties(m.cfg.FS, d.metaProperties(), d.meta, m.cfg.Now()); err != nil {
		return m.failedToOpen(d, err)
	}
	return nil
}
