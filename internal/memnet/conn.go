package memnet

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is one end of a connection.
type Conn struct {
	host          *Host
	local, remote net.Addr
	in, out       *stream
	closed        atomic.Bool
}

// newPair returns the two ends of a connection; there and back are the links between them.
func newPair(dialer, listener net.Addr, toListener, toDialer *Link) (near, far *Conn) {
	there, back := newStream(toListener), newStream(toDialer)
	return &Conn{local: dialer, remote: listener, in: back, out: there},
		&Conn{local: listener, remote: dialer, in: there, out: back}
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.explain("read", err)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.explain("write", err)
}

// Close implements net.Conn. The other end reads what was written, and then the end.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.explain("close", net.ErrClosed)
	}
	c.host.forget(c)
	c.out.endWrites(net.ErrClosed)
	c.in.abandon()
	c.out.send(func() {
		c.out.finish()
		c.in.endWrites(syscall.EPIPE)
	})
	return nil
}

// CloseWrite ends what this end sends. (net.TCPConn has the same method.)
func (c *Conn) CloseWrite() error {
	if c.closed.Load() {
		return c.explain("close", net.ErrClosed)
	}
	c.out.endWrites(syscall.EPIPE)
	c.out.send(c.out.finish)
	return nil
}

// reset ends both directions: for this end at once, for the other one as soon as it hears of it. Nothing
// that was sent is read any more.
func (c *Conn) reset() {
	c.host.forget(c)
	c.in.failReads()
	c.out.endWrites(syscall.ECONNRESET)
	c.out.send(func() {
		c.out.failReads()
		c.in.endWrites(syscall.ECONNRESET)
	})
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.reading, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writing, t)
	return nil
}

// explain says what failed. io.EOF stays bare, as readers want it.
func (c *Conn) explain(op string, err error) error {
	if err == nil || isEOF(err) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
