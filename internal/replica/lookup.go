package replica

import (
	"fmt"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/segment"
)

// A Lookup is a question for an offset by time.
type Lookup struct {
	Timestamp   int64 // ms, or a special one of package commitlog
	Isolation   commitlog.Isolation
	LeaderEpoch int32 // as the client knows it, or NoEpoch
	AnyReplica  bool  // do not ask to be the leader: debugging
}

// nothing is the answer for an offset that does not exist.
var nothing = segment.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}

// Lookup returns the first record with at least the asked timestamp, or what a special
// timestamp stands for; offset -1 if there is none.
func (p *Partition) Lookup(q Lookup) (segment.TimestampOffset, error) {
	log, role, err := p.leadingIn(q.LeaderEpoch)
	if err == ErrNotLeaderOrFollower && q.AnyReplica {
		err = nil
	}
	if err != nil {
		return nothing, err
	}
	t, ok, err := log.Lookup(commitlog.LookupRequest{Timestamp: q.Timestamp, Isolation: q.Isolation})
	if err != nil || !ok {
		return nothing, err
	}
	if q.Timestamp == commitlog.Latest && role.Leading {
		t.LeaderEpoch = role.LeaderEpoch // also if nothing was written in it yet
	}
	return t, nil
}

// SegmentOffsets answers ListOffsets 0, see commitlog.Log.SegmentOffsets.
func (p *Partition) SegmentOffsets(q Lookup, count int) ([]int64, error) {
	log, _, err := p.leadingIn(q.LeaderEpoch)
	if err == ErrNotLeaderOrFollower && q.AnyReplica {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return log.SegmentOffsets(q.Timestamp, count, q.Isolation)
}

// HighWatermark as an offset of DeleteRecords means all records.
const HighWatermark int64 = -1

// DeleteRecords makes offset the log start and returns the low watermark: the smallest log
// start of all replicas.
func (p *Partition) DeleteRecords(offset int64) (lowWatermark int64, err error) {
	log, _, err := p.leading()
	if err != nil {
		return -1, err
	}
	if !log.Config().Delete {
		return -1, fmt.Errorf("%w: cleanup.policy has no \"delete\"", ErrPolicyViolation)
	}
	hw := log.Offsets().HighWatermark
	if offset == HighWatermark {
		offset = hw
	}
	if offset < 0 || offset > hw {
		return -1, fmt.Errorf("%w: %d, the high watermark is %d", commitlog.ErrOffsetOutOfRange, offset, hw)
	}
	if err := log.IncrementLogStart(offset); err != nil {
		return -1, err
	}
	p.fetches.WakeAll()
	return log.Offsets().LogStart, nil
}
