package wire

import (
	"io"
	"syscall"
)

// longFrameStep is how much of a long frame is allocated before its bytes have come: a
// hostile size costs no more than that.
const longFrameStep = 1<<20 + 64<<10

// An input holds the bytes of a connection that were read and not handled yet.
type input struct {
	buf  *buffer // borrowed while there are bytes; its length is its capacity
	r, w int     // buf.b[r:w] is not handled yet

	frames int // handled since the last read

	long      *buffer // the frame being handled, when it did not fit into buf
	longBytes int64   // what it took from the budget
}

func (in *input) buffered() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf.b[in.r:in.w]
}

// room makes place for n bytes from r on and returns where to read to.
func (in *input) room(n int) []byte {
	if in.buf == nil {
		in.buf = getBuffer(readBufferSize)
		in.buf.b = in.buf.b[:readBufferSize]
	}
	if in.r+n > len(in.buf.b) {
		in.w = copy(in.buf.b, in.buf.b[in.r:in.w])
		in.r = 0
	}
	return in.buf.b[in.w:]
}

// releaseIfEmpty gives the read buffer back unless it holds bytes.
func (in *input) releaseIfEmpty() {
	if in.buf != nil && in.r == in.w {
		putBuffer(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
	}
}

// release gives the read buffer back, whatever it holds.
func (in *input) release() {
	in.r = in.w
	in.releaseIfEmpty()
}

// A reader is the state of one read system call. Its functions are made once, since a
// closure for each read would be garbage.
type reader struct {
	want int    // what read needs from in.r on
	dst  []byte // where readLong reads to
	n    int
	err  error

	read, readLong func(fd uintptr) (done bool)
}

func (c *Conn) initReader() {
	rd := &c.rd
	rd.read = func(fd uintptr) bool {
		rd.n, rd.err = readNow(fd, c.in.room(rd.want))
		if rd.err != syscall.EAGAIN {
			return true
		}
		if rd.err = c.flush(); rd.err != nil {
			return true
		}
		c.in.releaseIfEmpty()
		return false
	}
	rd.readLong = func(fd uintptr) bool {
		rd.n, rd.err = readNow(fd, rd.dst)
		return rd.err != syscall.EAGAIN
	}
}

// readNow reads what is there, or fails with EAGAIN.
func readNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err == nil && n == 0 {
			return 0, io.EOF
		}
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// need reads until n bytes are buffered, n <= readBufferSize.
func (c *Conn) need(n int) error {
	for c.in.w-c.in.r < n {
		k, err := c.read(n)
		if err == io.EOF && c.in.w > c.in.r {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		c.in.w += k
	}
	return nil
}

// pipelined reports whether the client sends requests without waiting for the answers.
func (in *input) pipelined() bool { return in.frames > 1 || in.r < in.w }

// read reads once into the read buffer. Before it waits it sends what was gathered and, if
// no byte of a request is held, gives the buffer back. To a client that most likely waits
// for its answer it sends that first, so that the next request may be there for the read.
func (c *Conn) read(n int) (int, error) {
	if c.raw == nil || !c.in.pipelined() {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	c.in.frames = 0
	if c.raw == nil {
		c.touch()
		return c.nc.Read(c.in.room(n))
	}
	c.rd.want = n
	return c.rawRead(c.rd.read)
}

// readLong is read for the rest of a long frame.
func (c *Conn) readLong(p []byte) (int, error) {
	if c.raw == nil {
		c.touch()
		return c.nc.Read(p)
	}
	c.rd.dst = p
	k, err := c.rawRead(c.rd.readLong)
	c.rd.dst = nil
	return k, err
}

func (c *Conn) rawRead(f func(uintptr) bool) (int, error) {
	c.rd.n, c.rd.err = 0, nil
	err := c.raw.Read(f)
	c.touch()
	if err != nil {
		return 0, err
	}
	return c.rd.n, c.rd.err
}

// longFrame reads a frame of size bytes, which is more than the read buffer holds. Memory
// grows as the bytes come, and counts against the budget of the server from the start.
func (c *Conn) longFrame(size int) ([]byte, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	if err := c.server.budget.Acquire(c.ctx, int64(size)); err != nil {
		return nil, err
	}
	c.in.long, c.in.longBytes = getBuffer(min(size, longFrameStep)), int64(size)
	c.touch() // waiting for the budget was not the client's fault
	c.readingLong.Store(true)
	defer c.readingLong.Store(false)
	frame := append(c.in.long.b, c.in.buffered()[4:]...)
	c.in.release()
	for len(frame) < size {
		if len(frame) == cap(frame) {
			grown := make([]byte, len(frame), min(size, 2*cap(frame)))
			copy(grown, frame)
			frame, c.in.long.b = grown, grown
		}
		k, err := c.readLong(frame[len(frame):min(size, cap(frame))])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		frame = frame[:len(frame)+k]
	}
	return frame, nil
}

// endFrame ends the use of the frame that next returned last.
func (c *Conn) endFrame() {
	if c.in.long != nil {
		putBuffer(c.in.long)
		c.server.budget.Release(c.in.longBytes)
		c.in.long, c.in.longBytes = nil, 0
	}
}
