package coordinator

import (
	"context"
	"errors"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Log is what the runtime asks of the partitions below it. The broker implements it
// over replica.Manager. Methods are called concurrently, for one partition one at a time.
type Log interface {
	// Append writes one batch as leader of p in the given leader epoch, with the checks
	// of a coordinator's write (record.Coordinator), and returns the offset of its first
	// record once the batch is committed (acks=all). The batch is the callee's.
	//
	// An error that matches ErrUncertain means that the batch may be in the log, now or
	// later. Any other error means that it is not and never will be.
	Append(ctx context.Context, p topic.Partition, epoch int32, batch []byte) (int64, error)

	// AwaitCommitted waits until all is committed that was in the log of p at the time of the
	// call: a new leader does not know yet what the one before it acknowledged, and who
	// asked must not see what another leader may never have. It ends with an error when this
	// broker does not lead p any more, or with ctx.
	AwaitCommitted(ctx context.Context, p topic.Partition) error

	// Replay passes every batch of p, from the log's start to its high watermark at the time
	// of the call, to visit in order, control batches included. A batch is valid during the
	// visit only. Replay ends with the first error of visit, or of reading.
	Replay(ctx context.Context, p topic.Partition, visit func(record.Batch) error) error
}

// ErrUncertain matches an error of Log.Append after which nobody knows whether the batch
// will be committed: it was written and its replication timed out, or the write failed
// half way. The shard forgets its state and loads again.
var ErrUncertain = errors.New("append of unknown outcome")

// Refusals of Submit and Ask.
var (
	// ErrNotCoordinator: this broker does not lead the partition.
	ErrNotCoordinator = errors.New("this broker is not the coordinator")
	// ErrLoading: the partition's log is still being read.
	ErrLoading = errors.New("the coordinator is loading")
	// ErrClosed: the runtime is closed.
	ErrClosed = errors.New("the coordinator is closed")
)

// ErrBatchTooLarge is what Done gets for a write that does not fit in a batch.
var ErrBatchTooLarge = errors.New("records do not fit in a batch")
