package memnet

import (
	"net"
	"sync"
)

// backlog is how many connections wait to be accepted; a dialer waits then.
const backlog = 128

// A listener is one port of a host.
type listener struct {
	host    *Host
	port    uint16
	waiting chan *Conn
	closed  chan struct{}
	once    sync.Once
}

func newListener(h *Host, port uint16) *listener {
	return &listener{host: h, port: port, waiting: make(chan *Conn, backlog), closed: make(chan struct{})}
}

func (l *listener) Addr() net.Addr { return l.host.address(l.port) }

func (l *listener) isOpen() bool {
	select {
	case <-l.closed:
		return false
	default:
		return true
	}
}

func (l *listener) Accept() (net.Conn, error) {
	if !l.isOpen() {
		return nil, l.errClosed("accept")
	}
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, l.errClosed("accept")
	}
}

func (l *listener) errClosed(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}

func (l *listener) Close() error {
	h := l.host
	h.network.mu.Lock()
	if h.listeners[l.port] == l {
		delete(h.listeners, l.port)
	}
	h.network.mu.Unlock()
	if !l.close() {
		return l.errClosed("close")
	}
	return nil
}

// close tells who accepts and who dials, resets what nobody has accepted, and reports whether it
// was the first to do so.
func (l *listener) close() (first bool) {
	l.once.Do(func() {
		first = true
		close(l.closed)
		for {
			select {
			case c := <-l.waiting:
				c.reset()
			default:
				return
			}
		}
	})
	return first
}
