package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Listener is one entry of listeners, with the address that clients are told.
type Listener struct {
	Name       string
	Host       string // "" = all interfaces
	Port       int    // 0 = any free port
	Protocol   string // PLAINTEXT
	Controller bool   // named by controller.listener.names: not for clients

	// AdvertisedHost is "" when nothing says it: the name of this machine then.
	// AdvertisedPort is 0 when it is the port that listening on port 0 gave.
	AdvertisedHost string
	AdvertisedPort int
}

// Addr is what to listen on.
func (l Listener) Addr() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// Listeners reads listeners, advertised.listeners, listener.security.protocol.map and
// controller.listener.names.
func (b *Broker) Listeners() ([]Listener, error) {
	protocols, err := parseProtocolMap(b.String("listener.security.protocol.map"))
	if err != nil {
		return nil, err
	}
	listeners, err := parseEndpoints("listeners", b.List("listeners"))
	if err != nil {
		return nil, err
	}
	controllers := b.List("controller.listener.names")
	clients := 0
	for i := range listeners {
		l := &listeners[i]
		l.Controller = slices.ContainsFunc(controllers, func(name string) bool { return strings.EqualFold(name, l.Name) })
		if l.Protocol, err = protocolOf(l, protocols); err != nil {
			return nil, err
		}
		if !l.Controller {
			clients++
		}
	}
	if clients == 0 {
		return nil, fmt.Errorf("listeners=%s: want at least one listener for clients, not named by controller.listener.names", strings.Join(b.List("listeners"), ","))
	}
	return listeners, b.advertise(listeners)
}

// parseProtocolMap reads NAME:PROTOCOL,...
func parseProtocolMap(text string) (map[string]string, error) {
	protocols := make(map[string]string)
	for _, item := range SplitList(text) {
		name, protocol, ok := strings.Cut(item, ":")
		name = strings.ToUpper(strings.TrimSpace(name))
		if _, twice := protocols[name]; !ok || name == "" || twice {
			return nil, fmt.Errorf("listener.security.protocol.map=%s: %q: want NAME:PROTOCOL with each name once", text, item)
		}
		protocols[name] = strings.ToUpper(strings.TrimSpace(protocol))
	}
	return protocols, nil
}

func protocolOf(l *Listener, protocols map[string]string) (string, error) {
	protocol, ok := protocols[l.Name]
	switch {
	case !ok && l.Controller:
		return "PLAINTEXT", nil // as Kafka does for controllers in the default map
	case !ok:
		return "", fmt.Errorf("listeners: no protocol for listener %s: want %s:PLAINTEXT in listener.security.protocol.map", l.Name, l.Name)
	case protocol != "PLAINTEXT" && !l.Controller:
		return "", fmt.Errorf("listeners: listener %s uses %s, which gregor does not serve yet: want PLAINTEXT", l.Name, protocol)
	}
	return protocol, nil
}

// parseEndpoints reads NAME://host:port,... for the key of that name.
func parseEndpoints(key string, items []string) ([]Listener, error) {
	var listeners []Listener
	for _, item := range items {
		l, err := parseEndpoint(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", key, item, err)
		}
		for _, other := range listeners {
			if other.Name == l.Name {
				return nil, fmt.Errorf("%s: duplicate listener %s: want each name once", key, l.Name)
			}
			if key == "listeners" && l.Port != 0 && other.Port == l.Port && (other.Host == l.Host || other.Host == "" || l.Host == "") {
				return nil, fmt.Errorf("%s: listeners %s and %s share port %d: want each port once", key, other.Name, l.Name, l.Port)
			}
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func parseEndpoint(item string) (Listener, error) {
	name, address, ok := strings.Cut(item, "://")
	if !ok || name == "" {
		return Listener{}, errors.New("want NAME://host:port")
	}
	host, port, err := parseHostPort(address)
	if err != nil {
		return Listener{}, fmt.Errorf("want NAME://%w", err)
	}
	return Listener{Name: strings.ToUpper(name), Host: host, Port: port}, nil
}

// Errors of parseHostPort say what an address should be.
var (
	errHostPort = errors.New("host:port")
	errPort     = errors.New("host:port, the port at most 65535")
)

// parseHostPort reads host:port; the host is "" for all interfaces.
func parseHostPort(address string) (host string, port int, err error) {
	u, err := url.Parse("x://" + address)
	if err != nil || u.Host != address || u.Port() == "" {
		return "", 0, errHostPort
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil || port > 65535 {
		return "", 0, errPort
	}
	if host = u.Hostname(); isWildcard(host) {
		host = ""
	}
	return host, port, nil
}

// HTTPListener reads gregor.http.listener: what to listen on, "" for nothing.
func (b *Broker) HTTPListener() (string, error) {
	address := b.String("gregor.http.listener")
	if address == "" {
		return "", nil
	}
	host, port, err := parseHostPort(address)
	if err != nil {
		return "", &ValueError{Key: "gregor.http.listener", Value: address, Want: err.Error()}
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func isWildcard(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// advertise fills in what clients are told: advertised.listeners, else the listener's
// own address.
func (b *Broker) advertise(listeners []Listener) error {
	for i := range listeners {
		listeners[i].AdvertisedHost, listeners[i].AdvertisedPort = listeners[i].Host, listeners[i].Port
	}
	items := b.List("advertised.listeners")
	if len(items) == 0 {
		return nil
	}
	advertised, err := parseEndpoints("advertised.listeners", items)
	if err != nil {
		return err
	}
	for _, a := range advertised {
		i := slices.IndexFunc(listeners, func(l Listener) bool { return l.Name == a.Name })
		if i < 0 {
			return fmt.Errorf("advertised.listeners: listener %s is not in listeners", a.Name)
		}
		listeners[i].AdvertisedHost, listeners[i].AdvertisedPort = a.Host, a.Port
	}
	for i := range items {
		if strings.Contains(items[i], "://0.0.0.0:") || strings.Contains(items[i], "://[::]:") {
			return fmt.Errorf("advertised.listeners: %q: clients cannot connect to that address: want a host name or address of this machine", items[i])
		}
	}
	return nil
}
