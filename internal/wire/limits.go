package wire

import (
	"errors"
	"net/netip"
)

// ConnectionLimits bound how many connections are open at once.
type ConnectionLimits struct {
	All   int // max.connections
	PerIP int // max.connections.per.ip

	// Of has the limits of addresses that have their own (max.connections.per.ip.overrides).
	Of map[netip.Addr]int
}

// The ways in which a connection is refused.
var (
	errClosing          = errors.New("the server is shutting down")
	errConnections      = errors.New("max.connections is reached")
	errConnectionsPerIP = errors.New("max.connections.per.ip is reached")
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
	}
	return nil
}
