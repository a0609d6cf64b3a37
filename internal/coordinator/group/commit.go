package group

import (
	"math"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A CommitRequest commits offsets, of a member or of somebody who only stores them. The
// shard keeps its strings.
type CommitRequest struct {
	Group      string
	MemberID   string
	InstanceID *string
	Generation int32 // -1 if the sender is no member
	// RetentionMs is for how long the client wants the offsets kept (versions 2 to 4), -1
	// for as long as the group needs them.
	RetentionMs int64
	Offsets     []CommitOffset
	// NotFound is the answer to a member of a group that does not exist.
	NotFound error
}

// A CommitOffset is where the group goes on reading a partition.
type CommitOffset struct {
	Topic       string
	TopicID     uuid.UUID // zero if not known
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1 if not known
	Metadata    string
}

// Commit stores offsets. The errors of the reply stand for the offsets; err for all.
func (s *Shard) Commit(t *coordinator.Turn, r *CommitRequest, reply func(errs []error, err error)) {
	if err := s.checkCommit(t, r); err != nil {
		reply(nil, err)
		return
	}
	errs := make([]error, len(r.Offsets))
	values := make([]*offset, len(r.Offsets)) // nil where the offset is refused
	var records []coordinator.Record
	for i, c := range r.Offsets {
		if len(c.Metadata) > s.cfg.OffsetMetadataMax {
			errs[i] = ErrOffsetMetadataTooLarge
			continue
		}
		values[i] = c.value(t.NowMs(), r.RetentionMs)
		records = append(records, offsetRecord(r.Group, c.Topic, c.Partition, values[i]))
	}
	if len(records) == 0 {
		reply(errs, nil)
		return
	}
	t.Write(records, func(_ *coordinator.Turn, first int64, err error) {
		if err != nil {
			reply(nil, &AppendError{r.Group, err})
			return
		}
		s.store(r, values, first)
		reply(errs, nil)
	})
}

func (c *CommitOffset) value(nowMs int64, retentionMs int64) *offset {
	v := &offset{
		offset: c.Offset, leaderEpoch: c.LeaderEpoch, metadata: c.Metadata, topicID: c.TopicID,
		committedMs: nowMs, expiresMs: noExpiry,
	}
	if retentionMs >= 0 {
		v.expiresMs = nowMs + min(retentionMs, math.MaxInt64-nowMs)
	}
	return v
}

// store makes committed offsets current. first is where their records begin.
func (s *Shard) store(r *CommitRequest, values []*offset, first int64) {
	g := s.groupFor(r.Group)
	for i, v := range values {
		if v != nil {
			v.position = first
			first++
			g.offsets.put(r.Offsets[i].Topic, r.Offsets[i].Partition, v)
		}
	}
}

// checkCommit says why the sender may not commit. A member's session is refreshed.
func (s *Shard) checkCommit(t *coordinator.Turn, r *CommitRequest) error {
	g := s.groups[r.Group]
	switch {
	case g == nil && r.Generation < 0:
		return nil
	case g == nil:
		return r.NotFound
	case r.Generation < 0 && g.state == Empty:
		return nil
	}
	m, err := g.validateMember(r.MemberID, r.InstanceID)
	switch {
	case err != nil:
		return err
	case r.Generation != g.generation:
		return ErrIllegalGeneration
	case g.state == CompletingRebalance:
		return ErrRebalanceInProgress
	}
	s.refreshSession(t, g, m)
	return nil
}
