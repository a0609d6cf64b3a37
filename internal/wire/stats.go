package wire

import (
	"cmp"
	"maps"
	"slices"
)

// softwareMax bounds how many kinds of clients Stats tells apart.
const softwareMax = 100

// Stats describes the connections of a server.
type Stats struct {
	Listeners []ListenerStats
	Software  []SoftwareStats // connections by what clients say about themselves
	Killed    int64           // connections that were closed because they were idle or stalled
	Displaced int64           // connections that were idle and closed because descriptors were short
	// Bytes of all long frames that are being read or handled, and how many there may be.
	BufferBytes, BufferBytesMax int64
}

// ListenerStats describes the connections that came in by one listener.
type ListenerStats struct {
	Name        string
	Connections int // open now
	Accepted    int64
	Refused     int64 // by a bound
}

// SoftwareStats counts the open connections of one kind of client.
type SoftwareStats struct {
	Software
	Listener    string
	Connections int
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.conns)
}

// Stats describes the connections now. What is over a bound of kinds of clients is counted as
// of "(others)".
func (s *Server) Stats() Stats {
	stats := Stats{BufferBytes: s.budget.InUse(), BufferBytesMax: s.budget.size, Killed: s.killed.Load(), Displaced: s.displacedTotal.Load()}
	kinds := map[SoftwareStats]int{}
	open := map[string]int{}
	s.mu.Lock()
	for c := range s.mu.conns {
		open[c.listener]++
		kind := SoftwareStats{Software: c.Software(), Listener: c.listener}
		if _, seen := kinds[kind]; !seen && len(kinds) >= softwareMax {
			kind.Software = Software{Name: "(others)"}
		}
		kinds[kind]++
	}
	for name, l := range s.mu.byListener {
		stats.Listeners = append(stats.Listeners, ListenerStats{name, open[name], l.accepted, l.refused})
	}
	s.mu.Unlock()
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), compareSoftware) {
		kind.Connections = kinds[kind]
		stats.Software = append(stats.Software, kind)
	}
	slices.SortFunc(stats.Listeners, func(a, b ListenerStats) int { return cmp.Compare(a.Name, b.Name) })
	return stats
}

func compareSoftware(a, b SoftwareStats) int {
	return cmp.Or(cmp.Compare(a.Listener, b.Listener), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

// listenerCount counts the connections of a listener; it is guarded by Server.mu.
type listenerCount struct{ accepted, refused int64 }

// Size returns how many bytes there are in all.
func (b *Budget) Size() int64 { return b.size }

// InUse returns how many of them are acquired.
func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used
}
