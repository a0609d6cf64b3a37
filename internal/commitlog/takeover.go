package commitlog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// TakeOver makes a complete copy know what the batches do not tell: producers whose records are gone or
// damaged, leader epochs, and what became of transactions. Nothing may be appended to either meanwhile.
func (l *Log) TakeOver(from *Log) error {
	epochs := from.provenEpochs().list()
	lost, err := from.lostTransactions()
	if err != nil {
		return err
	}
	from.mu.Lock()
	producers, entered := from.mu.producers.copy(), from.epochs.entered.Load()
	from.mu.Unlock()
	l.mu.Lock()
	defer l.unlockRolled()
	if err := l.usableLocked(); err != nil {
		return err
	}
	l.epochs.store(epochs)
	l.epochs.entered.Store(entered)
	l.epochs.proven.Store(from.epochs.proven.Load())
	l.mu.producers = producers
	l.offsets.publish(l.offsets.next(), l.mu.producers)
	had, err := l.lostTransactionsLocked()
	if err == nil && (len(had.list) > 0 || len(lost.list) > 0) {
		err = l.setLostLocked(lost)
	}
	if err == nil {
		err = l.takeAbortedLocked(from.Offsets().segments)
	}
	if err != nil {
		return err
	}
	return l.keepProducersLocked()
}

// keepProducersLocked writes a snapshot of the producers that the next start believes, also after a
// crash: that takes a segment which begins there.
func (l *Log) keepProducersLocked() error {
	if err := l.mu.snapshots.remove(l.offsets.data); err != nil {
		return err
	}
	switch {
	case len(l.mu.producers.producers) == 0:
		return nil
	case l.offsets.Load().active().Size() > 0:
		return l.rollLocked(l.offsets.data, "taken over", l.config.Load())
	}
	l.mu.producers.end = l.offsets.data
	return l.mu.snapshots.write(l.mu.producers)
}

// takeAbortedLocked takes over the indexes of aborted transactions if there is damage, which may have
// their markers. What else there is to know of transactions readers find out, as after a start.
func (l *Log) takeAbortedLocked(from []*segment.Segment) error {
	if len(l.Quarantine()) == 0 {
		return nil
	}
	known := map[int64]segment.AbortedTxn{}
	for _, s := range from {
		aborted, _, err := s.StoredAborted()
		if err != nil {
			return err
		}
		for _, a := range aborted {
			known[a.LastOffset] = a
		}
	}
	segments := l.offsets.Load().segments
	for i, s := range segments {
		if err := takeAborted(segments, i, known); err != nil {
			return err
		}
		s.DoubtTxns()
	}
	l.facts.Store(nil)
	return nil
}

// takeAborted brings in what is known, by last offset, of the transactions that end in segment i.
func takeAborted(segments []*segment.Segment, i int, known map[int64]segment.AbortedTxn) error {
	had, _, err := segments[i].StoredAborted()
	if err != nil {
		return err
	}
	has := map[int64]segment.AbortedTxn{}
	for _, a := range had {
		has[a.LastOffset] = a
	}
	for last, a := range known {
		if floorSegment(segments, last) == i {
			has[last] = a
		}
	}
	list := slices.SortedFunc(maps.Values(has), func(a, b segment.AbortedTxn) int { return cmp.Compare(a.LastOffset, b.LastOffset) })
	if slices.Equal(list, had) {
		return nil
	}
	return segments[i].ReplaceAborted(list)
}

// copy returns a copy that knows no places in files.
func (s *ProducerState) copy() *ProducerState {
	c := newProducerState(s.end)
	for _, p := range s.producers {
		other := *p
		other.txn = position{offset: p.txn.offset}
		c.put(&other)
		if other.txn.offset >= 0 {
			c.insertOpen(&other)
		}
	}
	for _, t := range s.ended {
		t.first = position{offset: t.first.offset}
		c.ended = append(c.ended, t)
	}
	return c
}
