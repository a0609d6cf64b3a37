package broker

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// lookupTimeout bounds how long the addresses of hosts are looked for.
const lookupTimeout = 5 * time.Second

// A connectionLimiter puts the limits of connections in force. Changes of them come on the path of the
// metadata, which no name server may hold up: names are looked up on a goroutine of its own, and until
// that has found the address of a host, the host has the one of before.
type connectionLimiter struct {
	limit       func(wire.ConnectionLimits)
	lookupNetIP func(ctx context.Context, network, host string) ([]netip.Addr, error)
	descriptors int
	logger      *slog.Logger

	wake  chan struct{} // holds one
	ended sync.WaitGroup

	// mu guards what is in force. It is not held while a name is looked up.
	mu struct {
		sync.Mutex
		config *config.Broker
		addrs  map[string][]netip.Addr // of hosts
	}
}

// startLimiter puts the limits in force. Here, before anybody is served, names are waited for.
func (b *Broker) startLimiter(server *wire.Server) {
	l := &connectionLimiter{
		limit: server.Limit, lookupNetIP: b.world.Network.LookupNetIP, descriptors: b.descriptors.connections, logger: b.logger,
		wake: make(chan struct{}, 1),
	}
	b.limiter.Store(l) // from here on it is told of changes
	ctx, cancel := context.WithCancel(context.Background())
	l.set(b.settings.now())
	<-l.wake
	l.resolve(ctx)
	l.ended.Go(func() { l.run(ctx) })
	b.onStop("limits of connections", func(context.Context) error {
		cancel()
		l.ended.Wait()
		return nil
	})
}

func limitsDiffer(a, b *config.Broker) bool {
	return a.Int("max.connections") != b.Int("max.connections") || a.Int("max.connections.per.ip") != b.Int("max.connections.per.ip") ||
		!maps.Equal(a.ConnectionOverrides(), b.ConnectionOverrides())
}

// set puts the limits of a configuration in force, as far as addresses are known.
func (l *connectionLimiter) set(c *config.Broker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.config = c
	l.limit(l.limitsLocked())
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *connectionLimiter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			l.resolve(ctx)
		}
	}
}

// resolve looks for the addresses of all hosts. A host whose address nobody knows now has no limit of
// its own.
func (l *connectionLimiter) resolve(ctx context.Context) {
	l.mu.Lock()
	c := l.mu.config
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found := map[string][]netip.Addr{}
	for _, host := range slices.Sorted(maps.Keys(c.ConnectionOverrides())) {
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		addrs, err := l.lookupNetIP(ctx, "ip", host)
		if err != nil {
			l.logger.Warn("max.connections.per.ip.overrides: a host is left out", "host", host, "err", err)
		}
		found[host] = addrs
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.config == c { // else the next round is due
		l.mu.addrs = found
		l.limit(l.limitsLocked())
	}
}

func (l *connectionLimiter) limitsLocked() wire.ConnectionLimits {
	c := l.mu.config
	limits := wire.ConnectionLimits{
		All: c.Int("max.connections"), PerIP: c.Int("max.connections.per.ip"), Of: map[netip.Addr]int{}, Descriptors: l.descriptors,
	}
	overrides := c.ConnectionOverrides()
	for _, host := range slices.Sorted(maps.Keys(overrides)) {
		for _, addr := range l.addressesLocked(host) {
			limits.Of[addr.Unmap()] = overrides[host]
		}
	}
	return limits
}

// addressesLocked returns the addresses of a host that are known.
func (l *connectionLimiter) addressesLocked(host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}
	}
	return l.mu.addrs[host]
}
