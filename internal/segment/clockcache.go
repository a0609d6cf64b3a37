package segment

import (
	"sync"
	"sync/atomic"
)

// A clockCache evicts what was not used lately, by the algorithm that is called CLOCK, or second chance: a
// use sets a flag and takes no lock; only what is added and evicted does. FileCache and IndexCache are
// built on it.
type clockCache struct {
	mu     sync.Mutex
	ring   []*slot
	hand   int
	cost   int64 // Invariant: the sum of the costs in ring
	budget int64
}

// A slot is something cached. While it is in the ring its owner does not touch cost and index.
type slot struct {
	used  atomic.Bool
	cost  int64
	index int          // in the ring, or -1
	drop  func() evict // called with the clock's lock: detach, and return what is left to do
}

// An evict finishes an eviction without a lock; it may be nil.
type evict func()

// use marks a slot as recently used. The load first keeps the cache line shared.
func (s *slot) use() {
	if !s.used.Load() {
		s.used.Store(true)
	}
}

// add puts a slot into the ring and evicts others until the budget holds. The new slot stays,
// even if it is larger than the budget alone.
func (c *clockCache) add(s *slot) {
	c.mu.Lock()
	s.index = len(c.ring)
	c.ring = append(c.ring, s)
	c.cost += s.cost
	s.used.Store(true)
	todo := c.shrinkLocked(s)
	c.mu.Unlock()
	run(todo)
}

// shrinkLocked evicts until the budget holds, and keeps one slot, which may be nil.
func (c *clockCache) shrinkLocked(keep *slot) (todo []evict) {
	for c.cost > c.budget && len(c.ring) > 1 {
		if victim := c.nextLocked(keep); victim != nil {
			todo = append(todo, c.dropLocked(victim))
		}
	}
	return todo
}

// setBudget changes the budget, and evicts until it holds.
func (c *clockCache) setBudget(budget int64) {
	c.mu.Lock()
	c.budget = budget
	todo := c.shrinkLocked(nil)
	c.mu.Unlock()
	run(todo)
}

// evictAll drops everything.
func (c *clockCache) evictAll() {
	c.mu.Lock()
	var todo []evict
	for len(c.ring) > 0 {
		todo = append(todo, c.dropLocked(c.ring[len(c.ring)-1]))
	}
	c.mu.Unlock()
	run(todo)
}

// nextLocked moves the hand by one and returns the slot there, unless it was used since the
// hand last came by or is to be kept.
func (c *clockCache) nextLocked(keep *slot) *slot {
	c.hand %= len(c.ring)
	s := c.ring[c.hand]
	if s == keep || s.used.Swap(false) {
		c.hand++
		return nil
	}
	return s
}

func (c *clockCache) dropLocked(s *slot) evict {
	c.removeLocked(s)
	return s.drop()
}

func (c *clockCache) removeLocked(s *slot) {
	last := len(c.ring) - 1
	c.ring[s.index] = c.ring[last]
	c.ring[s.index].index = s.index
	c.ring[last] = nil
	c.ring = c.ring[:last]
	s.index = -1
	c.cost -= s.cost
}

// remove takes a slot out of the ring without a call of drop. Once it returns, drop has been
// called and the result is false, or it will not be.
func (c *clockCache) remove(s *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.index < 0 {
		return false
	}
	c.removeLocked(s)
	return true
}

// evictIdle drops everything that was not used since the last call.
func (c *clockCache) evictIdle() {
	c.mu.Lock()
	var todo []evict
	for i := len(c.ring) - 1; i >= 0; i-- {
		if s := c.ring[i]; !s.used.Swap(false) {
			todo = append(todo, c.dropLocked(s))
		}
	}
	c.mu.Unlock()
	run(todo)
}

func (c *clockCache) len() (count int, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring), c.cost
}

func run(todo []evict) {
	for _, f := range todo {
		if f != nil {
			f()
		}
	}
}
