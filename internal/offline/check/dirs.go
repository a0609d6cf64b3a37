package check

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// readAround reads what is around the partitions and tells them. The metadata log is in one of the
// directories of a broker and speaks for the others as well.
func (c *checkRun) readAround(ctx context.Context, all []*dirCheck) (err error) {
	topicsOf := map[string]topics{} // by cluster
	for _, d := range all {
		dir := d.path
		if !d.logDir {
			dir = filepath.Dir(d.path)
		}
		if d.around, err = c.readLogDir(ctx, dir, d); err != nil {
			return err
		}
		if t := d.around.topics; t.ids != nil {
			topicsOf[d.around.meta.ClusterID] = t
		}
	}
	for _, d := range all {
		if d.around.topics.ids == nil && d.around.meta.ClusterID != "" {
			d.around.topics = topicsOf[d.around.meta.ClusterID]
		}
		d.around.tell(d.partitions)
	}
	c.checkNodes(all)
	return nil
}

// A node is one broker.
type node struct {
	cluster string
	id      int32
}

// A nodeDirs is what is known of one broker from its log directories.
type nodeDirs struct {
	node
	dirs       []*dirCheck
	partitions map[topic.Partition]string // where each lies
}

// checkNodes compares the log directories of each broker with each other, and with what the
// metadata log says about the broker.
func (c *checkRun) checkNodes(all []*dirCheck) {
	var nodes []*nodeDirs
	byNode := map[node]*nodeDirs{}
	for _, d := range all {
		meta := d.around.meta
		if !d.logDir || meta.ClusterID == "" {
			continue
		}
		id := node{meta.ClusterID, meta.NodeID}
		n := byNode[id]
		if n == nil {
			n = &nodeDirs{node: id, partitions: map[topic.Partition]string{}}
			byNode[id] = n
			nodes = append(nodes, n)
		}
		n.dirs = append(n.dirs, d)
	}
	for _, n := range nodes {
		n.checkIDs()
		c.checkTwice(n)
		for _, d := range n.dirs {
			d.around.reportMoved(d.collector, n.partitions)
		}
		n.checkRegistration()
		n.checkPlaces()
	}
	checkClusters(all)
}

// checkIDs reports two directories of the same id.
func (n *nodeDirs) checkIDs() {
	paths := map[uuid.UUID]string{}
	for _, d := range n.dirs {
		id := d.around.meta.DirectoryID
		if id.IsZero() {
			continue
		}
		if other, ok := paths[id]; ok && other != d.path {
			d.damageMeta("directory.id %v is that of %s as well: no broker starts with both", id, other)
		}
		paths[id] = d.path
	}
}

func (d *dirCheck) damageMeta(format string, args ...any) {
	d.damage(filepath.Join(d.path, checkpoint.MetaPropertyFile), -1, -1, format, args...)
}

// checkTwice notes where the partitions are and reports those that are in two directories.
func (c *checkRun) checkTwice(n *nodeDirs) {
	for _, d := range n.dirs {
		for _, p := range d.partitions {
			name, aside, ok := files.ParseDir(p.dir)
			if aside != "" || !ok {
				continue
			}
			other, twice := n.partitions[name]
			n.partitions[name] = p.dir
			switch {
			case !twice || other == p.dir:
			case c.exists(filepath.Join(p.dir, checkpoint.CopyMarker)) || c.exists(filepath.Join(other, checkpoint.CopyMarker)):
				d.note(p.dir, -1, -1, "in %s as well: a move between log directories was interrupted, which gregor goes on with and Kafka does not start with", other)
			default:
				d.damage(p.dir, -1, -1, "in %s as well: no broker starts with both", other)
			}
		}
	}
}

// image is what the metadata log says, nil if none of the directories has it.
func (n *nodeDirs) image() *metadata.Image {
	for _, d := range n.dirs {
		if d.around.topics.image != nil {
			return d.around.topics.image
		}
	}
	return nil
}

// checkRegistration holds node.id and directory.id against the registrations of brokers. A
// directory that was never in use is in none.
func (n *nodeDirs) checkRegistration() {
	image := n.image()
	for _, d := range n.dirs {
		meta := d.around.meta
		if image == nil {
			if !meta.DirectoryID.IsZero() && len(d.partitions) > 0 {
				d.note(d.path, -1, -1, "no metadata log here or in the directories named beside it: name all that the broker has; if this is all, it is lost")
			}
			continue
		}
		if owner := ownerOf(image, meta.DirectoryID); owner != nil && owner.ID != n.id {
			d.damageMeta("node.id is %d, but the metadata log has directory.id %v as one of node %d", n.id, meta.DirectoryID, owner.ID)
			continue
		}
		b := image.Broker(n.id)
		switch {
		case len(d.around.offsets) == 0 || meta.DirectoryID.IsZero() && (b == nil || len(b.LogDirs) == 0):
		case b == nil:
			d.note(d.path, -1, -1, "the metadata log knows no broker of node.id %d", n.id)
		case len(b.LogDirs) > 0 && !slices.Contains(b.LogDirs, meta.DirectoryID):
			d.add(Finding{filepath.Join(d.path, checkpoint.MetaPropertyFile), -1, -1, d.severity(), "directory.id " + meta.DirectoryID.String() +
				" is none of those that node " + itoa(int64(n.id)) + " has told the metadata log"})
		}
	}
}

// severity is Damage after a clean stop, when all that a broker tells others was told.
func (d *dirCheck) severity() Severity {
	if d.around.clean {
		return Damage
	}
	return Note
}

func ownerOf(image *metadata.Image, dir uuid.UUID) *metadata.Broker {
	if dir.IsZero() {
		return nil
	}
	for _, b := range image.Brokers() {
		if slices.Contains(b.LogDirs, dir) {
			return b
		}
	}
	return nil
}

// checkPlaces reports partitions that the metadata log has in one of the directories, and that are
// in none. A broker that was killed may not have come to make the directory of a new one. Those in
// another directory are on their way to the metadata, perhaps.
func (n *nodeDirs) checkPlaces() {
	image := n.image()
	if image == nil {
		return
	}
	type places struct{ is, should *dirCheck }
	misplaced := map[places][]string{}
	for _, name := range image.TopicNames() {
		for i, mp := range image.Topic(name).Partitions {
			p := topic.Partition{Topic: name, Partition: int32(i)}
			d := n.home(mp)
			path, ok := n.partitions[p]
			switch {
			case d == nil:
			case !ok:
				d.reportMissing(p, mp)
			case filepath.Dir(path) != d.path:
				is := slices.IndexFunc(n.dirs, func(d *dirCheck) bool { return d.path == filepath.Dir(path) })
				misplaced[places{n.dirs[is], d}] = append(misplaced[places{n.dirs[is], d}], p.String())
			}
		}
	}
	for where, list := range misplaced {
		where.is.note(where.is.path, -1, -1, "%d partitions that the metadata log has in %s: %s", len(list), where.should.path, strings.Join(list[:min(len(list), 5)], ", "))
	}
}

// home returns the directory that a partition of the broker should be in, nil if that is none of
// those at hand.
func (n *nodeDirs) home(mp *metadata.Partition) *dirCheck {
	if mp == nil {
		return nil
	}
	id, ok := mp.Directory(n.id)
	if !ok {
		return nil
	}
	for _, d := range n.dirs {
		if d.around.meta.DirectoryID == id {
			return d
		}
	}
	if len(n.dirs) == 1 && (id.IsZero() || id == uuid.Unassigned) {
		return n.dirs[0]
	}
	return nil
}

func (d *dirCheck) reportMissing(p topic.Partition, mp *metadata.Partition) {
	path := filepath.Join(d.path, p.String())
	listed := false
	for _, name := range []string{checkpoint.RecoveryPoints, checkpoint.HighWatermarks} {
		if _, ok := d.around.offsets[name][p]; ok {
			listed = true
		}
	}
	if listed || d.around.clean && mp.PartitionEpoch > 0 {
		d.damage(path, -1, -1, "missing; the metadata log has the partition here")
	} else {
		d.note(path, -1, -1, "missing; the metadata log has the partition here, perhaps since a moment before the stop")
	}
}

// checkClusters reports a directory of a broker whose cluster.id is not that of the others: the
// metadata log in one of them has it as the broker's.
func checkClusters(all []*dirCheck) {
	for _, d := range all {
		image := d.around.topics.image
		if image == nil || d.around.meta.ClusterID == "" {
			continue
		}
		for _, other := range all {
			meta := other.around.meta
			if other.logDir && meta.ClusterID != "" && meta.ClusterID != d.around.meta.ClusterID && ownerOf(image, meta.DirectoryID) != nil {
				other.damageMeta("cluster.id %s, but directory.id %v is one of cluster %s, see %s", meta.ClusterID, meta.DirectoryID, d.around.meta.ClusterID, d.path)
			}
		}
	}
}
