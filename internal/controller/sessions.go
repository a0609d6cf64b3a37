package controller

import (
	"context"
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// looksPerSession is how often within a session brokers are looked for that were not heard of.
const looksPerSession = 8

// sessions are what the active controller knows of brokers beside the metadata: when it heard of each, and how far
// they have come. They are of one leadership; the next one begins with a session of each broker that is in service.
// A broker that was never heard of has none. (Kafka class BrokerHeartbeatManager.)
type sessions struct {
	timeout time.Duration
	epoch   int32 // of the leadership
	known   map[int32]session
}

// A session is what a broker's heartbeats have told.
type session struct {
	brokerEpoch int64
	heard       time.Time
	offset      int64 // of the metadata that it has applied, -1 when it has not told
	shutdownAt  int64 // where its controlled shutdown ends in the log, 0 outside of one
}

// newSessions returns nil for a timeout of 0.
func newSessions(timeout time.Duration) *sessions {
	if timeout == 0 {
		return nil
	}
	return &sessions{timeout: timeout, epoch: -1}
}

// enter begins anew when the leadership is another one.
func (s *sessions) enter(img *metadata.Image, g given) {
	if s.epoch == g.epoch {
		return
	}
	s.epoch, s.known = g.epoch, map[int32]session{}
	for _, b := range img.Brokers() {
		if !b.Fenced {
			s.known[b.ID] = session{brokerEpoch: b.Epoch, heard: g.now, offset: -1}
		}
	}
}

// hear notes a heartbeat.
func (s *sessions) hear(h *Heartbeat, now time.Time) {
	known := s.known[h.Broker]
	if known.brokerEpoch != h.BrokerEpoch {
		known = session{brokerEpoch: h.BrokerEpoch}
	}
	known.heard, known.offset = now, h.MetadataOffset
	s.known[h.Broker] = known
}

// valid reports whether a registered broker was heard of lately.
func (s *sessions) valid(b *metadata.Broker, now time.Time) bool {
	known, heard := s.known[b.ID]
	return heard && known.brokerEpoch == b.Epoch && now.Sub(known.heard) <= s.timeout
}

// silent returns a broker in service that was not heard of for a session, or nil.
func (s *sessions) silent(img *metadata.Image, now time.Time) *metadata.Broker {
	for _, b := range img.Brokers() {
		if !b.Fenced && !s.valid(b, now) {
			return b
		}
	}
	return nil
}

// lowestOffset returns how far all brokers have come that may lead.
func (s *sessions) lowestOffset(img *metadata.Image) int64 {
	lowest := int64(math.MaxInt64)
	for _, b := range img.Brokers() {
		if b.Active() {
			lowest = min(lowest, s.known[b.ID].offset)
		}
	}
	return lowest
}

// fenceSilent takes a broker out of service that was not heard of for a session: one at a time, each decided on
// what the ones before have made. Nobody waits for the commit.
func (c *Controller) fenceSilent() {
	for found := true; found; {
		found = false
		v := take(context.Background(), c, false, func(img *metadata.Image, g given) ([]metadata.Record, struct{}, error) {
			c.sessions.enter(img, g)
			b := c.sessions.silent(img, g.now)
			if found = b != nil; !found {
				return nil, struct{}{}, nil
			}
			return fence(img, b), struct{}{}, nil
		})
		if v.err != nil { // it does not lead
			return
		}
	}
}
