package wire

import (
	"io"

	"golang.org/x/sys/unix"
)

// A writer is the state of one send or sendfile. Its functions are made once, since a
// closure for each call would be garbage.
type writer struct {
	b    []byte // what send has left
	file int    // the descriptor that sendfile reads, from pos, left bytes
	pos  int64
	left int
	err  error

	send, sendfile func(fd uintptr) (done bool)
}

func (c *Conn) initWriter() {
	wr := &c.wr
	wr.send = func(fd uintptr) bool {
		for len(wr.b) > 0 {
			n, err := unix.SendmsgN(int(fd), wr.b, nil, nil, unix.MSG_MORE)
			switch err {
			case nil:
				wr.b = wr.b[n:]
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				wr.err = err
				return true
			}
		}
		return true
	}
	wr.sendfile = func(fd uintptr) bool {
		for wr.left > 0 {
			n, err := unix.Sendfile(int(fd), wr.file, &wr.pos, wr.left)
			switch {
			case err == nil && n == 0:
				wr.err = io.ErrUnexpectedEOF
				return true
			case err == nil:
				wr.left -= n
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			default:
				wr.err = err
				return true
			}
		}
		return true
	}
}

// writeMore writes bytes that a file follows: the kernel may wait for it to fill a packet.
func (c *Conn) writeMore(b []byte) error {
	if c.raw == nil {
		_, err := c.nc.Write(b)
		return err
	}
	c.wr.b, c.wr.err = b, nil
	err := c.raw.Write(c.wr.send)
	c.wr.b = nil
	if err == nil {
		err = c.wr.err
	}
	return err
}

// sendSlice sends a stretch of a file. The kernel copies nothing, and the shared position of
// the descriptor stays where it is.
func (c *Conn) sendSlice(f *file) error {
	fd, ok := f.slice.Fd()
	if !ok || c.raw == nil {
		return c.copySlice(f)
	}
	c.wr.file, c.wr.pos, c.wr.left, c.wr.err = int(fd), f.slice.Position(), f.slice.Size(), nil
	err := c.raw.Write(c.wr.sendfile)
	if err == nil {
		err = c.wr.err
	}
	return err
}
