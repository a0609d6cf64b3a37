package commitlog

import (
	"errors"
	"fmt"
)

// Check walks over the whole log and reports every broken invariant: frames, checksums,
// offsets and indexes of each segment, the order of segments, the published offsets, the
// leader epochs, and the producer state against what the batches say. What is in quarantine
// counts as known. It reads everything, and nothing may change the log meanwhile.
func (l *Log) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	errs := []error{o.check(), l.epochs.check(o.End)}
	for i, s := range o.segments {
		if err := s.Check(); err != nil {
			errs = append(errs, err)
			continue
		}
		end := o.End
		if i+1 < len(o.segments) {
			end = o.segments[i+1].BaseOffset()
		}
		if next, err := s.NextOffset(); err != nil {
			errs = append(errs, err)
		} else if next > end {
			errs = append(errs, fmt.Errorf("segment %d ends at %d, beyond %d", s.BaseOffset(), next, end))
		}
	}
	errs = append(errs, l.checkProducersLocked(o))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%v: %w", l.partition, err)
	}
	return nil
}

func (o *Offsets) check() error {
	if o.LogStart > o.LastStable || o.LastStable > o.HighWatermark || o.HighWatermark > o.End {
		return fmt.Errorf("offsets out of order: log start %d, last stable %d, high watermark %d, end %d",
			o.LogStart, o.LastStable, o.HighWatermark, o.End)
	}
	for i := 1; i < len(o.segments); i++ {
		if o.segments[i-1].BaseOffset() >= o.segments[i].BaseOffset() {
			return fmt.Errorf("segment %d is not above %d", o.segments[i].BaseOffset(), o.segments[i-1].BaseOffset())
		}
	}
	active := o.active()
	if o.End < active.BaseOffset() {
		return fmt.Errorf("log end %d below segment %d", o.End, active.BaseOffset())
	}
	if o.end.segment != active || o.end.pos != active.Size() {
		return fmt.Errorf("log end is at byte %d, the active segment has %d", o.end.pos, active.Size())
	}
	return nil
}

func (c *EpochCache) check(end int64) error {
	entries := c.list()
	for i, e := range entries {
		if e.StartOffset > end {
			return fmt.Errorf("leader epoch %d begins at %d, beyond the log end %d", e.Epoch, e.StartOffset, end)
		}
		if i > 0 && (entries[i-1].Epoch >= e.Epoch || entries[i-1].StartOffset >= e.StartOffset) {
			return fmt.Errorf("leader epoch %d at %d follows %d at %d", e.Epoch, e.StartOffset, entries[i-1].Epoch, entries[i-1].StartOffset)
		}
	}
	return nil
}

// checkProducersLocked compares with a state made from all batches there are. That state
// has producers which the log has let expire, and lacks what was deleted.
func (l *Log) checkProducersLocked(o *Offsets) error {
	if end := l.mu.producers.end; end != o.End {
		return fmt.Errorf("producer state ends at %d, the log at %d", end, o.End)
	}
	lost, err := l.lostTransactionsLocked()
	if err != nil || len(lost.list) > 0 || len(l.Quarantine()) > 0 {
		return err // what there was to compare with may be damaged
	}
	first := o.segments[0].BaseOffset()
	replayed := newProducerState(first)
	for _, s := range o.segments {
		if err := replaySegment(replayed, s, o.End); err != nil {
			return err
		}
	}
	for id, p := range l.mu.producers.producers {
		if err := p.check(replayed.producers[id], first, o.LogStart); err != nil {
			return err
		}
	}
	for _, p := range replayed.open {
		if p.batches[p.newest].lastOffset < o.LogStart {
			continue // may be forgotten with its records
		}
		if q := l.mu.producers.producers[p.id]; q == nil || q.txn.offset < 0 {
			return fmt.Errorf("transaction of producer %d open since %d is not known", p.id, p.txn.offset)
		}
	}
	return nil
}

// check compares with r, the same producer made from the batches from first on. A
// transaction open since before the log start may be known by a later batch of it.
func (p *producer) check(r *producer, first, logStart int64) error {
	last := p.batches[p.newest]
	if p.count == 0 || last.lastOffset < first {
		return nil // what it wrote is gone, or was a marker
	}
	if r == nil || r.count == 0 {
		return fmt.Errorf("producer %d has a batch up to %d that is not in the log", p.id, last.lastOffset)
	}
	// A snapshot does not keep the timestamp of the batch, so it is not compared.
	got := r.batches[r.newest]
	got.timestamp = last.timestamp
	if got != last || r.epoch != p.epoch {
		return fmt.Errorf("producer %d epoch %d ended with %+v, in the log epoch %d with %+v", p.id, p.epoch, last, r.epoch, got)
	}
	if p.txn.offset == r.txn.offset || p.txn.offset >= 0 && min(p.txn.offset, r.txn.offset) < logStart {
		return nil
	}
	return fmt.Errorf("producer %d has a transaction open since %d, in the log since %d", p.id, p.txn.offset, r.txn.offset)
}
