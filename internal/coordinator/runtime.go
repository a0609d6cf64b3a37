package coordinator

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Options say what a Runtime runs and over what.
type Options[M Machine] struct {
	Topic    string                  // its partitions are the shards
	Log      Log                     // the partitions
	New      func(partition int32) M // an empty machine
	Now      func() time.Time        // default time.Now
	MaxBatch int                     // bytes of a batch at most, as the topic's max.message.bytes; default 1 MiB
	Codec    record.Codec            // of the batches
	Loaders  int                     // logs that are read at once; default 4
	Logger   *slog.Logger            // nil: no log
}

func (o *Options[M]) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxBatch = cmp.Or(o.MaxBatch, 1<<20)
	o.Loaders = cmp.Or(o.Loaders, 4)
}

// A Runtime runs the shards that this broker leads. All methods may be called
// concurrently.
type Runtime[M Machine] struct {
	o      Options[M]
	ctx    context.Context // ends with Close, for appends and loads
	cancel context.CancelFunc
	loads  chan struct{} // one token per log being read
	wg     sync.WaitGroup

	// mu guards the set of shards. Lock order: Runtime.mu, then shard.mu.
	mu struct {
		sync.RWMutex
		shards map[int32]*shard[M] // by partition; replaced, never reused, at a new epoch
		closed bool
	}
}

// New returns a runtime that leads nothing yet.
func New[M Machine](o Options[M]) *Runtime[M] {
	o.setDefaults()
	r := &Runtime[M]{o: o, loads: make(chan struct{}, o.Loaders)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.shards = make(map[int32]*shard[M])
	return r
}

// Lead makes this broker the coordinator of a partition in a leader epoch: the log is
// read in the background, and events are taken when that is done. A call with an epoch
// that is not later than the present one changes nothing.
func (r *Runtime[M]) Lead(partition, epoch int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.mu.shards[partition]
	if r.mu.closed || have != nil && epoch <= have.epoch {
		return
	}
	if have != nil {
		have.stop(ErrNotCoordinator)
	}
	r.startLocked(partition, epoch)
}

func (r *Runtime[M]) startLocked(partition, epoch int32) {
	s := &shard[M]{
		rt: r, epoch: epoch, partition: topic.Partition{Topic: r.o.Topic, Partition: partition},
		loaded: make(chan struct{}),
	}
	r.mu.shards[partition] = s
	r.wg.Go(s.load)
}

// Resign ends this broker's part as coordinator of a partition, unless it leads in a
// later epoch by now. Requests that wait get ErrNotCoordinator.
func (r *Runtime[M]) Resign(partition, epoch int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.mu.shards[partition]; s != nil && s.epoch <= epoch {
		s.stop(ErrNotCoordinator)
		delete(r.mu.shards, partition)
	}
}

// reload replaces a shard that no longer knows what its log holds.
func (r *Runtime[M]) reload(s *shard[M]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stop(ErrNotCoordinator)
	if !r.mu.closed && r.mu.shards[s.partition.Partition] == s {
		r.o.Logger.Warn("coordinator loads again", "partition", s.partition, "err", s.uncertain)
		r.startLocked(s.partition.Partition, s.epoch)
	}
}

// Partitions lists the partitions that this broker leads and whose logs it could read, or
// is reading, in order.
func (r *Runtime[M]) Partitions() []int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []int32
	for p, s := range r.mu.shards {
		if s.currentPhase() != phaseStopped {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// Close stops all shards, answers what waits in them with ErrClosed, and returns when no
// goroutine of the runtime is left. Appends that are on their way are cut short.
func (r *Runtime[M]) Close() {
	r.mu.Lock()
	r.mu.closed = true
	for _, s := range r.mu.shards {
		s.stop(ErrClosed)
	}
	clear(r.mu.shards)
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// An Event is one step for a shard. Exactly one of Run and Fail is called, in the shard's
// goroutine; Fail when the shard stops before the event's turn comes.
type Event[M Machine] struct {
	Run  func(m M, t *Turn)
	Fail func(err error)
	// Alone keeps the event from sharing a batch: it sees a state that includes
	// everything written before it, and what it writes is in the state before the next.
	Alone bool
	// Patient events are taken while the shard is loading. Others are refused: their
	// clients would not know whether to wait or to come again.
	Patient bool
}

// Submit hands an event to the shard of a partition. An error means that it was not taken.
func (r *Runtime[M]) Submit(partition int32, e Event[M]) error {
	r.mu.RLock()
	s, closed := r.mu.shards[partition], r.mu.closed
	r.mu.RUnlock()
	switch {
	case closed:
		return ErrClosed
	case s == nil:
		return ErrNotCoordinator
	}
	return s.submit(e)
}

// loadGrace is how long Ask waits for a log that is being read. Most take milliseconds,
// and some clients know no better answer to ErrLoading than to give up.
const loadGrace = 500 * time.Millisecond

// submitLoaded is Submit with some patience.
func (r *Runtime[M]) submitLoaded(ctx context.Context, partition int32, e Event[M]) error {
	err := r.Submit(partition, e)
	if err != ErrLoading {
		return err
	}
	grace := time.NewTimer(loadGrace)
	defer grace.Stop()
	r.mu.RLock()
	s := r.mu.shards[partition]
	r.mu.RUnlock()
	if s == nil {
		return ErrNotCoordinator
	}
	select {
	case <-s.loaded:
		return r.Submit(partition, e)
	case <-grace.C:
		return ErrLoading
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Company says whether a step may share a batch with others, see Event.Alone.
type Company int

// The zero value is Shared.
const (
	Shared Company = iota
	Alone
)

// Ask submits a step and waits for its reply. The step, or what follows it, calls reply
// once. When ctx ends first Ask returns its error and the step goes on without it.
func Ask[M Machine, R any](ctx context.Context, r *Runtime[M], partition int32, c Company, step func(m M, t *Turn, reply func(R))) (R, error) {
	type answer struct {
		value R
		err   error
	}
	answers := make(chan answer, 1)
	send := func(a answer) {
		select {
		case answers <- a:
		default:
			panic("BUG: coordinator: a step was answered twice")
		}
	}
	err := r.submitLoaded(ctx, partition, Event[M]{
		Run:   func(m M, t *Turn) { step(m, t, func(v R) { send(answer{value: v}) }) },
		Fail:  func(err error) { send(answer{err: err}) },
		Alone: c == Alone,
	})
	if err != nil {
		return *new(R), err
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return *new(R), ctx.Err()
	}
}
