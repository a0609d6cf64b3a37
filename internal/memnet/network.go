package memnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A Network is the hosts that reach each other. The zero value has none. All methods of it, its
// hosts, listeners and connections are safe for concurrent use.
type Network struct {
	// mu guards who is there and who listens; it is held for moments only.
	mu    sync.Mutex
	hosts []*Host // the address of the first is firstAddress
}

// firstAddress is followed by those of further hosts.
var firstAddress = netip.AddrFrom4([4]byte{10, 0, 0, 1})

// firstPort is where the ports begin that a host picks itself.
const firstPort = 49152

// connectTimeout is how long a connection is tried, by Linux' defaults (tcp_syn_retries).
const connectTimeout = 127 * time.Second

// A Host has a name and an address, under which others reach its listeners.
type Host struct {
	network *Network
	name    string
	addr    netip.Addr

	// Guarded by Network.mu.
	listeners map[uint16]*listener
	conns     map[*Conn]struct{} // the ends that are this host's
	next      uint16             // the port to pick next
	links     map[*Host]*Link    // that lead away from here, as far as somebody has asked
}

// AddHost adds a host. Names must differ.
func (n *Network) AddHost(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.findLocked(name) != nil {
		panic("BUG: two hosts of the name " + name)
	}
	addr := firstAddress
	if len(n.hosts) > 0 {
		addr = n.hosts[len(n.hosts)-1].addr.Next()
	}
	h := &Host{network: n, name: name, addr: addr, listeners: map[uint16]*listener{}, conns: map[*Conn]struct{}{}, next: firstPort, links: map[*Host]*Link{}}
	n.hosts = append(n.hosts, h)
	return h
}

// findLocked returns the host of a name or an address, or nil.
func (n *Network) findLocked(host string) *Host {
	for _, h := range n.hosts {
		if h.name == host || h.addr.String() == host {
			return h
		}
	}
	return nil
}

// Name is the host's name, which Dial takes.
func (h *Host) Name() (string, error) { return h.name, nil }

// LookupNetIP returns the address of a host. (net.Resolver has the same method.)
func (h *Host) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if found := h.network.findLocked(host); found != nil {
		return []netip.Addr{found.addr}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// isOwn reports whether an address to listen at is this host's.
func (h *Host) isOwn(host string) bool {
	switch host {
	case "", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1", h.name, h.addr.String():
		return true
	}
	return false
}

// Listen listens at host:port of this host. Port 0 picks one. (net.ListenConfig has the same method.)
func (h *Host) Listen(_ context.Context, network, address string) (net.Listener, error) {
	l, err := h.listen(address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	return l, nil
}

func (h *Host) listen(address string) (*listener, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if !h.isOwn(host) {
		return nil, os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)
	}
	if port == 0 {
		port = h.pickLocked()
	}
	if h.listeners[port] != nil {
		return nil, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	l := newListener(h, port)
	h.listeners[port] = l
	return l, nil
}

func splitAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is no number", text)
	}
	return host, uint16(n), nil
}

// pickLocked returns a port that nobody listens at.
func (h *Host) pickLocked() uint16 {
	for h.listeners[h.next] != nil {
		h.next = max(h.next+1, firstPort)
	}
	port := h.next
	h.next = max(h.next+1, firstPort)
	return port
}

// Dial connects to host:port. (net.Dialer.DialContext has the same shape.)
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.dial(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return c, nil
}

func (h *Host) dial(ctx context.Context, address string) (*Conn, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	peer, err := h.find(host)
	if err != nil {
		return nil, err
	}
	tries, cancel := context.WithTimeoutCause(ctx, connectTimeout, os.NewSyscallError("connect", syscall.ETIMEDOUT))
	defer cancel()
	there, back := h.linksWith(peer)
	if there.cross(tries) != nil {
		return nil, context.Cause(tries)
	}
	c, err := h.connect(tries, peer, port, there, back)
	if back.cross(tries) != nil { // whatever came out of it, nobody hears
		if c != nil {
			c.reset()
		}
		return nil, context.Cause(tries)
	}
	return c, err
}

// find returns the host of a name or an address, as this one knows it.
func (h *Host) find(host string) (*Host, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if h.isOwn(host) {
		return h, nil
	}
	if peer := h.network.findLocked(host); peer != nil {
		return peer, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// linksWith returns the links to a host and back.
func (h *Host) linksWith(peer *Host) (there, back *Link) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	return h.linkLocked(peer), peer.linkLocked(h)
}

// connect connects to who listens at a port of another host, and waits while its queue is full.
func (h *Host) connect(ctx context.Context, peer *Host, port uint16, there, back *Link) (*Conn, error) {
	near, far, l := h.pair(peer, port, there, back)
	if l == nil {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	var err error
	select {
	case l.waiting <- far:
		if l.isOpen() { // else nobody may ever take it
			return near, nil
		}
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	case <-l.closed:
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	near.reset()
	return nil, err
}

// pair makes the two ends of a connection to who listens at a port; no listener is nil.
func (h *Host) pair(peer *Host, port uint16, there, back *Link) (near, far *Conn, l *listener) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	if l = peer.listeners[port]; l == nil {
		return nil, nil, nil
	}
	near, far = newPair(h.address(h.pickLocked()), peer.address(port), there, back)
	near.host, far.host = h, peer
	h.conns[near], peer.conns[far] = struct{}{}, struct{}{}
	return near, far, l
}

func (h *Host) address(port uint16) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.addr, port))
}

// forget takes away an end of a connection that is closed.
func (h *Host) forget(c *Conn) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	delete(h.conns, c)
}

// Kill ends what a process on this host had open: nobody listens, and both ends of all connections
// fail, the other one when it hears of it. The next process may listen again.
func (h *Host) Kill() {
	h.network.mu.Lock()
	listeners, conns := h.listeners, h.conns
	h.listeners, h.conns = map[uint16]*listener{}, map[*Conn]struct{}{}
	h.network.mu.Unlock()
	for _, l := range listeners {
		l.close()
	}
	for c := range conns {
		c.reset()
	}
}
