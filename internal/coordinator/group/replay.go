package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// Replay applies a record of the log. Keys of types that are not known are skipped: a
// later version may have written them.
func (s *Shard) Replay(r coordinator.Replayed) error {
	k, err := parseKeyType(r.Key)
	if err != nil {
		return err
	}
	switch {
	case k == keyOffsetLegacy || k == keyOffset:
		return s.replayOffset(r)
	case k == keyGroup:
		return s.replayGroup(r)
	case modernType(k) != "":
		return s.replayModern(r.Key, r.Value != nil)
	}
	return nil
}

// groupFor returns the group, a new one if there is none.
func (s *Shard) groupFor(id string) *group {
	g := s.groups[id]
	if g == nil {
		g = newGroup(id)
		s.groups[id] = g
	}
	return g
}

// forgetIfNothing drops a group of which the log holds nothing any more.
func (s *Shard) forgetIfNothing(g *group) {
	if g.isUnwritten() && len(g.offsets) == 0 && g.pending == 0 && len(g.modernKeys) == 0 {
		delete(s.groups, g.id)
	}
}

// isUnwritten reports whether there is no record of the group itself: nobody joined it.
func (g *group) isUnwritten() bool { return g.since < 0 && len(g.members) == 0 && g.isSimple() }

func (s *Shard) replayOffset(r coordinator.Replayed) error {
	var key kmsg.OffsetCommitKey
	if err := key.ReadFrom(r.Key); err != nil {
		return fmt.Errorf("key of an offset: %w", err)
	}
	if r.Value == nil {
		if g := s.groups[key.Group]; g != nil {
			g.offsets.remove(key.Topic, key.Partition)
			s.removePending(g, key.Topic, key.Partition)
			s.forgetIfNothing(g)
		}
		return nil
	}
	o, err := parseOffset(r.Value)
	if err != nil {
		return fmt.Errorf("offset of group %q: %w", key.Group, err)
	}
	o.position = r.Offset
	g := s.groupFor(key.Group)
	if r.ProducerID >= 0 {
		s.putPending(r.ProducerID, g, key.Topic, key.Partition, o)
		return nil
	}
	g.offsets.put(key.Topic, key.Partition, o)
	return nil
}

// replayGroup puts a group's members in place of those it had. Its offsets stay: they have
// records of their own.
func (s *Shard) replayGroup(r coordinator.Replayed) error {
	var key kmsg.GroupMetadataKey
	if err := key.ReadFrom(r.Key); err != nil {
		return fmt.Errorf("key of a group: %w", err)
	}
	had := s.groups[key.Group]
	if r.Value == nil {
		if had != nil {
			s.groups[key.Group] = had.withoutMembers()
			s.forgetIfNothing(s.groups[key.Group])
		}
		return nil
	}
	g, err := parseGroup(key.Group, r.Value)
	if err != nil {
		return fmt.Errorf("group %q: %w", key.Group, err)
	}
	if had != nil {
		g.offsets, g.pending, g.modernKeys = had.offsets, had.pending, had.modernKeys
	}
	s.groups[key.Group] = g
	return nil
}

// withoutMembers is what the log holds of a group beside its own record.
func (g *group) withoutMembers() *group {
	rest := newGroup(g.id)
	rest.offsets, rest.pending, rest.modernKeys = g.offsets, g.pending, g.modernKeys
	return rest
}
