package controller

import (
	"context"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A Registration is what a broker says of itself when it starts.
type Registration struct {
	ID            int32
	IncarnationID uuid.UUID // new for each start of the process
	Endpoints     []metadata.BrokerEndpoint
	Features      []metadata.BrokerFeature
	Rack          *string
	LogDirs       []uuid.UUID

	// PreviousEpoch is the broker epoch of the life that ended with a clean stop of all log
	// directories, -1 when unknown (file .kafka_cleanshutdown).
	PreviousEpoch int64
}

// RegisterBroker registers a broker and lets it take part at once: it has all the metadata that
// there is when this returns. It becomes leader of the partitions that have none and may have
// it. After an unclean stop the partitions that it led get a new leader epoch, since their
// logs may have lost their ends. It returns the broker epoch.
func (c *Controller) RegisterBroker(ctx context.Context, r Registration) (epoch int64, err error) {
	return decide(ctx, c, false, func(img *metadata.Image, g given) ([]metadata.Record, int64, error) {
		if c.sessions != nil {
			return c.sessions.register(img, r, g)
		}
		return registerBroker(img, r, g.nextOffset)
	})
}

// register registers a broker of several, fenced until its heartbeats ask for more. Another broker of the same id that
// is heard of has to be silent for a session first. It is no other one if it has a log directory of the one that is
// registered, which the process before it held a lock of: then that is over. (Kafka's waits for the session all the
// same.) What an earlier life of it led others lead.
func (s *sessions) register(img *metadata.Image, r Registration, g given) ([]metadata.Record, int64, error) {
	s.enter(img, g)
	if err := checkRegistration(img, r); err != nil {
		return nil, -1, err
	}
	if old := img.Broker(r.ID); old != nil && s.valid(old, g.now) && !old.InControlledShutdown && isOther(old, r) {
		return nil, -1, refuse(DuplicateBrokerRegistration, "broker %d is registered and was heard of within %v", r.ID, s.timeout)
	}
	delete(s.known, r.ID)
	records := []metadata.Record{registrationRecord(r, g.nextOffset)}
	return append(records, forEachPartition(img, func(p *metadata.Partition) *metadata.PartitionChangeRecord {
		change := retire(img, p, r.ID)
		if dirs := knownDirectories(p, r); dirs != nil {
			if change == nil {
				change = metadata.NewPartitionChangeRecord()
			}
			change.Directories = dirs
		}
		return change
	})...), g.nextOffset, nil
}

// isOther reports whether a registration is that of another broker than the one that is registered.
func isOther(old *metadata.Broker, r Registration) bool {
	return old.IncarnationID != r.IncarnationID && !slices.ContainsFunc(r.LogDirs, func(dir uuid.UUID) bool { return slices.Contains(old.LogDirs, dir) })
}

func registrationRecord(r Registration, epoch int64) *metadata.RegisterBrokerRecord {
	return &metadata.RegisterBrokerRecord{
		BrokerID: r.ID, IncarnationID: r.IncarnationID, BrokerEpoch: epoch, Fenced: true, Rack: r.Rack,
		EndPoints: slices.SortedFunc(slices.Values(r.Endpoints), func(a, b metadata.BrokerEndpoint) int { return strings.Compare(a.Name, b.Name) }),
		Features:  slices.SortedFunc(slices.Values(r.Features), func(a, b metadata.BrokerFeature) int { return strings.Compare(a.Name, b.Name) }),
		LogDirs:   slices.SortedFunc(slices.Values(r.LogDirs), compareIDs),
	}
}

// registerBroker makes the offset of the registration the broker epoch.
func registerBroker(img *metadata.Image, r Registration, epoch int64) ([]metadata.Record, int64, error) {
	if err := checkRegistration(img, r); err != nil {
		return nil, -1, err
	}
	old := img.Broker(r.ID)
	clean := old != nil && old.Epoch == r.PreviousEpoch
	records := []metadata.Record{
		registrationRecord(r, epoch),
		&metadata.BrokerRegistrationChangeRecord{BrokerID: r.ID, BrokerEpoch: epoch, Fenced: -1},
	}
	records = append(records, forEachPartition(img, func(p *metadata.Partition) *metadata.PartitionChangeRecord { return elect(img, p, r, clean) })...)
	return records, epoch, nil
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }

func checkRegistration(img *metadata.Image, r Registration) error {
	switch {
	case r.ID < 0:
		return refuse(InvalidRegistration, "broker id %d: want at least 0", r.ID)
	case r.IncarnationID.IsZero():
		return refuse(InvalidRegistration, "broker %d has no incarnation id", r.ID)
	case len(r.Endpoints) == 0:
		return refuse(InvalidRegistration, "broker %d has no listener", r.ID)
	case len(r.LogDirs) == 0:
		return refuse(InvalidRegistration, "broker %d has no log directory", r.ID)
	}
	seen := map[uuid.UUID]bool{}
	for _, dir := range r.LogDirs {
		if dir.IsReserved() {
			return refuse(InvalidRegistration, "directory id %s is reserved", dir)
		}
		if seen[dir] {
			return refuse(InvalidRegistration, "duplicate directory id %s", dir)
		}
		seen[dir] = true
	}
	return checkForeignDirs(img, r, seen)
}

// checkForeignDirs refuses a directory that another broker has.
func checkForeignDirs(img *metadata.Image, r Registration, dirs map[uuid.UUID]bool) error {
	for _, b := range img.Brokers() {
		if b.ID == r.ID {
			continue
		}
		for _, dir := range b.LogDirs {
			if dirs[dir] {
				return refuse(InvalidRegistration, "directory %[2]s belongs to broker %[1]d", b.ID, dir)
			}
		}
	}
	return nil
}

// elect returns the change that a broker's return makes to a partition, or nil. A replica in a
// directory that the broker comes without is offline.
func elect(img *metadata.Image, p *metadata.Partition, r Registration, clean bool) *metadata.PartitionChangeRecord {
	dir, replica := p.Directory(r.ID)
	if returned := (metadata.Broker{LogDirs: r.LogDirs}); replica && !returned.Serves(dir) {
		return retire(img, p, r.ID)
	}
	var change *metadata.PartitionChangeRecord
	if p.Leader == metadata.NoLeader && eligible(p, r.ID) || p.Leader == r.ID && !clean {
		change = promote(p, r.ID)
	}
	if dirs := knownDirectories(p, r); dirs != nil {
		if change == nil {
			change = metadata.NewPartitionChangeRecord()
		}
		change.Directories = dirs
	}
	return change
}

// eligible reports whether a broker may become leader: it has all records that were committed.
func eligible(p *metadata.Partition, broker int32) bool {
	return slices.Contains(p.ISR, broker) || len(p.ISR) == 0 && slices.Contains(p.ELR, broker)
}

// promote makes an eligible broker the leader.
func promote(p *metadata.Partition, broker int32) *metadata.PartitionChangeRecord {
	change := metadata.NewPartitionChangeRecord()
	change.Leader = broker
	if len(p.ISR) == 0 { // elected from the ELR, which the ISR replaces
		change.ISR, change.EligibleLeaderReplicas, change.LastKnownELR = []int32{broker}, []int32{}, []int32{}
	}
	return change
}

// knownDirectories returns the directories of the replicas when the broker has only one and a
// record leaves its replica's open. A replica whose directory is gone keeps it: it is offline.
func knownDirectories(p *metadata.Partition, r Registration) []uuid.UUID {
	at := slices.Index(p.Replicas, r.ID)
	if at < 0 || len(r.LogDirs) != 1 {
		return nil
	}
	if dir, _ := p.Directory(r.ID); !dir.IsZero() && dir != uuid.Unassigned {
		return nil
	}
	dirs := directoriesOf(p)
	dirs[at] = r.LogDirs[0]
	return dirs
}

// checkBrokerEpoch refuses what an earlier life of a broker asks for.
func checkBrokerEpoch(b *metadata.Broker, id int32, epoch int64) error {
	switch {
	case b == nil:
		return refuse(StaleBrokerEpoch, "broker %d is not registered", id) // as Kafka answers a broker that it does not know
	case b.Epoch != epoch:
		return refuse(StaleBrokerEpoch, "the broker epoch is %d, the request has %d", b.Epoch, epoch)
	}
	return nil
}

// producerIDBlock is how many producer ids a broker gets at a time.
const producerIDBlock = 1000

// AllocateProducerIDs takes a block of producer ids that were never handed out, [first,
// first+count), for a broker. It is committed when this returns.
func (c *Controller) AllocateProducerIDs(ctx context.Context, broker int32, brokerEpoch int64) (first int64, count int, err error) {
	first, err = decide(ctx, c, false, func(img *metadata.Image, _ given) ([]metadata.Record, int64, error) {
		return allocateProducerIDs(img, broker, brokerEpoch)
	})
	if err != nil {
		return 0, 0, err
	}
	return first, producerIDBlock, nil
}

func allocateProducerIDs(img *metadata.Image, broker int32, brokerEpoch int64) (records []metadata.Record, first int64, err error) {
	if err := checkBrokerEpoch(img.Broker(broker), broker, brokerEpoch); err != nil {
		return nil, 0, err
	}
	first = img.NextProducerID
	return []metadata.Record{
		&metadata.ProducerIdsRecord{BrokerID: broker, BrokerEpoch: brokerEpoch, NextProducerID: first + producerIDBlock},
	}, first, nil
}
