package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// ErrStale is the answer to a proposal that was decided on a Tail which something else was proposed
// behind, or part of which has failed: decide again.
var ErrStale = errors.New("the records were decided on metadata of before")

// ErrNotLeader is the answer to a proposal on a node that does not lead, or leads no more; then the
// records may have been committed all the same.
var ErrNotLeader = errors.New("this node does not lead the metadata log")

// inFlightMax bounds the proposals that are not published yet. raft's queue has a place for each.
const inFlightMax = 64

// A Tail is the metadata with all that was proposed, committed or not, and the offset of the next
// record. What is decided on it builds on what was proposed before.
type Tail struct {
	Image      *metadata.Image
	NextOffset int64
	Epoch      int32 // of this node's leadership
	version    uint64
}

// proposals are those that are not published yet. What they are built on each other is one chain: if
// one fails, so do those behind it, and nothing is proposed until the last of them is complete.
type proposals struct {
	slots  chan struct{}  // a token for each in flight
	flying chan *proposal // those, in order

	// mu is held for no longer than it takes to queue a proposal.
	mu struct {
		sync.Mutex
		closed  bool
		count   int
		last    *proposal
		tail    Tail  // with no Image when none is in flight: the newest published is the tail then
		failure error // of the first that failed, while any is in flight
	}
}

// A proposal is a batch on its way into the log and to the subscribers.
type proposal struct {
	future raft.ApplyFuture
	done   chan struct{} // closed when it is published, or err is set
	err    error
}

func newProposals() proposals {
	return proposals{slots: make(chan struct{}, inFlightMax), flying: make(chan *proposal, inFlightMax)}
}

// wait waits until the proposal is published, or ctx is over: then it may yet be.
func (p *proposal) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tail returns what the next proposal builds on.
func (q *Quorum) Tail() Tail {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	t := m.tail
	if t.Image == nil {
		t.Image, t.NextOffset = q.Image(), q.log.NextOffset()
	}
	return t
}

// Propose proposes records that were decided on a Tail and returns a function that waits until they
// are committed and all subscribers have seen them. Without records it waits for what the Tail holds.
// Records that do not fit are refused and change nothing; an error of wait says that they may have
// been committed. ctx bounds the wait for a place in the queue.
func (q *Quorum) Propose(ctx context.Context, t Tail, records []metadata.Record) (wait func(context.Context) error, err error) {
	if !q.Leads() {
		return nil, ErrNotLeader
	}
	if len(records) == 0 {
		return q.awaitTail(t)
	}
	next := Tail{NextOffset: t.NextOffset + int64(len(records))}
	if next.Image, _, err = t.Image.Apply(records, next.NextOffset-1, t.Image.Epoch); err != nil {
		return nil, err
	}
	return q.submit(ctx, t, next, records)
}

// awaitTail returns a function that waits for what is in flight: an answer that was made of it must
// not leave before.
func (q *Quorum) awaitTail(t Tail) (func(context.Context) error, error) {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	if m.tail.version != t.version {
		return nil, ErrStale
	}
	if m.last == nil {
		return func(context.Context) error { return nil }, nil
	}
	return m.last.wait, nil
}

// submit proposes records behind a Tail; next is the Tail from then on.
func (q *Quorum) submit(ctx context.Context, t, next Tail, records []metadata.Record) (func(context.Context) error, error) {
	if err := errors.Join(ctx.Err(), q.machine.broken()); err != nil {
		return nil, err
	}
	batch, err := proposedBatch(records, t.Image.Feature(metadata.MetadataVersion), t.Epoch, q.opts.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	if len(batch) > batchSizeMax {
		return nil, fmt.Errorf("%d metadata records take %d bytes, at most %d can be committed together", len(records), len(batch), batchSizeMax)
	}
	select {
	case q.proposals.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := q.enqueue(t, next, batch)
	if err != nil {
		<-q.proposals.slots
		return nil, err
	}
	return p.wait, nil
}

// enqueue gives a batch to raft, if the Tail is still the newest.
func (q *Quorum) enqueue(t, next Tail, batch []byte) (*proposal, error) {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case m.failure != nil:
		return nil, m.failure
	case m.tail.version != t.version:
		return nil, ErrStale
	}
	p := &proposal{future: q.raft.Apply(batch, 0), done: make(chan struct{})} // there is a place for it: it has a slot
	next.version, next.Epoch = t.version+1, t.Epoch
	m.tail, m.last = next, p
	m.count++
	q.proposals.flying <- p
	return p, nil
}

// completeProposals sees every proposal to its end, in order, until closeProposals.
func (q *Quorum) completeProposals() {
	for p := range q.proposals.flying {
		q.reply(p, q.outcome(p.future))
		<-q.proposals.slots
	}
}

// outcome waits until a proposal is published.
func (q *Quorum) outcome(future raft.ApplyFuture) error {
	if err := future.Error(); err != nil {
		return q.explain(err)
	}
	p := future.Response().(*publication)
	<-p.done
	return p.err
}

func (q *Quorum) reply(p *proposal, err error) {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	m.count--
	if err != nil {
		m.failure = err
		m.tail.version++
	}
	if m.count == 0 {
		m.tail.Image = nil
		m.last, m.failure = nil, nil
	}
	p.err = err
	close(p.done)
}

// explain says what is behind an error of raft's.
func (q *Quorum) explain(err error) error {
	failed := q.fail.get()
	switch {
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	case failed != nil:
		return fmt.Errorf("metadata log: %w", failed)
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return err
}

// beginEpoch makes every Tail an old one: others may have led since it was taken. What is proposed from
// now on is of this epoch, and refused by the log in another.
func (q *Quorum) beginEpoch(epoch int32) {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	m.tail.version++
	m.tail.Epoch = epoch
}

// closeProposals refuses what comes; what is in flight is seen to its end.
func (q *Quorum) closeProposals() {
	m := &q.proposals.mu
	m.Lock()
	defer m.Unlock()
	m.closed = true
	close(q.proposals.flying)
}
