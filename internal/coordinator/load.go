package coordinator

import (
	"context"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
)

// load reads the partition's log into a new machine, then lets the shard take events.
func (s *shard[M]) load() {
	start := s.rt.o.Now()
	machine, count, err := s.read()
	if !s.endLoading(machine, err) {
		return
	}
	s.rt.o.Logger.Debug("coordinator loaded", "partition", s.partition, "epoch", s.epoch,
		"records", count, "took", s.rt.o.Now().Sub(start).Round(time.Microsecond))
	s.process(Event[M]{Run: func(m M, t *Turn) { m.Loaded(t) }, Alone: true})
	s.run()
}

// endLoading makes the shard active, or stops it when its log could not be read. It
// reports whether the shard is active; if so its goroutine is the caller's.
func (s *shard[M]) endLoading(machine M, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.mu.phase == phaseLoading {
		s.rt.o.Logger.Error("coordinator cannot load", "partition", s.partition, "epoch", s.epoch, "err", err)
		s.mu.phase, s.mu.stopErr = phaseStopped, ErrNotCoordinator
		close(s.loaded)
	}
	if s.mu.phase == phaseStopped {
		failAll(s.mu.queue, s.mu.stopErr)
		s.mu.queue = nil
		return false
	}
	s.machine = machine
	s.mu.phase, s.mu.running = phaseActive, true
	close(s.loaded)
	return true
}

// read waits until the log can be read, without holding up other logs, and reads it.
func (s *shard[M]) read() (machine M, count int, err error) {
	if err := s.rt.o.Log.AwaitCommitted(s.rt.ctx, s.partition); err != nil {
		return machine, 0, err
	}
	s.rt.loads <- struct{}{}
	defer func() { <-s.rt.loads }()
	return s.replay()
}

// replay returns the machine that the log adds up to, and the count of its records.
func (s *shard[M]) replay() (machine M, count int, err error) {
	machine = s.rt.o.New(s.partition.Partition)
	err = s.rt.o.Log.Replay(s.rt.ctx, s.partition, func(b record.Batch) error {
		if s.currentPhase() == phaseStopped {
			return context.Canceled
		}
		n, err := s.replayBatch(machine, b)
		count += n
		return err
	})
	return machine, count, err
}

// replayBatch returns an error when the batch is damaged. A record that only the machine
// cannot understand is reported and skipped, so that it costs no other group its offsets.
func (s *shard[M]) replayBatch(machine M, b record.Batch) (count int, err error) {
	producerID := int64(-1)
	if b.IsTransactional() {
		producerID = b.ProducerID()
	}
	for r, err := range b.Records() {
		if err != nil {
			return count, err
		}
		count++
		if b.IsControl() {
			replayControl(machine, producerID, r.Key)
			continue
		}
		err = machine.Replay(Replayed{Record{r.Key, r.Value}, r.Offset, producerID})
		if err != nil {
			s.rt.o.Logger.Error("coordinator skips a record that it cannot read",
				"partition", s.partition, "offset", r.Offset, "err", err)
		}
	}
	return count, nil
}

func replayControl(machine Machine, producerID int64, key []byte) {
	t, err := record.ParseControl(key)
	if err != nil {
		return
	}
	switch t {
	case record.ControlCommit:
		machine.EndTransaction(producerID, true)
	case record.ControlAbort:
		machine.EndTransaction(producerID, false)
	}
}
