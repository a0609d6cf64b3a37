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

// A foundMeta is what one directory says about itself.
type foundMeta struct {
	path string // of its meta.properties
	has  bool   // the file is there
	meta checkpoint.MetaProperties
}

// An identity is what all directories of a broker have in common.
type identity struct {
	clusterID string
	nodeID    int32
}

// identify finds the identity of the broker: what it was told (clusterID "" and a negative
// nodeID say nothing), or else what the files say. They must agree.
func identify(found []foundMeta, clusterID string, nodeID int32) (identity, error) {
	cluster := agreement[string]{key: "cluster.id", value: clusterID, known: clusterID != ""}
	node := agreement[int32]{key: "node.id", value: nodeID, known: nodeID >= 0}
	for _, f := range found {
		if !f.has {
			continue
		}
		var errs [2]error
		if f.meta.ClusterID != "" {
			errs[0] = cluster.add(f.path, f.meta.ClusterID)
		}
		if f.meta.NodeID != checkpoint.NoNode {
			errs[1] = node.add(f.path, f.meta.NodeID)
		}
		if err := errors.Join(errs[:]...); err != nil {
			return identity{}, err
		}
	}
	if !cluster.known {
		cluster.value = uuid.New().String()
	}
	if !node.known {
		node.value = defaultNodeID
	}
	return identity{cluster.value, node.value}, nil
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
func checkDirectoryIDs(found []foundMeta) error {
	first := make(map[uuid.UUID]string)
	for _, f := range found {
		id := f.meta.DirectoryID
		if id.IsZero() {
			continue
		}
		if id.IsReserved() {
			return fmt.Errorf("%w: %s: directory.id=%v is reserved", ErrWrongDirectory, f.path, id)
		}
		if other, ok := first[id]; ok {
			return fmt.Errorf("%w: %s: directory.id=%v is also that of %s; one directory is a copy of the other", ErrWrongDirectory, f.path, id, other)
		}
		first[id] = f.path
	}
	return nil
}

// settleMeta reads meta.properties of every directory that is online, checks them against
// each other and the configuration, and writes those that are missing or incomplete. A
// file that cannot be read puts its directory offline.
func (m *Manager) settleMeta() error {
	var online []*dir
	var found []foundMeta
	for _, d := range m.dirs {
		if d.failure() != nil {
			continue
		}
		meta, err := checkpoint.ReadMetaProperties(m.cfg.FS, d.metaProperties())
		has := !errors.Is(err, fs.ErrNotExist)
		if err != nil && has {
			if err := m.failedToOpen(d, err); err != nil {
				return err
			}
			continue
		}
		online = append(online, d)
		found = append(found, foundMeta{d.metaProperties(), has, meta})
	}
	id, err := identify(found, m.cfg.ClusterID, m.cfg.NodeID)
	if err != nil {
		return err
	}
	if err := checkDirectoryIDs(found); err != nil {
		return err
	}
	m.clusterID, m.nodeID = id.clusterID, id.nodeID
	for i, d := range online {
		if err := m.settleDir(d, found[i], id); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) settleDir(d *dir, found foundMeta, id identity) error {
	want := checkpoint.MetaProperties{ClusterID: id.clusterID, NodeID: id.nodeID, DirectoryID: found.meta.DirectoryID}
	if want.DirectoryID.IsZero() {
		want.DirectoryID = uuid.New()
	}
	d.id = want.DirectoryID
	if found.has && found.meta == want {
		return nil
	}
	if err := checkpoint.WriteMetaProperties(m.cfg.FS, found.path, want, m.cfg.Now()); err != nil {
		return m.failedToOpen(d, err)
	}
	return nil
}
