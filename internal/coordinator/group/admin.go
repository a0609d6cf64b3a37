package group

import (
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// A Listing is a group in a list of groups.
type Listing struct {
	Group        string
	ProtocolType string
	State        string
	Type         string // classic, consumer, share, streams
}

// List returns the groups of the shard, in order of their ids.
func (s *Shard) List() []Listing {
	var list []Listing
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[id]
		l := Listing{id, g.protocolType, g.state.String(), g.kind()}
		if l.Type != typeClassic {
			l.ProtocolType = l.Type
		}
		list = append(list, l)
	}
	return list
}

// A Description is what DescribeGroups shows of a group.
type Description struct {
	Err          error // of a group that does not exist, or is of another protocol
	Group        string
	State        string
	ProtocolType string
	Protocol     string
	Members      []MemberDescription
}

// A MemberDescription describes a member. Metadata and Assignment are empty unless the
// group is Stable; the bytes belong to the shard.
type MemberDescription struct {
	ID         string
	InstanceID *string
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}

// Describe describes a group.
func (s *Shard) Describe(id string) Description {
	g := s.groups[id]
	if g == nil || g.kind() != typeClassic {
		return Description{Err: ErrGroupIDNotFound, Group: id, State: Dead.String()}
	}
	d := Description{Group: id, State: g.state.String(), ProtocolType: g.protocolType}
	if g.state == Stable {
		d.Protocol = g.protocol
	}
	for _, m := range g.members {
		v := MemberDescription{
			ID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost,
			Metadata: []byte{}, Assignment: []byte{},
		}
		if g.state == Stable {
			v.Metadata, v.Assignment = m.metadata(g.protocol), m.assignment
		}
		d.Members = append(d.Members, v)
	}
	return d
}

// Delete deletes groups that have no members. reply gets an error per group. It runs
// alone, so that no commit is on its way, and with at least one id.
func (s *Shard) Delete(t *coordinator.Turn, ids []string, reply func(errs []error)) {
	errs := make([]error, len(ids))
	open := len(ids)
	for i, id := range ids {
		done := func(_ *coordinator.Turn, err error) {
			errs[i] = err
			if open--; open == 0 {
				reply(errs)
			}
		}
		switch g := s.groups[id]; {
		case g == nil, slices.Contains(ids[:i], id):
			done(t, ErrGroupIDNotFound)
		case g.state != Empty:
			done(t, ErrNonEmptyGroup)
		default:
			s.deleteGroup(t, g, done)
		}
	}
}

// DeleteOffsets deletes committed offsets of topics that no member reads. The errors of
// the reply stand for the topics; err for all. It runs alone.
func (s *Shard) DeleteOffsets(t *coordinator.Turn, id string, topics []TopicPartitions, reply func(errs []error, err error)) {
	g := s.groups[id]
	switch {
	case g == nil:
		reply(nil, ErrGroupIDNotFound)
		return
	case len(g.members) > 0 && !g.isConsumer():
		reply(nil, ErrNonEmptyGroup)
		return
	}
	errs := make([]error, len(topics))
	var list []partition
	for i, topic := range topics {
		if g.isSubscribed(topic.Topic) {
			errs[i] = ErrGroupSubscribedToTopic
			continue
		}
		for _, p := range topic.Partitions {
			if g.offsets.get(topic.Topic, p) != nil || s.isPending(g, topic.Topic, p) {
				list = append(list, partition{topic.Topic, p})
			}
		}
	}
	s.deleteOffsets(t, g, list, func(_ *coordinator.Turn, err error) { reply(errs, err) })
}

// DropTopics deletes all offsets of topics that do not exist any more. It runs alone.
func (s *Shard) DropTopics(t *coordinator.Turn, topics []string) {
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[id]
		list := slices.DeleteFunc(s.allOffsets(g), func(p partition) bool { return !slices.Contains(topics, p.topic) })
		s.deleteOffsets(t, g, list, s.warn(g, "offsets of deleted topics were not deleted"))
	}
}
