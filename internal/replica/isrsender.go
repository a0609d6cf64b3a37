package replica

import (
	"context"
	"sync"
	"time"
)

// An ISRRequest is an ISRChange of a partition.
type ISRRequest struct {
	PartitionID
	*ISRChange
}

// An isrSender asks the controller for what leaders want changed, all that has come together in one request. It has a
// goroutine while there is something to ask. (Kafka class AlterPartitionManager.)
type isrSender struct {
	m    *Manager
	life context.Context
	end  context.CancelFunc
	done sync.WaitGroup

	// mu guards what is to be asked.
	mu struct {
		sync.Mutex
		queue  []isrItem
		busy   bool // the goroutine runs
		closed bool
	}
}

// An isrItem is a change that a partition waits for: no other is asked for it meanwhile.
type isrItem struct {
	p *Partition
	c *ISRChange
}

// isrPause is how long an isrSender waits after an answer that was neither yes nor no.
const isrPause = 50 * time.Millisecond

func (s *isrSender) init(m *Manager) {
	s.m = m
	s.life, s.end = context.WithCancel(context.Background())
}

// send queues a change.
func (s *isrSender) send(p *Partition, c *ISRChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	s.mu.queue = append(s.mu.queue, isrItem{p, c})
	if !s.mu.busy {
		s.mu.busy = true
		s.done.Go(s.run)
	}
}

func (s *isrSender) run() {
	for list := s.take(nil); len(list) > 0; {
		again := s.ask(list)
		if len(again) > 0 {
			s.pause()
		}
		list = s.take(again)
	}
}

// take returns what to ask now, again first. Without any the goroutine ends.
func (s *isrSender) take(again []isrItem) []isrItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := again
	if list = append(list, s.mu.queue...); s.mu.closed {
		list = nil
	}
	s.mu.queue, s.mu.busy = nil, len(list) > 0
	return list
}

func (s *isrSender) pause() {
	timer := time.NewTimer(isrPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.life.Done():
	}
}

// ask sends the changes that are still wanted, and returns those to ask for again.
func (s *isrSender) ask(list []isrItem) (again []isrItem) {
	var wanted []isrItem
	var requests []ISRRequest
	for _, i := range list {
		if i.p.State().Pending == i.c {
			wanted, requests = append(wanted, i), append(requests, ISRRequest{i.p.PartitionID(), i.c})
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	answers, err := s.m.o.AlterPartition(s.life, requests)
	for n, i := range wanted {
		a := &ISRAnswer{Err: err}
		if err == nil {
			a = &answers[n]
		}
		if i.p.Answered(i.c, a) {
			again = append(again, i)
		}
	}
	return again
}

func (s *isrSender) close() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.end()
	s.done.Wait()
}
