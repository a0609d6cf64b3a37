package group

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A keyType is the number that a key of __consumer_offsets begins with.
type keyType int16

const (
	keyOffsetLegacy keyType = 0 // read only
	keyOffset       keyType = 1
	keyGroup        keyType = 2

	// Consumer groups of KIP-848.
	keyConsumerEpoch      keyType = 3
	keyConsumerPartitions keyType = 4
	keyConsumerMember     keyType = 5
	keyTargetEpoch        keyType = 6
	keyTargetMember       keyType = 7
	keyConsumerCurrent    keyType = 8
	keyConsumerRegex      keyType = 16
)

// Versions of values that we write, and the latest that we can read.
const (
	groupVersion        = 3
	groupVersionMax     = 4
	offsetVersion       = 4
	offsetVersionExpiry = 1 // the one version that has an expiry time
	offsetVersionMax    = 4
)

func parseKeyType(key []byte) (keyType, error) {
	if len(key) < 2 {
		return 0, fmt.Errorf("key of %d bytes", len(key))
	}
	return keyType(binary.BigEndian.Uint16(key)), nil
}

func offsetKey(group, topic string, partition int32) []byte {
	k := kmsg.OffsetCommitKey{Version: int16(keyOffset), Group: group, Topic: topic, Partition: partition}
	return k.AppendTo(nil)
}

func offsetRecord(group, topic string, partition int32, o *offset) coordinator.Record {
	v := kmsg.OffsetCommitValue{
		Version: offsetVersion, Offset: o.offset, LeaderEpoch: o.leaderEpoch, Metadata: o.metadata,
		CommitTimestamp: o.committedMs, TopicID: o.topicID,
	}
	if o.expiresMs != noExpiry {
		v.Version, v.ExpireTimestamp = offsetVersionExpiry, o.expiresMs
	}
	return coordinator.Record{Key: offsetKey(group, topic, partition), Value: v.AppendTo(nil)}
}

func offsetTombstone(group, topic string, partition int32) coordinator.Record {
	return coordinator.Record{Key: offsetKey(group, topic, partition)}
}

// parseOffset reads the value of an offset's record.
func parseOffset(value []byte) (*offset, error) {
	v := kmsg.NewOffsetCommitValue()
	if err := checkVersion(value, offsetVersionMax); err != nil {
		return nil, err
	}
	if err := v.ReadFrom(value); err != nil {
		return nil, err
	}
	o := &offset{
		offset: v.Offset, leaderEpoch: noEpoch, metadata: v.Metadata, topicID: uuid.UUID(v.TopicID),
		committedMs: v.CommitTimestamp, expiresMs: noExpiry,
	}
	if v.Version >= 3 {
		o.leaderEpoch = v.LeaderEpoch
	}
	if v.Version == offsetVersionExpiry {
		o.expiresMs = v.ExpireTimestamp
	}
	return o, nil
}

func checkVersion(value []byte, latest int16) error {
	if len(value) < 2 {
		return fmt.Errorf("value of %d bytes", len(value))
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > latest {
		return fmt.Errorf("value of version %d, at most %d is known", v, latest)
	}
	return nil
}

func groupKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: int16(keyGroup), Group: group}
	return k.AppendTo(nil)
}

// record is the group as it is to be remembered, its members with these assignments.
func (g *group) record(assignments map[string][]byte) coordinator.Record {
	v := kmsg.GroupMetadataValue{
		Version: groupVersion, ProtocolType: g.protocolType, Generation: g.generation,
		Protocol: orNull(g.protocol), Leader: orNull(g.leader), CurrentStateTimestamp: g.since,
	}
	for _, m := range g.members {
		v.Members = append(v.Members, kmsg.GroupMetadataValueMember{
			MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost,
			RebalanceTimeoutMillis: int32(m.rebalanceTimeout.Milliseconds()),
			SessionTimeoutMillis:   int32(m.sessionTimeout.Milliseconds()),
			Subscription:           m.metadata(g.protocol),
			Assignment:             orEmpty(assignments[m.id]),
		})
	}
	return coordinator.Record{Key: groupKey(g.id), Value: v.AppendTo(nil)}
}

// parseGroup makes a group of its record's value.
func parseGroup(id string, value []byte) (*group, error) {
	v := kmsg.NewGroupMetadataValue()
	if err := checkVersion(value, groupVersionMax); err != nil {
		return nil, err
	}
	if err := v.ReadFrom(value); err != nil {
		return nil, err
	}
	g := newGroup(id)
	g.generation, g.protocolType, g.since = v.Generation, v.ProtocolType, v.CurrentStateTimestamp
	g.protocol = orBlank(v.Protocol)
	for i := range v.Members {
		if g.byID[v.Members[i].MemberID] != nil {
			return nil, fmt.Errorf("group %q has member %q twice", id, v.Members[i].MemberID)
		}
		g.add(parseMember(&v.Members[i], g.protocol))
	}
	if leader := orBlank(v.Leader); g.byID[leader] != nil {
		g.leader = leader
	}
	if len(g.members) > 0 {
		g.state = Stable
	}
	return g, nil
}

func parseMember(v *kmsg.GroupMetadataValueMember, protocol string) *member {
	m := &member{
		id: v.MemberID, instanceID: v.InstanceID, clientID: v.ClientID, clientHost: v.ClientHost,
		sessionTimeout:   time.Duration(v.SessionTimeoutMillis) * time.Millisecond,
		rebalanceTimeout: time.Duration(v.RebalanceTimeoutMillis) * time.Millisecond,
		protocols:        []Protocol{{protocol, append([]byte{}, v.Subscription...)}},
		assignment:       append([]byte{}, v.Assignment...),
	}
	if v.RebalanceTimeoutMillis < 0 { // version 0 has none
		m.rebalanceTimeout = m.sessionTimeout
	}
	return m
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orBlank(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
