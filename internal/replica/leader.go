package replica

import "github.com/gregor-kafka/gregor/internal/commitlog"

// fetched takes over what a follower's fetch says of it: end is what our log ended at when it was read, so that what
// was appended since does not hold the follower back.
func (p *Partition) fetched(f FollowerFetch, epoch int32, end int64) error {
	p.mu.RLock()
	log, s, err := p.leading(epoch)
	if err != nil {
		p.mu.RUnlock()
		return err
	}
	low, changed, c, err := p.noteFetch(log, s, f, end)
	moved := changed && p.advance(log, s)
	p.mu.RUnlock()
	if low || moved {
		p.wakeAll()
	}
	p.alter(c)
	return err
}

// noteFetch reports whether the low watermark or the follower's end changed, and returns what to ask of the controller.
func (p *Partition) noteFetch(log *commitlog.Log, s *PartitionState, f FollowerFetch, end int64) (low, changed bool, c *ISRChange, err error) {
	p.followers.Lock()
	defer p.followers.Unlock()
	v := p.view(s, log, log.Offsets())
	before := s.LowWatermark(&v)
	v.End = end
	changed, err = s.Fetched(f, &v)
	if err != nil {
		return false, false, nil, err
	}
	return s.LowWatermark(&v) > before, changed, p.propose(s, s.ExpandISR(f.ID, &v)), nil
}

// propose makes next, a state with another ISR pending, the partition's, and returns what it asks for; nil if there is
// nothing, or somebody was faster.
func (p *Partition) propose(s, next *PartitionState) *ISRChange {
	if next == nil || p.topic.manager.alter == nil || !p.state.CompareAndSwap(s, next) {
		return nil
	}
	return next.Pending
}

// alter asks the controller for c, if that is something.
func (p *Partition) alter(c *ISRChange) {
	if c != nil {
		p.topic.manager.alter(p, c)
	}
}

// Answered takes over the controller's answer to c. again says that the answer was neither yes nor no and that the
// caller has to ask again, after a pause.
func (p *Partition) Answered(c *ISRChange, a *ISRAnswer) (again bool) {
	p.change(func(s *PartitionState) (next *PartitionState) {
		next, again = s.Answered(c, a)
		return next
	})
	return again
}

// ShrinkISRs asks the controller to take followers that lag out of the ISR. It is due twice in
// replica.lag.time.max.ms.
func (m *Manager) ShrinkISRs() {
	m.Partitions(func(p *Partition) { p.alter(p.shrink()) })
}

func (p *Partition) shrink() *ISRChange {
	p.mu.RLock()
	defer p.mu.RUnlock()
	log, s, err := p.leading(NoEpoch)
	if err != nil || s.leadership == nil {
		return nil
	}
	p.followers.Lock()
	defer p.followers.Unlock()
	v := p.view(s, log, log.Offsets())
	return p.propose(s, s.ShrinkISR(&v))
}
