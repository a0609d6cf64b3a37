package quorum

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// arrivalsMax is how many connections wait for raft to take them.
const arrivalsMax = 16

// A link is the connections between this voter and the others, as raft's transport wants them
// (raft.StreamLayer). It ends all of them when it is closed.
type link struct {
	self int32
	open func(ctx context.Context, id int32) (net.Conn, error) // a connection on which hello was said

	arrived chan net.Conn
	life    context.Context // ends with Close
	end     context.CancelFunc

	// mu guards the connections that are open, both ways; nil after Close.
	mu    sync.Mutex
	conns map[*linkConn]struct{}
}

func newLink(self int32, open func(context.Context, int32) (net.Conn, error)) *link {
	l := &link{self: self, open: open, arrived: make(chan net.Conn, arrivalsMax), conns: map[*linkConn]struct{}{}}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// A linkConn is a connection that its link knows while it is open.
type linkConn struct {
	net.Conn
	link   *link
	once   sync.Once
	closed chan struct{}
}

// add returns the connection as raft gets it, or nil when the link is closed.
func (l *link) add(nc net.Conn) *linkConn {
	c := &linkConn{Conn: nc, link: l, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return nil
	}
	l.conns[c] = struct{}{}
	return c
}

// Close implements net.Conn.
func (c *linkConn) Close() error {
	c.once.Do(func() {
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
		close(c.closed)
	})
	return c.Conn.Close()
}

// serve gives raft a connection that another voter opened and returns when that is over.
func (l *link) serve(ctx context.Context, nc net.Conn) {
	c := l.add(nc)
	if c == nil {
		return
	}
	defer c.Close()
	select {
	case l.arrived <- c:
	case <-l.life.Done():
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-c.closed:
	case <-ctx.Done():
	}
}

// Accept implements net.Listener.
func (l *link) Accept() (net.Conn, error) {
	if l.life.Err() != nil { // what has arrived is closed
		return nil, io.EOF
	}
	select {
	case nc := <-l.arrived:
		return nc, nil
	case <-l.life.Done():
		return nil, io.EOF
	}
}

// Close implements net.Listener.
func (l *link) Close() error {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	l.end()
	for c := range conns {
		c.Close()
	}
	return nil
}

// A voterAddr is raft's address of a voter: its id.
type voterAddr raft.ServerAddress

// Network implements net.Addr.
func (voterAddr) Network() string { return "voter" }

// String implements net.Addr.
func (a voterAddr) String() string { return string(a) }

// Addr implements net.Listener.
func (l *link) Addr() net.Addr { return voterAddr(addressOf(l.self)) }

// Dial implements raft.StreamLayer.
func (l *link) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(l.life, timeout)
	defer cancel()
	nc, err := l.open(ctx, id)
	if err != nil {
		return nil, err
	}
	if c := l.add(nc); c != nil {
		return c, nil
	}
	nc.Close()
	return nil, net.ErrClosed
}
