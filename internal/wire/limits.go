package wire

import (
	"errors"
	"net/netip"
)

// ConnectionLimits bound how many connections are open at once.
type ConnectionLimits struct {
	All   int // max.connections
	PerIP int // max.connections.per.ip

	// Descriptors is how many connections there are descriptors for. One more takes the place of
	// the one that has been idle for longest; 0 is no limit.
	Descriptors int

	// Of has the limits of addresses that have their own (max.connections.per.ip.overrides).
	Of map[netip.Addr]int
}

// The ways in which a connection is refused.
var (
	errClosing          = errors.New("the server is shutting down")
	errConnections      = errors.New("max.connections is reached")
	errConnectionsPerIP = errors.New("max.connections.per.ip is reached")
	errDescriptors      = errors.New("all descriptors for connections are in use (ulimit -n), and no connection is idle")
)

// Limit puts limits in force for connections that come from now on; without it there are none.
// Those that are open stay.
func (s *Server) Limit(l ConnectionLimits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.limits = l
}

// refusalLocked returns why there is no place for a connection, or nil.
func (s *Server) refusalLocked(c *Conn) error {
	limits := &s.mu.limits
	perIP, ok := limits.Of[c.addr]
	if !ok {
		perIP = limits.PerIP
	}
	switch {
	case s.closing.Load():
		return errClosing
	case len(s.mu.conns) >= limits.All:
		return errConnections
	case s.mu.perIP[c.addr] >= perIP:
		return errConnectionsPerIP
	case limits.Descriptors > 0 && len(s.mu.conns)-s.mu.displaced >= limits.Descriptors && !s.displaceLocked():
		return errDescriptors
	}
	return nil
}

const (
	// idleMin is how many seconds a connection has asked for nothing that may be displaced.
	idleMin = 1
	// displacedOf bounds how many connections are looked at to find the one that is idle for longest.
	displacedOf = 1000
)

// displaceLocked closes the connection that has been idle for longest, and reports whether there
// was one. Its client will connect again when it needs to, as after connections.max.idle.ms.
func (s *Server) displaceLocked() bool {
	var idlest *Conn
	looked := 0
	for c := range s.mu.conns { // in no order
		if looked++; looked > displacedOf {
			break
		}
		if c.isIdle() && (idlest == nil || c.idlerThan(idlest)) {
			idlest = c
		}
	}
	if idlest == nil {
		return false
	}
	idlest.displaced = true
	s.mu.displaced++
	s.displacedTotal.Add(1)
	s.warnOfDescriptors("connections that were idle are closed for others", nil)
	idlest.nc.Close()
	return true
}

// isIdle reports whether a connection may be displaced: it has asked for nothing yet, or not for a
// while. Server.mu is held.
func (c *Conn) isIdle() bool {
	if c.displaced || c.busy.Load() || c.queued.Load() > 0 {
		return false
	}
	return !c.asked.Load() || c.server.tick.Load()-c.lastTick.Load() >= idleMin
}

func (c *Conn) idlerThan(other *Conn) bool {
	a, b := c.lastTick.Load(), other.lastTick.Load()
	return a < b || a == b && c.number < other.number
}

// warnPause is how many seconds pass between two warnings of the same shortage.
const warnPause = 60

// warnOfDescriptors names the shortage in the log, not for each connection that meets it.
func (s *Server) warnOfDescriptors(what string, err error) {
	now, last := s.tick.Load(), s.warned.Load()
	if last > 0 && now+1-last < warnPause || !s.warned.CompareAndSwap(last, now+1) {
		return
	}
	s.cfg.Logger.Warn("descriptors are short (ulimit -n): "+what, "displaced", s.displacedTotal.Load(), "err", err)
}

// makeRoom displaces a connection because there was no descriptor for another one.
func (s *Server) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.displaceLocked()
}
