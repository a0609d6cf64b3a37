package broker

import (
	"context"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/web"
)

// descriptorShares is how the descriptors of the process (ulimit -n) are divided, so that clients
// take none that the storage needs.
type descriptorShares struct {
	limit       int
	reserve     int // checkpoints, snapshots, metadata log, locks, listeners, the runtime
	segments    int // .log files that are kept open, or held by answers
	web         int // HTTP connections, of each of the two transports
	connections int // of clients
}

// Of few descriptors each part gets as many at least; the storage waits for its own then.
const (
	connectionsMin  = 4
	reserveOfAll    = 24
	reserveOfOneDir = 2
	reserveMax      = 256
	webMax          = 64
	fewConnections  = 100 // a warning names the limit when there is room for fewer
	segmentsPerSlot = 3   // see segment.FileCache
)

// shareDescriptors divides limit descriptors in a broker with so many log directories.
func shareDescriptors(limit, dirs int) descriptorShares {
	s := descriptorShares{limit: limit}
	s.reserve = max(reserveOfAll+reserveOfOneDir*dirs, min(limit/16, reserveMax))
	s.segments = min(max(limit/4, segmentsPerSlot), segmentsPerSlot*segment.DefaultFilesMax)
	s.web = min(max(limit/32, 1), webMax)
	s.connections = max(limit-s.reserve-s.segments-2*s.web, connectionsMin)
	return s
}

// divideDescriptors gives every part its share, the caches of segments theirs.
func (b *Broker) divideDescriptors(_ context.Context, c *config.Broker) error {
	limit, err := b.world.Descriptors()
	if err != nil {
		return err
	}
	b.descriptors = shareDescriptors(limit, len(c.LogDirs()))
	b.caches = segment.NewCaches()
	b.caches.Files.SetMax(b.descriptors.segments / segmentsPerSlot)
	b.fs = b.world.fileSystem(b.caches.Files.CloseUnused)
	s := &b.descriptors
	say := b.logger.Info
	if s.connections < fewConnections {
		say = b.logger.Warn
	}
	say("descriptors (ulimit -n) are divided", "limit", s.limit, "connections", s.connections, "segments", s.segments, "reserve", s.reserve)
	return nil
}

// descriptorUse tells the shares and what is used of them.
func (b *Broker) descriptorUse() web.DescriptorUse {
	s := &b.descriptors
	use := web.DescriptorUse{
		Limit: s.limit, Reserve: s.reserve, Web: 2 * s.web,
		Segments: s.segments, SegmentsUsed: b.caches.Files.Open(), Connections: s.connections,
	}
	if server := b.server.Load(); server != nil {
		use.ConnectionsUsed = server.Connections()
	}
	return use
}
