package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// coordinatorLog gives coordinators the partitions of their topics. (coordinator.Log)
type coordinatorLog struct {
	replicas   *replica.Manager
	timeout    func() time.Duration // for a batch to be committed
	loadBuffer func() int           // bytes read at once when a shard loads
	logger     *slog.Logger
}

func (l *coordinatorLog) Append(ctx context.Context, p topic.Partition, epoch int32, batch []byte) (int64, error) {
	partition, err := l.replicas.Partition(p)
	if err != nil {
		return -1, err
	}
	info, err := partition.Append(batch, replica.AppendOptions{Origin: record.Coordinator, AllInSync: true, LeaderEpoch: epoch})
	if err != nil {
		return -1, uncertain(err)
	}
	if info.FlushTo > 0 {
		log, err := partition.Log()
		if err == nil {
			err = log.FlushTo(info.FlushTo)
		}
		if err != nil {
			return -1, errors.Join(coordinator.ErrUncertain, err)
		}
	}
	if err := partition.AwaitCommitted(ctx, info.LastOffset+1, time.Now().Add(l.timeout())); err != nil {
		return -1, errors.Join(coordinator.ErrUncertain, err)
	}
	return info.FirstOffset, nil
}

// uncertain marks a write that failed half way: some of the batch may be in the file.
func uncertain(err error) error {
	if errors.Is(err, commitlog.ErrStorage) {
		return errors.Join(coordinator.ErrUncertain, err)
	}
	return err
}

// open returns a partition and its log.
func (l *coordinatorLog) open(p topic.Partition) (*replica.Partition, *commitlog.Log, error) {
	partition, err := l.replicas.Partition(p)
	if err != nil {
		return nil, nil, err
	}
	log, err := partition.Log()
	return partition, log, err
}

func (l *coordinatorLog) AwaitCommitted(ctx context.Context, p topic.Partition) error {
	partition, log, err := l.open(p)
	if err != nil {
		return err
	}
	return partition.AwaitCommitted(ctx, log.Offsets().End, time.Now().Add(math.MaxInt64))
}

func (l *coordinatorLog) Replay(ctx context.Context, p topic.Partition, visit func(record.Batch) error) error {
	_, log, err := l.open(p)
	if err != nil {
		return err
	}
	skipped, err := replayLog(ctx, log, l.loadBuffer(), visit)
	if skipped > 0 {
		l.logger.Error("offsets are damaged and skipped: what groups had there is lost", "partition", p, "count", skipped)
	}
	return err
}

// replayLog passes the batches of a log up to its high watermark to visit. What is in quarantine costs its own records, not those
// of all groups: it returns how many offsets that were.
func replayLog(ctx context.Context, log *commitlog.Log, sizeMax int, visit func(record.Batch) error) (skipped int64, err error) {
	offsets := log.Offsets()
	buf := make([]byte, 0, 64<<10)
	for at := offsets.LogStart; at < offsets.HighWatermark; {
		if ctx.Err() != nil {
			return skipped, ctx.Err()
		}
		if buf, err = readSet(log, at, sizeMax, buf); err != nil {
			if corrupt, ok := errors.AsType[*segment.CorruptError](err); ok && corrupt.End > at {
				skipped += corrupt.End - at
				at = corrupt.End
				continue
			}
			return skipped, err
		}
		next, err := visitSet(buf, at, visit)
		if err != nil {
			return skipped, err
		}
		if next <= at {
			break // the rest was truncated or compacted away meanwhile
		}
		at = next
	}
	return skipped, nil
}

// readSet reads whole batches from an offset on into buf, which grows as needed.
func readSet(log *commitlog.Log, at int64, sizeMax int, buf []byte) ([]byte, error) {
	read, err := log.Read(at, sizeMax, commitlog.ReadUncommitted, segment.WholeFirst)
	if err != nil {
		return nil, err
	}
	defer read.Slice.Release()
	size := read.Slice.Size()
	if size > cap(buf) {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	_, err = read.Slice.ReadAt(buf, 0)
	return buf, err
}

// visitSet passes the batches of a set to visit and returns the offset behind them. An
// incomplete batch at the end of the set is left for the next read.
func visitSet(set []byte, next int64, visit func(record.Batch) error) (int64, error) {
	for b, err := range record.Batches(set) {
		if err != nil {
			return next, fmt.Errorf("offset %d: %w", next, err)
		}
		if err := visit(b); err != nil {
			return next, err
		}
		next = b.NextOffset()
	}
	return next, nil
}
