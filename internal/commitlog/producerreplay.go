package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// replayProducers returns the producer state at end: the newest snapshot, and what the
// batches behind it say.
func (l *Log) replayProducers(segments []*segment.Segment, logStart, end int64) (*ProducerState, error) {
	state, err := l.mu.snapshots.load(logStart, end, l.now(), time.Duration(l.expiration.Load()))
	if err != nil {
		return nil, err
	}
	if state.lost, err = l.lostTransactionsLocked(); err != nil {
		return nil, err
	}
	for i := max(0, floorSegment(segments, state.end)); i < len(segments) && state.end < end; i++ {
		if err := replaySegment(state, segments[i], end); err != nil {
			return nil, fmt.Errorf("%v: %w", l.partition, err)
		}
	}
	state.end = end
	state.endLost(end)
	return state, nil
}

// replaySegment applies the batches of s in [state.end, end).
func replaySegment(state *ProducerState, s *segment.Segment, end int64) error {
	from, ok, err := s.Translate(state.end, 0)
	if errors.Is(err, record.ErrCorrupt) {
		return nil
	}
	if err != nil || !ok {
		return err
	}
	aborted, _, err := s.StoredAborted()
	if err != nil {
		return err
	}
	return walkProducers(s, from.Position, func(located segment.Located) bool {
		b := located.Batch
		if b.BaseOffset() >= end {
			return false
		}
		if b.ProducerID() >= 0 && b.LastOffset() >= state.end {
			if t, ended := state.apply(b, parseEndTxn(b), position{b.BaseOffset(), s, located.Position}); ended {
				state.complete(t)
			}
		}
		state.end = max(state.end, b.NextOffset())
		return true
	}, func(d segment.Damage) error {
		if d.End <= state.end || d.First >= end {
			return nil
		}
		t, ended, err := state.lostIn(s, d, aborted)
		if ended {
			state.complete(t)
		}
		return err
	})
}

// resetProducersLocked makes the producer state that of the log end, after a truncation
// to next. Ongoing are transactions that were open behind damage.
func (l *Log) resetProducersLocked(next *Offsets, ongoing []segment.OpenTxn) error {
	empty := len(l.mu.producers.producers) == 0
	if err := l.mu.snapshots.removeIf(func(offset int64) bool { return offset > next.End }); err != nil {
		return err
	}
	if empty {
		l.mu.producers = newProducerState(next.End)
		return nil
	}
	state, err := l.replayProducers(next.segments, next.LogStart, next.End)
	if err != nil {
		return err
	}
	state.goesOn(func(producerID, first int64) bool {
		return l.mu.producers.beginsOpen(producerID, first) || slices.Contains(ongoing, segment.OpenTxn{ProducerID: producerID, FirstOffset: first})
	})
	state.doubts, state.lost = nil, nil
	l.mu.producers = state
	again := l.offsets.next()
	l.offsets.publish(again, l.mu.producers)
	return nil
}
