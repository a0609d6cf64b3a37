package broker

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// lookupTimeout bounds how long a change of the limits waits for the address of a host.
const lookupTimeout = 5 * time.Second

// limitConnections puts the limits of the configuration in force, once there is a server.
func (b *Broker) limitConnections() {
	if s := b.server.Load(); s != nil {
		s.Limit(b.connectionLimits(b.settings.now()))
	}
}

func limitsDiffer(a, b *config.Broker) bool {
	return a.Int("max.connections") != b.Int("max.connections") || a.Int("max.connections.per.ip") != b.Int("max.connections.per.ip") ||
		!maps.Equal(a.ConnectionOverrides(), b.ConnectionOverrides())
}

// connectionLimits takes the limits out of the configuration. A host whose address nobody knows
// now has none of its own.
func (b *Broker) connectionLimits(c *config.Broker) wire.ConnectionLimits {
	limits := wire.ConnectionLimits{
		All: c.Int("max.connections"), PerIP: c.Int("max.connections.per.ip"), Of: map[netip.Addr]int{},
		Descriptors: b.descriptors.connections,
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	overrides := c.ConnectionOverrides()
	for _, host := range slices.Sorted(maps.Keys(overrides)) {
		addrs, err := b.world.Network.LookupNetIP(ctx, "ip", host)
		if err != nil {
			b.logger.Warn("max.connections.per.ip.overrides: a host is left out", "host", host, "err", err)
		}
		for _, addr := range addrs {
			limits.Of[addr.Unmap()] = overrides[host]
		}
	}
	return limits
}
