package controller

import (
	"context"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A DirectoryAssignment says in which log directory a broker has its replica of a partition.
type DirectoryAssignment struct {
	TopicID   uuid.UUID
	Partition int32
	Directory uuid.UUID
}

// AssignDirectories notes where a broker has its replicas (Kafka: AssignReplicasToDirs).
// What is unknown by now, or noted already, is left out. A replica in a directory that is not
// online is offline from then on.
func (c *Controller) AssignDirectories(ctx context.Context, broker int32, list []DirectoryAssignment) error {
	return c.change(ctx, func(img *metadata.Image) ([]metadata.Record, error) {
		return assignDirectories(img, broker, list), nil
	})
}

func assignDirectories(img *metadata.Image, broker int32, list []DirectoryAssignment) []metadata.Record {
	var records []metadata.Record
	for _, a := range list {
		t := img.TopicByID(a.TopicID)
		if t == nil || a.Partition < 0 || int(a.Partition) >= len(t.Partitions) {
			continue
		}
		if change := assignDirectory(img, t.Partitions[a.Partition], broker, a.Directory); change != nil {
			change.TopicID, change.PartitionID = a.TopicID, a.Partition
			records = append(records, change)
		}
	}
	return records
}

// assignDirectory returns the change of a partition whose replica on a broker is in a directory, or
// nil.
func assignDirectory(img *metadata.Image, p *metadata.Partition, broker int32, dir uuid.UUID) *metadata.PartitionChangeRecord {
	i := slices.Index(p.Replicas, broker)
	if i < 0 {
		return nil
	}
	dirs := directoriesOf(p)
	if dirs[i] == dir {
		return nil
	}
	dirs[i] = dir
	var change *metadata.PartitionChangeRecord
	switch b := img.Broker(broker); {
	case b != nil && !b.Serves(dir):
		change = retire(img, p, broker)
	case b.Active() && p.Leader == metadata.NoLeader && eligible(p, broker):
		change = promote(p, broker)
	}
	if change == nil {
		change = metadata.NewPartitionChangeRecord()
	}
	change.Directories = dirs
	return change
}

// directoriesOf returns a copy of the directories of all replicas.
func directoriesOf(p *metadata.Partition) []uuid.UUID {
	dirs := make([]uuid.UUID, len(p.Replicas))
	for i, id := range p.Replicas {
		dirs[i], _ = p.Directory(id)
	}
	return dirs
}

// DirectoriesOffline notes that log directories of a broker have failed (Kafka: the
// OfflineLogDirs of a heartbeat). The broker leads no partition in them any more, and is not in
// sync with others.
func (c *Controller) DirectoriesOffline(ctx context.Context, broker int32, brokerEpoch int64, dirs []uuid.UUID) error {
	return c.change(ctx, func(img *metadata.Image) ([]metadata.Record, error) {
		return directoriesOffline(img, broker, brokerEpoch, dirs)
	})
}

func directoriesOffline(img *metadata.Image, broker int32, brokerEpoch int64, dirs []uuid.UUID) ([]metadata.Record, error) {
	b := img.Broker(broker)
	if err := checkBrokerEpoch(b, broker, brokerEpoch); err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(b.LogDirs), func(id uuid.UUID) bool { return slices.Contains(dirs, id) })
	if len(left) == len(b.LogDirs) {
		return nil, nil // known already
	}
	var records []metadata.Record
	for _, name := range img.TopicNames() {
		t := img.Topic(name)
		for n, p := range t.Partitions {
			if dir, ok := p.Directory(broker); !ok || !slices.Contains(dirs, dir) {
				continue
			}
			if change := retire(img, p, broker); change != nil {
				change.TopicID, change.PartitionID = t.ID, int32(n)
				records = append(records, change)
			}
		}
	}
	gone := metadata.NewBrokerRegistrationChangeRecord()
	gone.BrokerID, gone.BrokerEpoch, gone.LogDirs = broker, brokerEpoch, left
	return append(records, gone), nil
}

// CordonDirectories notes which log directories of a broker take no new replicas (KIP-1066; Kafka:
// the CordonedLogDirs of a heartbeat). Metadata of a level that knows no such thing stays as it is:
// only the broker itself goes by it then.
func (c *Controller) CordonDirectories(ctx context.Context, broker int32, brokerEpoch int64, dirs []uuid.UUID) error {
	return c.change(ctx, func(img *metadata.Image) ([]metadata.Record, error) {
		return cordonDirectories(img, broker, brokerEpoch, dirs)
	})
}

func cordonDirectories(img *metadata.Image, broker int32, brokerEpoch int64, dirs []uuid.UUID) ([]metadata.Record, error) {
	b := img.Broker(broker)
	if err := checkBrokerEpoch(b, broker, brokerEpoch); err != nil {
		return nil, err
	}
	cordoned := append([]uuid.UUID{}, dirs...) // not nil, which says nothing
	slices.SortFunc(cordoned, compareIDs)
	if slices.Equal(cordoned, b.CordonedLogDirs) || !metadata.TellsCordoned(img.Feature(metadata.MetadataVersion)) {
		return nil, nil
	}
	change := metadata.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch, change.CordonedLogDirs = broker, brokerEpoch, cordoned
	return []metadata.Record{change}, nil
}

// elrFeature says that a partition may have no replica in sync, and that those that may be elected
// all the same are kept in a list (KIP-966).
const elrFeature = "eligible.leader.replicas.version"

// retire takes a broker out of the replicas in sync of a partition and out of its leadership, or
// returns nil if it has no part in either. The last replica in sync stays so without a leader:
// nobody else has all records. (Kafka class PartitionChangeBuilder.)
func retire(img *metadata.Image, p *metadata.Partition, broker int32) *metadata.PartitionChangeRecord {
	change := metadata.NewPartitionChangeRecord()
	changed := false
	isr := slices.DeleteFunc(slices.Clone(p.ISR), func(id int32) bool { return id == broker })
	switch {
	case len(isr) == len(p.ISR):
	case len(isr) > 0:
		change.ISR, changed = isr, true
	case img.Feature(elrFeature) > 0:
		change.ISR, changed = []int32{}, true
		change.EligibleLeaderReplicas = append(slices.Clone(p.ELR), broker)
	}
	if p.Leader == broker {
		change.Leader, changed = nextLeader(img, p, isr), true
	}
	if !changed {
		return nil
	}
	return change
}

// nextLeader returns the first replica in sync that can lead, or NoLeader.
func nextLeader(img *metadata.Image, p *metadata.Partition, isr []int32) int32 {
	for _, id := range p.Replicas {
		if slices.Contains(isr, id) && img.Broker(id).Active() && img.Online(p, id) {
			return id
		}
	}
	return metadata.NoLeader
}
