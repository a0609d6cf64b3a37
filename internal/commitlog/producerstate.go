package commitlog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// batchesKept is how many batches of a producer are remembered to recognise a retry:
// the most that an idempotent producer may have in flight.
const batchesKept = 5

// A ProducerState knows what idempotent and transactional producers wrote: enough to
// recognise a retried batch, a gap, a fenced producer, and where open transactions begin.
// (Kafka class ProducerStateManager; doc/format.md 5.3.) It is a plain data structure:
// the owner, a Log, guards it with its mutex and gives it time as an argument.
type ProducerState struct {
	producers map[int64]*producer // nil until there is one: most logs of a broker have none

	// open holds the producers with an open transaction, by first offset.
	open []*producer

	// ended holds transactions whose marker is not below the high watermark yet, by first
	// offset: read_committed must not see past their beginning.
	ended []CompletedTxn

	// doubts are transactions whose end may be in a damage. They are in nobody's way.
	doubts []doubt

	// lost are transactions that are known to have lost their end; nil for none.
	lost *lostTxns

	// end is the first offset the state does not cover.
	end int64
}

// A producer is what is known of one producer id.
type producer struct {
	id               int64
	epoch            int16
	coordinatorEpoch int32 // of the last marker, -1 for none
	lastTimestamp    int64
	txn              position // first offset of the open transaction, -1 for none

	batches [batchesKept]producerBatch // a ring: the newest is batches[newest]
	newest  int8
	count   int8
}

// A producerBatch is one data batch, as told again to a producer that sends it twice.
type producerBatch struct {
	lastSequence int32
	offsetDelta  int32 // lastOffset - first offset
	lastOffset   int64
	timestamp    int64
}

// A CompletedTxn is a transaction that a marker ended.
type CompletedTxn struct {
	ProducerID  int64
	FirstOffset int64
	LastOffset  int64 // of the marker
	Aborted     bool

	first position
}

// A ProducerInfo describes one producer, as DescribeProducers shows it.
type ProducerInfo struct {
	ProducerID       int64
	ProducerEpoch    int16
	LastSequence     int32 // -1 when no batch is known
	LastTimestamp    int64 // ms
	CoordinatorEpoch int32 // -1 for none
	TxnStartOffset   int64 // of the open transaction, -1 for none
}

func newProducerState(end int64) *ProducerState {
	return &ProducerState{end: end}
}

func (s *ProducerState) put(p *producer) {
	if s.producers == nil {
		s.producers = make(map[int64]*producer)
	}
	s.producers[p.id] = p
}

func (b producerBatch) firstSequence() int32 {
	if b.lastSequence < b.offsetDelta && b.lastSequence >= 0 {
		return math.MaxInt32 - (b.offsetDelta - b.lastSequence) + 1
	}
	return b.lastSequence - b.offsetDelta
}

func (b producerBatch) firstOffset() int64 { return b.lastOffset - int64(b.offsetDelta) }

func (p *producer) lastSequence() int32 {
	if p.count == 0 {
		return -1
	}
	return p.batches[p.newest].lastSequence
}

// find returns the remembered batch with exactly these sequences.
func (p *producer) find(first, last int32) (producerBatch, bool) {
	for i := range p.count {
		b := p.batches[(p.newest-i+batchesKept)%batchesKept]
		if b.lastSequence == last && b.firstSequence() == first {
			return b, true
		}
	}
	return producerBatch{}, false
}

func (p *producer) add(b producerBatch) {
	p.newest = (p.newest + 1) % batchesKept
	p.count = min(p.count+1, batchesKept)
	p.batches[p.newest] = b
}

// setEpoch forgets the batches of an older incarnation.
func (p *producer) setEpoch(epoch int16) {
	if p.epoch != epoch {
		p.epoch, p.count = epoch, 0
	}
}

func (p *producer) isExpired(now time.Time, expiration time.Duration) bool {
	return p.txn.offset < 0 && now.UnixMilli()-p.lastTimestamp >= expiration.Milliseconds()
}

// duplicate returns the batch that b, sent by a client, repeats.
func (s *ProducerState) duplicate(b record.Batch) (producerBatch, bool) {
	p := s.producers[b.ProducerID()]
	if p == nil || p.epoch != b.ProducerEpoch() {
		return producerBatch{}, false
	}
	return p.find(b.BaseSequence(), b.LastSequence())
}

// newest returns the last batch of the producer of b, which it repeats or which is behind that.
func (s *ProducerState) newest(b record.Batch) producerBatch {
	p := s.producers[b.ProducerID()]
	return p.batches[p.newest]
}

// endsWith reports whether b, which repeats the batch had, goes on where the log has its producer.
func (s *ProducerState) endsWith(b record.Batch, had producerBatch) bool {
	return s.newest(b) == had && b.IsTransactional() == (s.producers[b.ProducerID()].txn.offset >= 0)
}

// check says why a leader must refuse b, which has a producer id. Followers and recovery
// do not ask: what a leader accepted they must take.
func (s *ProducerState) check(b record.Batch, m endTxn, o AppendOptions) error {
	p := s.producers[b.ProducerID()]
	if p == nil {
		return nil // any sequence may be the first: the log may have forgotten the producer
	}
	if b.IsControl() {
		return p.checkMarker(b, m, o.TransactionVersion)
	}
	if b.ProducerEpoch() < p.epoch {
		return fmt.Errorf("%w: producer %d has epoch %d, last seen %d", ErrInvalidProducerEpoch, p.id, b.ProducerEpoch(), p.epoch)
	}
	if o.Origin == record.Client {
		if err := p.checkSequence(b); err != nil {
			return err
		}
	}
	if p.txn.offset >= 0 && !b.IsTransactional() {
		return fmt.Errorf("%w: producer %d wrote a batch outside its transaction open since offset %d", ErrInvalidTxnState, p.id, p.txn.offset)
	}
	return nil
}

func (p *producer) checkSequence(b record.Batch) error {
	last, first := p.lastSequence(), b.BaseSequence()
	if b.ProducerEpoch() != p.epoch {
		if last = -1; first == 0 || p.epoch == -1 {
			return nil
		}
	} else if p.epoch == -1 || int64(first) == int64(last)+1 || first == 0 && last == math.MaxInt32 {
		return nil
	}
	return fmt.Errorf("%w: producer %d epoch %d sent sequence %d, last seen %d", ErrOutOfOrderSequence, p.id, b.ProducerEpoch(), first, last)
}

func (p *producer) checkMarker(b record.Batch, m endTxn, transactionVersion int16) error {
	epoch := b.ProducerEpoch()
	if epoch < p.epoch || transactionVersion >= 2 && epoch == p.epoch {
		return fmt.Errorf("%w: marker of producer %d has epoch %d, last seen %d", ErrInvalidProducerEpoch, p.id, epoch, p.epoch)
	}
	if m.coordinatorEpoch < p.coordinatorEpoch {
		return fmt.Errorf("%w: marker of producer %d has coordinator epoch %d, last seen %d", ErrTransactionCoordinatorFenced, p.id, m.coordinatorEpoch, p.coordinatorEpoch)
	}
	return nil
}

// apply takes in a batch with a producer id that is in the log at the given position,
// whatever check says of it. A marker that ends an open transaction returns that
// transaction: the caller notes it in the index of aborted ones, if it was, and then calls
// complete.
func (s *ProducerState) apply(b record.Batch, m endTxn, at position) (CompletedTxn, bool) {
	if b.IsControl() && !m.valid {
		return CompletedTxn{}, false // compacted away, or no marker of a transaction
	}
	p := s.producers[b.ProducerID()]
	if p == nil {
		p = &producer{id: b.ProducerID(), epoch: b.ProducerEpoch(), coordinatorEpoch: -1, txn: noPosition}
		s.put(p)
	}
	s.endLost(b.BaseOffset())
	p.setEpoch(b.ProducerEpoch())
	p.lastTimestamp = b.MaxTimestamp()
	if b.IsControl() {
		p.coordinatorEpoch = m.coordinatorEpoch
		return s.endTxns(p, m.abort, b)
	}
	s.goOn(p, b)
	p.add(producerBatch{b.LastSequence(), b.LastOffsetDelta(), b.LastOffset(), b.MaxTimestamp()})
	if b.IsTransactional() && b.Count() > 0 && p.txn.offset < 0 { // compaction empties no batch of an open one
		p.txn = at
		s.insertOpen(p)
	}
	return CompletedTxn{}, false
}

func (s *ProducerState) endTxn(p *producer, abort bool, markerOffset int64) (CompletedTxn, bool) {
	if p.txn.offset < 0 {
		return CompletedTxn{}, false
	}
	t := CompletedTxn{p.id, p.txn.offset, markerOffset, abort, p.txn}
	i := slices.Index(s.open, p)
	s.open = slices.Delete(s.open, i, i+1)
	p.txn = noPosition
	return t, true
}

func (s *ProducerState) insertOpen(p *producer) {
	i, _ := slices.BinarySearchFunc(s.open, p, func(a, b *producer) int { return cmp.Compare(a.txn.offset, b.txn.offset) })
	s.open = slices.Insert(s.open, i, p)
}

// aborted is the entry of t in the index of aborted transactions. What that calls the last
// stable offset looks at the transactions that are still open only.
func (s *ProducerState) aborted(t CompletedTxn) segment.AbortedTxn {
	stable := t.LastOffset + 1
	if len(s.open) > 0 {
		stable = s.open[0].txn.offset
	}
	return segment.AbortedTxn{ProducerID: t.ProducerID, FirstOffset: t.FirstOffset, LastOffset: t.LastOffset, LastStableOffset: stable}
}

// complete keeps t in the way of read_committed until the high watermark passes its marker.
func (s *ProducerState) complete(t CompletedTxn) {
	i, _ := slices.BinarySearchFunc(s.ended, t, func(a, b CompletedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	s.ended = slices.Insert(s.ended, i, t)
}

// release forgets ended transactions whose marker is below offset: the high watermark, or
// a new log start.
func (s *ProducerState) release(offset int64) {
	if len(s.ended) > 0 {
		s.ended = slices.DeleteFunc(s.ended, func(t CompletedTxn) bool { return t.LastOffset < offset })
	}
}

// firstUnstable is where the first transaction begins that is open or not replicated yet.
func (s *ProducerState) firstUnstable() (position, bool) {
	first := noPosition
	if len(s.open) > 0 {
		first = s.open[0].txn
	}
	if len(s.ended) > 0 && (first.offset < 0 || s.ended[0].FirstOffset < first.offset) {
		first = s.ended[0].first
	}
	return first, first.offset >= 0
}

// expire forgets producers that wrote nothing for the expiration and have no open
// transaction.
func (s *ProducerState) expire(now time.Time, expiration time.Duration) (count int) {
	for id, p := range s.producers {
		if p.isExpired(now, expiration) {
			delete(s.producers, id)
			count++
		}
	}
	return count
}

// infos lists the producers by id.
func (s *ProducerState) infos() []ProducerInfo {
	list := make([]ProducerInfo, 0, len(s.producers))
	for _, p := range s.producers {
		list = append(list, ProducerInfo{p.id, p.epoch, p.lastSequence(), p.lastTimestamp, p.coordinatorEpoch, p.txn.offset})
	}
	slices.SortFunc(list, func(a, b ProducerInfo) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return list
}
