package memnet

import (
	"context"
	"sync"
	"time"
)

// A Link is one direction between two hosts: what the one sends goes over it to the other, in order. When
// it is cut, what is sent waits until it is healed, as TCP sends again what was lost.
type Link struct {
	// mu guards the state; it is held for moments, and under a stream's.
	mu      sync.Mutex
	cut     bool
	delay   func() time.Duration // nil: none
	changed chan struct{}        // closed when any of the above changes
	held    map[*stream]struct{} // those that have something to send as soon as it is healed
}

func newLink() *Link { return &Link{changed: make(chan struct{}), held: map[*stream]struct{}{}} }

// Link returns what leads from one host to another, by their names. A host has no link to itself.
func (n *Network) Link(from, to string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, b := n.findLocked(from), n.findLocked(to)
	if a == nil || b == nil || a == b {
		panic("BUG: no link from " + from + " to " + to)
	}
	return a.linkLocked(b)
}

// linkLocked returns nil for the host itself.
func (h *Host) linkLocked(to *Host) *Link {
	if h == to {
		return nil
	}
	l := h.links[to]
	if l == nil {
		l = newLink()
		h.links[to] = l
	}
	return l
}

// Partition cuts every link, in both directions, between the named hosts and all others. Links among
// them, and among the others, stay as they are.
func (n *Network) Partition(names ...string) {
	for _, l := range n.between(names) {
		l.Cut()
	}
}

// between returns the links that lead from one of the named hosts to another one, and back.
func (n *Network) between(names []string) (list []*Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	inside := map[*Host]bool{}
	for _, name := range names {
		h := n.findLocked(name)
		if h == nil {
			panic("BUG: no host of the name " + name)
		}
		inside[h] = true
	}
	for _, a := range n.hosts {
		for _, b := range n.hosts {
			if inside[a] != inside[b] {
				list = append(list, a.linkLocked(b))
			}
		}
	}
	return list
}

// Heal heals every link.
func (n *Network) Heal() {
	n.mu.Lock()
	var list []*Link
	for _, h := range n.hosts {
		for _, l := range h.links {
			list = append(list, l)
		}
	}
	n.mu.Unlock()
	for _, l := range list {
		l.Heal()
	}
}

// Cut lets nothing through until Heal.
func (l *Link) Cut() { l.change(func() { l.cut = true }) }

// Heal lets everything through again, first what has waited.
func (l *Link) Heal() { l.change(func() { l.cut = false }) }

// SetDelay lets all that is sent from now on arrive after what delay returns, but nothing before what was sent
// earlier. Nil is no delay. It is called by one goroutine at a time, once for whatever is sent.
func (l *Link) SetDelay(delay func() time.Duration) { l.change(func() { l.delay = delay }) }

func (l *Link) change(f func()) {
	l.mu.Lock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
	var held []*stream
	if !l.cut {
		for s := range l.held {
			held = append(held, s)
		}
		clear(l.held)
	}
	l.mu.Unlock()
	for _, s := range held {
		s.deliver()
	}
}

// isCut reports whether nothing gets through; the stream is told when that is over.
func (l *Link) isCut(s *stream) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		l.held[s] = struct{}{}
	}
	return l.cut
}

// draw returns the delay of what is sent now.
func (l *Link) draw() time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drawLocked()
}

func (l *Link) drawLocked() time.Duration {
	if l.delay == nil {
		return 0
	}
	return max(l.delay(), 0)
}

// cross waits until what is sent now has arrived at the other end.
func (l *Link) cross(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	wait := l.drawLocked()
	l.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		l.mu.Lock()
		cut, changed := l.cut, l.changed
		l.mu.Unlock()
		if !cut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
