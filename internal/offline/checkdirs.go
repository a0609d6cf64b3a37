package offline

import (
	"context"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// readAround reads what is around the partitions and tells them. The metadata log is in one of the
// directories of a broker and speaks for the others as well.
func (c *checking) readAround(ctx context.Context, all []*dirCheck) (err error) {
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

// checkNodes compares the log directories of each broker with each other: no two of them may have
// the same id, or the same partition.
func (c *checking) checkNodes(all []*dirCheck) {
	type replica struct {
		node
		topic.Partition
	}
	type directory struct {
		node
		uuid.UUID
	}
	directories, replicas := map[directory]string{}, map[replica]string{}
	for _, d := range all {
		meta := d.around.meta
		if !d.logDir || meta.ClusterID == "" {
			continue
		}
		n := node{meta.ClusterID, meta.NodeID}
		if id := (directory{n, meta.DirectoryID}); !id.IsZero() {
			if other, ok := directories[id]; ok && other != d.path {
				d.damage(filepath.Join(d.path, "meta.properties"), -1, -1, "directory.id %v is that of %s as well: no broker starts with both", id.UUID, other)
			}
			directories[id] = d.path
		}
		for _, p := range d.partitions {
			name, aside, ok := parseDir(p.dir)
			if aside != "" || !ok {
				continue
			}
			other, twice := replicas[replica{n, name}]
			replicas[replica{n, name}] = p.dir
			switch {
			case !twice || other == p.dir:
			case c.exists(filepath.Join(p.dir, copyFile)) || c.exists(filepath.Join(other, copyFile)):
				d.note(p.dir, -1, -1, "in %s as well: a move between log directories was interrupted, which gregor goes on with and Kafka does not start with", other)
			default:
				d.damage(p.dir, -1, -1, "in %s as well: no broker starts with both", other)
			}
		}
	}
}
