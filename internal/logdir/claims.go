package logdir

import (
	"slices"
	"sync"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// claims are partitions that are being changed. Each is changed by one at a time; different ones, in
// different directories or in one, beside each other.
//
// Lock order: the claims of an operation, in the order of the partitions, then dir.changing of the
// directories that it is about, in theirs, then dir.writing, then places.mu or dir.mu or the locks of a
// log.
type claims struct {
	mu   sync.Mutex
	held map[topic.Partition]chan struct{} // closed by the holder
}

// take waits until nobody changes the partitions any more, and claims them until release is called.
func (c *claims) take(partitions ...topic.Partition) (release func()) {
	sorted := slices.SortedFunc(slices.Values(partitions), topic.Partition.Compare)
	sorted = slices.Compact(sorted)
	for _, p := range sorted {
		c.takeOne(p)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range sorted {
			close(c.held[p])
			delete(c.held, p)
		}
	}
}

func (c *claims) takeOne(p topic.Partition) {
	for {
		c.mu.Lock()
		other, taken := c.held[p]
		if !taken {
			if c.held == nil {
				c.held = make(map[topic.Partition]chan struct{})
			}
			c.held[p] = make(chan struct{})
		}
		c.mu.Unlock()
		if !taken {
			return
		}
		<-other
	}
}

// change claims partitions, and enters the directories that have to do with them, until leave is called.
func (m *Manager) change(partitions ...topic.Partition) (leave func(), err error) {
	release := m.changes.take(partitions...)
	exit, err := m.enter(m.dirsOf(partitions)...)
	if err != nil {
		release()
		return nil, err
	}
	return func() { exit(); release() }, nil
}

// enter holds directories while partitions in them are changed: until leave is called none of them goes
// offline or is closed. Directories that are nil do not count. After Close it refuses.
func (m *Manager) enter(dirs ...*dir) (leave func(), err error) {
	var entered []*dir
	leave = func() {
		for _, d := range entered {
			d.changing.RUnlock()
		}
	}
	for _, d := range m.dirs { // in this order
		if slices.Contains(dirs, d) {
			d.changing.RLock()
			entered = append(entered, d)
		}
	}
	if m.closed.Load() {
		leave()
		return nil, ErrClosed
	}
	return leave, nil
}
