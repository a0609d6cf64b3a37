package controller

import (
	"context"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A Heartbeat is what a broker says of itself every now and then.
type Heartbeat struct {
	Broker         int32
	BrokerEpoch    int64
	MetadataOffset int64 // of the metadata that it has applied
	WantFence      bool  // it is not ready to serve
	WantShutdown   bool

	OfflineDirs  []uuid.UUID // all that have failed since its registration
	CordonedDirs []uuid.UUID // nil: it does not say
}

// A HeartbeatAnswer is what the controller has decided about the broker.
type HeartbeatAnswer struct {
	CaughtUp bool // it has its registration
	Fenced   bool
	Shutdown bool // it may stop
}

// Heartbeat hears a broker: it goes into service when it has its registration and wants to, out of it when it wants
// that, and stops when it leads nothing and all others know. (Kafka: BrokerHeartbeat, KIP-631.)
func (c *Controller) Heartbeat(ctx context.Context, h Heartbeat) (HeartbeatAnswer, error) {
	return decide(ctx, c, false, func(img *metadata.Image, g given) ([]metadata.Record, HeartbeatAnswer, error) {
		return c.sessions.heartbeat(img, &h, g)
	})
}

// heartbeat decides one heartbeat. What directories have to say is decided before what becomes of the broker, which
// the next heartbeat asks for again.
func (s *sessions) heartbeat(img *metadata.Image, h *Heartbeat, g given) ([]metadata.Record, HeartbeatAnswer, error) {
	b := img.Broker(h.Broker)
	if err := checkBrokerEpoch(b, h.Broker, h.BrokerEpoch); err != nil {
		return nil, HeartbeatAnswer{Fenced: true}, err
	}
	if s == nil { // of the only node
		return nil, HeartbeatAnswer{CaughtUp: true, Fenced: b.Fenced, Shutdown: h.WantShutdown}, nil
	}
	s.enter(img, g)
	s.hear(h, g.now)
	a := HeartbeatAnswer{CaughtUp: h.MetadataOffset >= b.Epoch, Fenced: b.Fenced}
	records, err := directoryChanges(img, h)
	if len(records) > 0 || err != nil {
		return records, a, err
	}
	switch {
	case b.Fenced:
		a.Shutdown = h.WantShutdown
		if back := !h.WantShutdown && !h.WantFence && a.CaughtUp; back && !b.InControlledShutdown { // else only as a new life
			records, a.Fenced = unfence(img, b), false
		}
	case b.InControlledShutdown:
		if a.Shutdown = s.mayStop(img, b, g); a.Shutdown {
			records, a.Fenced = fence(img, b), true
		}
	case h.WantFence, h.WantShutdown && !leads(img, b.ID):
		records, a.Fenced, a.Shutdown = fence(img, b), true, h.WantShutdown
	case h.WantShutdown:
		records = beginShutdown(img, b)
		s.setShutdown(b.ID, g.nextOffset+int64(len(records)))
	}
	return records, a, nil
}

// setShutdown notes where a controlled shutdown ends in the log.
func (s *sessions) setShutdown(id int32, at int64) {
	known := s.known[id]
	known.shutdownAt = at
	s.known[id] = known
}

// mayStop reports whether a broker in controlled shutdown leads nothing and whoever may lead knows that. One whose
// shutdown began under another controller counts from now on.
func (s *sessions) mayStop(img *metadata.Image, b *metadata.Broker, g given) bool {
	if s.known[b.ID].shutdownAt == 0 {
		s.setShutdown(b.ID, g.nextOffset)
	}
	return !leads(img, b.ID) && s.known[b.ID].shutdownAt <= s.lowestOffset(img)+1
}

// directoryChanges are the records for what a heartbeat says of log directories.
func directoryChanges(img *metadata.Image, h *Heartbeat) ([]metadata.Record, error) {
	records, err := directoriesOffline(img, h.Broker, h.BrokerEpoch, h.OfflineDirs)
	if len(records) > 0 || err != nil || h.CordonedDirs == nil {
		return records, err
	}
	return cordonDirectories(img, h.Broker, h.BrokerEpoch, h.CordonedDirs)
}

// forEachPartition returns the changes of partitions that change makes, nil for none.
func forEachPartition(img *metadata.Image, change func(*metadata.Partition) *metadata.PartitionChangeRecord) (records []metadata.Record) {
	for _, name := range img.TopicNames() {
		t := img.Topic(name)
		for n, p := range t.Partitions {
			if c := change(p); c != nil {
				c.TopicID, c.PartitionID = t.ID, int32(n)
				records = append(records, c)
			}
		}
	}
	return records
}

// leads reports whether a broker leads a partition.
func leads(img *metadata.Image, id int32) bool {
	for t := range img.Topics() {
		for _, p := range t.Partitions {
			if p.Leader == id {
				return true
			}
		}
	}
	return false
}

// fence takes a broker out of service: it leads nothing, and is in sync only where nobody else is.
func fence(img *metadata.Image, b *metadata.Broker) []metadata.Record {
	records := forEachPartition(img, func(p *metadata.Partition) *metadata.PartitionChangeRecord { return retire(img, p, b.ID) })
	change := metadata.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch, change.Fenced = b.ID, b.Epoch, 1
	return append(records, change)
}

// unfence puts a broker into service: it leads what nobody leads and it may.
func unfence(img *metadata.Image, b *metadata.Broker) []metadata.Record {
	change := metadata.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch, change.Fenced = b.ID, b.Epoch, -1
	return append([]metadata.Record{change}, forEachPartition(img, func(p *metadata.Partition) *metadata.PartitionChangeRecord {
		if dir, replica := p.Directory(b.ID); !replica || p.Leader != metadata.NoLeader || !eligible(p, b.ID) || !b.Serves(dir) {
			return nil
		}
		return promote(p, b.ID)
	})...)
}

// beginShutdown has others lead what a broker leads that is about to stop.
func beginShutdown(img *metadata.Image, b *metadata.Broker) []metadata.Record {
	change := metadata.NewBrokerRegistrationChangeRecord()
	change.BrokerID, change.BrokerEpoch, change.InControlledShutdown = b.ID, b.Epoch, 1
	return append([]metadata.Record{change}, forEachPartition(img, func(p *metadata.Partition) *metadata.PartitionChangeRecord { return retire(img, p, b.ID) })...)
}
