package ownership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/quorum"
)

// lossRefusals say what shows that metadata is missing.
func lossRefusals(e *Evidence) []error {
	switch {
	case e.Metadata.Empty:
		return missingRefusals(e)
	case len(e.Metadata.Proofs) > 0:
		return []error{endRefusal(&e.Metadata)}
	case !e.Logs.ClusterKnown && len(e.Image.Brokers()) > 0:
		return []error{fmt.Errorf("%w: %s is the log of a cluster, and no meta.properties says of which; bring the file back, "+
			"or start with a new cluster id with %s", ErrRefused, e.Metadata.Dir, acceptLossFlag)}
	}
	return nil
}

// missingRefusals say what shows that there was a metadata log, where there is none. Partitions
// without ids, and directories of a broker with ZooKeeper, never had one.
func missingRefusals(e *Evidence) []error {
	if len(e.OtherMetadata) > 0 {
		return []error{fmt.Errorf("%w: the metadata log is %s, but metadata.log.dir, or else the first of log.dirs, says that it is %s; set metadata.log.dir. To begin an empty cluster: %s",
			ErrRefused, e.OtherMetadata[0], e.Metadata.Dir, acceptLossFlag)}
	}
	if len(e.Metadata.Proofs) > 0 {
		return []error{endRefusal(&e.Metadata)}
	}
	kraft, zooKeeper := versions(e)
	wayOut := "give the directory that has it too, in log.dirs or metadata.log.dir; a node that is a broker only has none of its own. To begin an empty cluster beside what lies there: " + acceptLossFlag
	for _, d := range e.Logs.Dirs {
		for _, at := range d.Partitions {
			if hasID := !at.TopicID.IsZero() || errors.Is(at.IDErr, checkpoint.ErrCorrupt); hasID && !zooKeeper {
				return []error{fmt.Errorf("%w: %s has a topic id, so there was a metadata log, and %s is missing or empty; %s", ErrRefused, at.Path, e.Metadata.Dir, wayOut)}
			}
		}
	}
	if len(e.Checkpointed) > 0 && kraft {
		c := e.Checkpointed[0]
		return []error{fmt.Errorf("%w: %s has an entry of %v, so there was a metadata log, and %s is missing or empty; %s", ErrRefused, c.Path, c.Partition, e.Metadata.Dir, wayOut)}
	}
	return nil
}

// versions reports whether a meta.properties is that of a KRaft node, and whether one is that of a
// broker with ZooKeeper.
func versions(e *Evidence) (kraft, zooKeeper bool) {
	for _, d := range e.Logs.Dirs {
		kraft = kraft || d.HasMeta && d.Meta.Version > 0
		zooKeeper = zooKeeper || d.HasMeta && d.Meta.Version == 0 && d.Meta.NodeID != checkpoint.NoNode
	}
	return kraft, zooKeeper && !kraft
}

// endRefusal names the file that proves most.
func endRefusal(m *quorum.Evidence) error {
	most := slices.MaxFunc(m.Proofs, func(a, b quorum.Proof) int { return cmp.Compare(a.End, b.End) })
	torn := ""
	if m.Torn > 0 {
		torn = fmt.Sprintf(", %d bytes before the end of its file,", m.Torn)
	}
	return fmt.Errorf("%w: the metadata log %s ends at offset %d%s but %s: %s. Bring back what is missing of it, or go on without it, as far as that goes, with %s",
		ErrRefused, m.Dir, m.End, torn, most.Path, most.Says, acceptLossFlag)
}
