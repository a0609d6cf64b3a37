package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/segment"
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
	log, s, err := p.askable(q)
	if err != nil {
		return nothing, err
	}
	unsure := p.checkOffsets(log, s, q)
	if unsure != nil && q.Timestamp == commitlog.Latest {
		return nothing, unsure
	}
	t, ok, err := log.Lookup(commitlog.LookupRequest{Timestamp: q.Timestamp, Isolation: q.Isolation})
	switch {
	case err == nil && !ok && (q.Timestamp >= 0 || q.Timestamp == commitlog.MaxTimestamp):
		return nothing, unsure
	case err != nil || !ok:
		return nothing, err
	}
	if q.Timestamp == commitlog.Latest && s.Leading {
		t.LeaderEpoch = s.LeaderEpoch // also if nothing was written in it yet
	}
	return t, nil
}

// askable is leading, or hosted for a question that any replica answers.
func (p *Partition) askable(q Lookup) (*commitlog.Log, *PartitionState, error) {
	log, s, err := p.leading(q.LeaderEpoch)
	if err == ErrNotLeaderOrFollower && q.AnyReplica {
		err = nil
	}
	return log, s, err
}

// checkOffsets says why the end that the asking one may see is not known; brokers see the log end.
func (p *Partition) checkOffsets(log *commitlog.Log, s *PartitionState, q Lookup) error {
	if s.leadership == nil || q.Isolation == commitlog.ReadLogEnd {
		return nil
	}
	v := p.view(s, log, log.Offsets())
	return s.CheckOffsets(&v)
}

// SegmentOffsets answers ListOffsets 0, see commitlog.Log.SegmentOffsets.
func (p *Partition) SegmentOffsets(q Lookup, count int) ([]int64, error) {
	log, _, err := p.askable(q)
	if err != nil {
		return nil, err
	}
	return log.SegmentOffsets(q.Timestamp, count, q.Isolation)
}

// HighWatermark as an offset of DeleteRecords means all records.
const HighWatermark int64 = -1

// DeleteRecords makes offset the log start, waits until all replicas that live have done so,
// and returns the low watermark: the smallest log start of all of them. At the deadline, or
// at the end of ctx, that is ErrTimedOut.
func (p *Partition) DeleteRecords(ctx context.Context, offset int64, deadline time.Time) (lowWatermark int64, err error) {
	log, _, err := p.leading(NoEpoch)
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
	return p.awaitDeleted(ctx, offset, deadline)
}

func (p *Partition) awaitDeleted(ctx context.Context, offset int64, deadline time.Time) (low int64, err error) {
	deletes := &p.topic.manager.delayedDeletes
	deletes.Add(1)
	defer deletes.Add(-1)
	err = p.await(ctx, deadline, func() (bool, error) {
		log, s, err := p.leading(NoEpoch)
		if err == nil {
			low = p.lowWatermark(log, s)
		}
		return err != nil || low >= offset, err
	})
	return low, err
}

func (p *Partition) lowWatermark(log *commitlog.Log, s *PartitionState) int64 {
	p.followers.Lock()
	defer p.followers.Unlock()
	v := p.view(s, log, log.Offsets())
	return s.LowWatermark(&v)
}
