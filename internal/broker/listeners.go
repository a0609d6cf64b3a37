package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A listener is bound and knows what clients are told.
type listener struct {
	name     string
	socket   net.Listener
	endpoint metadata.BrokerEndpoint
}

// listen binds the addresses that clients come in on, or those of the controller. On error none stays bound.
func listen(ctx context.Context, network Network, c *config.Broker, controllers bool) ([]listener, error) {
	configured, err := c.Listeners()
	if err != nil {
		return nil, err
	}
	var bound []listener
	for _, l := range configured {
		if l.Controller != controllers {
			continue
		}
		ln, err := network.Listen(ctx, "tcp", l.Addr())
		if err != nil {
			closeAll(bound)
			return nil, fmt.Errorf("listener %s: %w", l.Name, err)
		}
		endpoint, err := endpointOf(l, ln.Addr(), network.Name)
		bound = append(bound, listener{l.Name, ln, endpoint})
		if err != nil {
			closeAll(bound)
			return nil, err
		}
	}
	return bound, nil
}

func closeAll(listeners []listener) {
	for _, l := range listeners {
		l.socket.Close()
	}
}

// endpointOf is what the metadata says about a listener bound to addr on a machine with a name.
func endpointOf(l config.Listener, addr net.Addr, name func() (string, error)) (metadata.BrokerEndpoint, error) {
	host, port := l.AdvertisedHost, l.AdvertisedPort
	if host == "" {
		var err error
		if host, err = name(); err != nil {
			return metadata.BrokerEndpoint{}, errors.New("listener " + l.Name + ": no advertised.listeners, and this machine has no name")
		}
	}
	if port == 0 {
		bound, err := netip.ParseAddrPort(addr.String())
		if err != nil {
			return metadata.BrokerEndpoint{}, fmt.Errorf("listener %s: %w", l.Name, err)
		}
		port = int(bound.Port())
	}
	e := metadata.BrokerEndpoint{Name: l.Name, Host: host, Port: uint16(port)}
	return e, nil
}

// advertised is host:port as clients are told.
func (l *listener) advertised() string {
	return net.JoinHostPort(l.endpoint.Host, strconv.Itoa(int(l.endpoint.Port)))
}
