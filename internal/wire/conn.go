package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

// deferredMax is how many answers of a connection may wait before it reads no further.
const deferredMax = 64

// A Conn is a client's connection. Its exported methods may be called from anywhere.
type Conn struct {
	server   *Server
	listener string
	nc       net.Conn
	raw      syscall.RawConn // of nc, or nil when it has no descriptor
	addr     netip.Addr

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	// Owned by the reading goroutine.
	in     input
	rd     reader
	wr     writer // owned by the responder while answers are queued
	out    Response
	req    Request
	client string // the last client id, so that it is not allocated for every request
	alone  int    // requests in a row that came when all before them were answered

	queue  chan *Response // deferred answers and those behind them; nil until needed
	queued atomic.Int32   // answers in queue or being sent by the responder
	done   chan struct{}  // closed by the responder when it ends

	software  atomic.Pointer[Software]
	number    int64 // in the order of acceptance; guarded by Server.mu
	displaced bool  // closed for another connection; guarded by Server.mu

	// What the reaper looks at: the tick of the last read, whether a request is being
	// handled, whether a long frame is being read.
	lastTick    atomic.Int64
	busy        atomic.Bool
	asked       atomic.Bool // there was a request
	readingLong atomic.Bool
}

// Software is what a client says about itself with ApiVersions.
type Software struct{ Name, Version string }

// RemoteAddr returns the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// SetSoftware records what the client says about itself.
func (c *Conn) SetSoftware(s Software) { c.software.Store(&s) }

// Software returns what the client said about itself, or the zero value.
func (c *Conn) Software() Software {
	if s := c.software.Load(); s != nil {
		return *s
	}
	return Software{}
}

// serve runs until the connection ends.
func (c *Conn) serve() {
	err := c.loop()
	if flushErr := c.flush(); err == nil {
		err = flushErr
	}
	if c.queue != nil {
		close(c.queue)
		<-c.done
	}
	c.cancel()
	c.nc.Close()
	c.endFrame()
	c.in.release()
	c.out.release()
	if err != nil && !isDisconnect(err) {
		c.server.cfg.Logger.Info("connection closed", "client", c.nc.RemoteAddr(), "listener", c.listener, "err", err)
	}
}

// isDisconnect reports whether err is how connections usually end.
func isDisconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) ||
		err == errTakenOver || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// touch notes that the client showed a sign of life.
func (c *Conn) touch() { c.lastTick.Store(c.server.tick.Load()) }

func (c *Conn) loop() error {
	for {
		frame, err := c.next()
		if err != nil {
			return err
		}
		c.busy.Store(true)
		if !c.asked.Load() {
			c.asked.Store(true)
		}
		err = c.handle(frame)
		c.busy.Store(false)
		c.endFrame()
		if err != nil {
			return err
		}
		if c.server.closing.Load() {
			return nil
		}
	}
}

// next returns the next frame without its size. It is valid until endFrame.
func (c *Conn) next() ([]byte, error) {
	if err := c.need(4); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(c.in.buffered())))
	if size < 0 || size > c.server.cfg.MaxRequestSize {
		return nil, fmt.Errorf("request of %d bytes: at most %d are allowed", size, c.server.cfg.MaxRequestSize)
	}
	if 4+size > readBufferSize {
		return c.longFrame(size)
	}
	if err := c.need(4 + size); err != nil {
		return nil, err
	}
	frame := c.in.buffered()[4 : 4+size : 4+size]
	c.in.r += 4 + size
	c.in.frames++
	return frame, nil
}

// handle answers one request.
func (c *Conn) handle(frame []byte) error {
	r := &c.req
	clientID, err := parseHeader(frame, r)
	if err != nil {
		return err
	}
	if c.client != string(clientID) {
		c.client = string(clientID)
	}
	r.ClientID, r.Listener, r.Conn, r.Received = c.client, c.listener, c, metrics.StartStopwatch()
	c.out.begin(r.CorrelationID, r.answerHasTags())
	err = c.server.cfg.Handler.Handle(c.ctx, r, &c.out)
	r.Body = nil
	queued := c.queued.Load() > 0
	if c.alone++; queued || c.in.pipelined() || c.in.long != nil {
		c.alone = 0
	}
	switch {
	case err != nil:
		c.out.rewind()
		return err
	case c.out.dropped:
		c.out.rewind()
		return nil
	case c.out.takeOver != nil:
		return c.handOver()
	case queued, c.out.deferred != nil && c.alone < aloneMin:
		return c.enqueue()
	case c.out.deferred != nil:
		if err := c.finish(); err != nil {
			c.out.rewind()
			return err
		}
	}
	c.out.end()
	if len(c.out.Buf) >= flushSize || len(c.out.files) > 0 {
		return c.flush()
	}
	return nil
}

var (
	errTakenOver = errors.New("the connection was taken over")
	errHasty     = errors.New("more was sent before the answer that hands the connection over")
)

// handOver sends the answer and gives the connection away. The frame counts as being handled meanwhile, so
// that nobody takes the connection for an idle one.
func (c *Conn) handOver() error {
	if c.queued.Load() > 0 || c.in.r < c.in.w {
		c.out.rewind()
		return errHasty
	}
	serve := c.out.takeOver
	c.out.end()
	if err := c.flush(); err != nil {
		return err
	}
	c.endFrame()
	c.in.release()
	serve(c.ctx, c.nc)
	return errTakenOver
}

// aloneMin is how many answers in a row a client must have waited for until we believe that
// it will wait for the next one too.
const aloneMin = 8

// finish waits for a deferred answer here: the client sends nothing meanwhile, and handing
// the answer to another goroutine would only cost time.
func (c *Conn) finish() error {
	if err := c.out.Flush(); err != nil {
		return err
	}
	return c.out.deferred.Finish(c.ctx, &c.out)
}

// flush sends everything that was gathered and gives the buffer back.
func (c *Conn) flush() error {
	if len(c.out.Buf) == 0 {
		return nil
	}
	err := c.send(&c.out, len(c.out.Buf))
	c.out.release()
	return err
}

// flushHead sends the answers before the current one.
func (c *Conn) flushHead(upTo int) error { return c.send(&c.out, upTo) }
