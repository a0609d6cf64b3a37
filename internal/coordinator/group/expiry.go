package group

import (
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// tombstoneBytes is about how much goes into one write of tombstones: less than a batch
// may have, whatever the names.
const tombstoneBytes = 256 << 10

func tombstonesPerWrite(g *group) int {
	return max(1, tombstoneBytes/(len(g.id)+topic.NameLengthMax+64))
}

// expire deletes offsets that nobody needs any more, and groups that have none left.
func (s *Shard) expire(t *coordinator.Turn) {
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[id]
		expired := s.expired(g, t.NowMs())
		if n := len(expired); n > 0 {
			s.log.Info("offsets expire", "group", id, "count", n)
		}
		left := g.countOffsets() - len(expired)
		if left == 0 && g.isAbandoned() {
			s.deleteGroup(t, g, s.warn(g, "expired group was not deleted"))
			continue
		}
		s.deleteOffsets(t, g, expired, s.warn(g, "expired offsets were not deleted"))
	}
}

// warn returns a function that reports an error.
func (s *Shard) warn(g *group, what string) deleted {
	return func(_ *coordinator.Turn, err error) {
		if err != nil {
			s.log.Warn(what, "group", g.id, "err", err)
		}
	}
}

// deleted is called when tombstones are in the log, or with the reason why they are not.
type deleted func(t *coordinator.Turn, err error)

// isAbandoned reports whether nothing but offsets keeps the group.
func (g *group) isAbandoned() bool {
	return g.state == Empty && g.pending == 0 && len(g.pendingJoinMembers) == 0 && len(g.modernKeys) == 0
}

// A partition names an offset of a group.
type partition struct {
	topic string
	index int32
}

// expired lists the offsets of a group that may go, in order.
func (s *Shard) expired(g *group, nowMs int64) []partition {
	since, may := g.expiryBase()
	if !may {
		return nil
	}
	retentionMs := s.cfg.OffsetsRetention.Milliseconds()
	var list []partition
	for name, partitions := range g.offsets.sortedTopics() {
		if g.isSubscribed(name) {
			continue
		}
		for _, p := range partitions {
			if since(g.offsets[name][p]).isOver(nowMs, retentionMs) && !s.isPending(g, name, p) {
				list = append(list, partition{name, p})
			}
		}
	}
	return list
}

// An age says since when an offset is not needed, or when the client wants it to go.
type age struct {
	sinceMs   int64
	expiresMs int64 // or noExpiry
}

func (a age) isOver(nowMs, retentionMs int64) bool {
	if a.expiresMs != noExpiry {
		return nowMs >= a.expiresMs
	}
	return nowMs-a.sinceMs >= retentionMs
}

// expiryBase says from when the offsets of a group age: from the end of its last member,
// or from their commit if the group is in use but not for their topic, or has never had
// members. While a group rebalances nothing ages, and groups of a newer protocol are not
// ours to judge.
func (g *group) expiryBase() (since func(*offset) age, may bool) {
	sinceCommit := func(o *offset) age { return age{o.committedMs, o.expiresMs} }
	switch {
	case len(g.modernKeys) > 0:
		return nil, false
	case g.isSimple():
		return sinceCommit, true
	case g.state == Empty && g.since >= 0:
		return func(o *offset) age { return age{g.since, o.expiresMs} }, true
	case g.state == Empty, g.state == Stable && g.isConsumer():
		return sinceCommit, true
	}
	return nil, false
}

func (g *group) countOffsets() int {
	n := 0
	for _, partitions := range g.offsets {
		n += len(partitions)
	}
	return n
}

// deleteOffsets writes tombstones. Offsets are gone when theirs is in the log. The first
// error ends the matter.
func (s *Shard) deleteOffsets(t *coordinator.Turn, g *group, list []partition, done deleted) {
	if len(list) == 0 {
		done(t, nil)
		return
	}
	chunk := list[:min(len(list), tombstonesPerWrite(g))]
	var records []coordinator.Record
	for _, p := range chunk {
		records = append(records, offsetTombstone(g.id, p.topic, p.index))
	}
	t.Write(records, func(t *coordinator.Turn, _ int64, err error) {
		if err != nil {
			done(t, g.appendError(err))
			return
		}
		for _, p := range chunk {
			g.offsets.remove(p.topic, p.index)
			s.removePending(g, p.topic, p.index)
		}
		s.deleteOffsets(t, g, list[len(chunk):], done)
	})
}

// deleteGroup writes tombstones for everything that the log holds of a group, for the
// group itself last.
func (s *Shard) deleteGroup(t *coordinator.Turn, g *group, done deleted) {
	s.deleteOffsets(t, g, s.allOffsets(g), func(t *coordinator.Turn, err error) {
		if err != nil {
			done(t, err)
			return
		}
		t.Write(g.tombstones(), func(t *coordinator.Turn, _ int64, err error) {
			if err == nil {
				s.log.Info("group is deleted", "group", g.id)
				s.dropGroup(g)
			}
			done(t, g.appendError(err))
		})
	})
}

// allOffsets lists the partitions that the group has committed or pending offsets for.
func (s *Shard) allOffsets(g *group) []partition {
	var list []partition
	for name, partitions := range g.offsets.sortedTopics() {
		for _, p := range partitions {
			list = append(list, partition{name, p})
		}
	}
	for name, p := range s.pendingOf(g) {
		if g.offsets.get(name, p) == nil {
			list = append(list, partition{name, p})
		}
	}
	return list
}
