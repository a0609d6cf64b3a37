package coordinator

import (
	"errors"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/topic"
)

type phase int8

const (
	phaseLoading phase = iota
	phaseActive
	phaseStopped // resigned, replaced, closed, or its log could not be read
)

// A shard runs the machine of one partition during one leader epoch.
type shard[M Machine] struct {
	rt        *Runtime[M]
	partition topic.Partition
	epoch     int32
	loaded    chan struct{} // closed when the shard is no longer in phaseLoading

	// machine belongs to the goroutine that set mu.running.
	machine M
	// uncertain is set when an append's outcome is unknown: nothing is appended after
	// it. It belongs to the same goroutine.
	uncertain error

	// mu guards the queue and the life of the shard. It is held for a few instructions.
	mu struct {
		sync.Mutex
		phase   phase
		stopErr error // why, in phaseStopped
		running bool  // a goroutine is at work, or has ended for good (phaseStopped)
		queue   []Event[M]
		timer   *time.Timer // for the machine's deadline, while nothing runs
	}
}

func (s *shard[M]) currentPhase() phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.phase
}

func (s *shard[M]) submit(e Event[M]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.phase == phaseStopped:
		return s.mu.stopErr
	case s.mu.phase == phaseLoading && !e.Patient:
		return ErrLoading
	}
	s.mu.queue = append(s.mu.queue, e)
	if s.mu.phase == phaseActive {
		s.startLocked()
	}
	return nil
}

// startLocked makes sure that a goroutine looks at the queue and the phase.
func (s *shard[M]) startLocked() {
	if !s.mu.running {
		s.mu.running = true
		s.disarmLocked()
		s.rt.wg.Go(s.run)
	}
}

func (s *shard[M]) disarmLocked() {
	if s.mu.timer != nil {
		s.mu.timer.Stop()
		s.mu.timer = nil
	}
}

// stop ends the shard. What it holds is answered with err, by the shard's goroutine.
func (s *shard[M]) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.mu.phase
	if was == phaseStopped {
		return
	}
	s.mu.phase, s.mu.stopErr = phaseStopped, err
	switch was {
	case phaseLoading:
		close(s.loaded) // the loading goroutine sees it and answers the queue
	case phaseActive:
		s.startLocked()
	}
}

// wake is called by the timer.
func (s *shard[M]) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.phase == phaseActive {
		s.startLocked()
	}
}

// run works until nothing is left to do.
func (s *shard[M]) run() {
	for {
		events, goOn := s.next()
		if !goOn {
			return
		}
		if at, ok := s.machine.Deadline(); ok && !at.After(s.rt.o.Now()) {
			s.process(Event[M]{Run: func(m M, t *Turn) { m.Tick(t) }, Alone: true})
		}
		s.process(events...)
		if s.uncertain != nil {
			s.rt.reload(s)
		}
	}
}

// next takes what has been queued. When there is nothing to do it lets the goroutine go.
func (s *shard[M]) next() (events []Event[M], goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, s.mu.queue = s.mu.queue, nil
	if s.mu.phase == phaseStopped {
		failAll(events, s.mu.stopErr)
		s.machine.Stop(s.mu.stopErr)
		return nil, false
	}
	if len(events) > 0 {
		return events, true
	}
	at, ok := s.machine.Deadline()
	wait := at.Sub(s.rt.o.Now())
	if ok && wait <= 0 {
		return nil, true
	}
	s.mu.running = false
	if ok {
		s.mu.timer = time.AfterFunc(wait, s.wake)
	}
	return nil, false
}

func failAll[M Machine](events []Event[M], err error) {
	for _, e := range events {
		e.Fail(err)
	}
}

// process runs steps and commits what they write, several steps to a batch.
func (s *shard[M]) process(events ...Event[M]) {
	var writes []Write
	for _, e := range events {
		if e.Alone {
			s.commit(writes)
			writes = nil
		}
		t := &Turn{Now: s.rt.o.Now()}
		e.Run(s.machine, t)
		writes = append(writes, t.Writes...)
		if e.Alone {
			s.commit(writes)
			writes = nil
		}
	}
	s.commit(writes)
}

// commit appends writes, as few batches as hold them, and runs what follows each.
func (s *shard[M]) commit(writes []Write) {
	for len(writes) > 0 {
		n := countThatFits(writes, s.rt.o.MaxBatch)
		batch := writes[:n:n]
		t := &Turn{Now: s.rt.o.Now()}
		first, err := s.append(batch, t.NowMs())
		for _, w := range batch {
			w.Done(t, first, err)
			first += int64(len(w.Records))
		}
		writes = append(writes[n:], t.Writes...)
	}
}

func (s *shard[M]) append(writes []Write, nowMs int64) (int64, error) {
	if s.uncertain != nil {
		return -1, s.uncertain
	}
	if len(writes) == 1 && sizeBound(writes) > s.rt.o.MaxBatch {
		return -1, ErrBatchTooLarge
	}
	batch, err := encode(writes, s.rt.o.Codec, nowMs)
	if err != nil || batch == nil {
		return -1, err
	}
	first, err := s.rt.o.Log.Append(s.rt.ctx, s.partition, s.epoch, batch)
	if errors.Is(err, ErrUncertain) {
		s.uncertain = err
	}
	return first, err
}
