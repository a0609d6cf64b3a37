package wire

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Handler answers requests. It is called by many goroutines, one request of a connection
// at a time.
type Handler interface {
	// Handle appends the body of the answer to w.Buf. It may block; ctx ends with the
	// connection or the server. An error closes the connection without an answer.
	Handle(ctx context.Context, r *Request, w *Response) error
}

// A Config is the bounds of a Server. A zero field means the default, which is Kafka's
// where Kafka has one.
type Config struct {
	Handler            Handler
	MaxRequestSize     int           // socket.request.max.bytes
	IdleTimeout        time.Duration // connections.max.idle.ms; negative: never
	BufferBytes        int64         // all frames above 64 KiB being read or handled
	SendBufferBytes    int           // of the socket; 0: the kernel decides
	ReceiveBufferBytes int           // of the socket; 0: the kernel decides
	Logger             *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxRequestSize == 0 {
		c.MaxRequestSize = 100 << 20
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 10 * time.Minute
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = 512 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Server accepts connections on any number of listeners and serves them with one Handler.
type Server struct {
	cfg     Config
	budget  Budget
	closing atomic.Bool
	tick    atomic.Int64 // seconds since the start, advanced by the reaper
	killed  atomic.Int64 // connections that the reaper closed
	warned  atomic.Int64 // the tick of the last warning of a shortage of descriptors, plus one; 0: never

	displacedTotal atomic.Int64

	ctx    context.Context // ends when connections must
	cancel context.CancelFunc
	wg     sync.WaitGroup // accept loops, connections, the reaper

	mu struct {
		sync.Mutex
		listeners  []net.Listener
		conns      map[*Conn]struct{}
		perIP      map[netip.Addr]int
		limits     ConnectionLimits
		byListener map[string]*listenerCount
		accepted   int64
		displaced  int // of conns: closed for others, and not gone yet
	}
}

// NewServer returns a Server that listens nowhere yet. Shutdown ends it.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults()}
	s.budget.size = s.cfg.BufferBytes
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mu.conns = map[*Conn]struct{}{}
	s.mu.perIP = map[netip.Addr]int{}
	s.mu.limits = ConnectionLimits{All: math.MaxInt, PerIP: math.MaxInt}
	s.mu.byListener = map[string]*listenerCount{}
	s.wg.Go(s.reap)
	return s
}

// Serve accepts connections from ln in a goroutine of its own, until Shutdown, which
// closes ln. The name is the listener's, as in Kafka's listeners setting.
func (s *Server) Serve(name string, ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		ln.Close()
		return
	}
	s.mu.listeners = append(s.mu.listeners, ln)
	s.countLocked(name)
	s.wg.Go(func() { s.accept(name, ln) })
}

func (s *Server) accept(name string, ln net.Listener) {
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			s.open(name, nc)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, most likely
			s.warnOfDescriptors("connections wait", err)
			s.makeRoom()
			if !s.pause(50 * time.Millisecond) {
				return
			}
		}
	}
}

// pause waits, and reports whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// open starts to serve nc, or closes it when there are too many.
func (s *Server) open(name string, nc net.Conn) {
	c := s.newConn(name, nc)
	if err := s.add(c); err != nil {
		if err == errDescriptors {
			s.warnOfDescriptors("connections are refused", err)
		} else {
			s.cfg.Logger.Warn("connection refused", "client", nc.RemoteAddr(), "listener", name, "err", err)
		}
		c.cancel()
		nc.Close()
		return
	}
	go func() {
		defer s.wg.Done()
		defer s.remove(c)
		c.serve()
	}()
}

func (s *Server) newConn(name string, nc net.Conn) *Conn {
	c := &Conn{server: s, listener: name, nc: nc, addr: addrOf(nc)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.out.flush = c.flushHead
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn()
		if s.cfg.SendBufferBytes > 0 {
			tcp.SetWriteBuffer(s.cfg.SendBufferBytes)
		}
		if s.cfg.ReceiveBufferBytes > 0 {
			tcp.SetReadBuffer(s.cfg.ReceiveBufferBytes)
		}
	}
	c.initReader()
	c.initWriter()
	c.touch()
	return c
}

func addrOf(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// countLocked returns what is counted for a listener.
func (s *Server) countLocked(listener string) *listenerCount {
	count := s.mu.byListener[listener]
	if count == nil {
		count = &listenerCount{}
		s.mu.byListener[listener] = count
	}
	return count
}

func (s *Server) add(c *Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.countLocked(c.listener)
	if err := s.refusalLocked(c); err != nil {
		count.refused++
		return err
	}
	count.accepted++
	s.mu.accepted++
	c.number = s.mu.accepted
	s.mu.conns[c] = struct{}{}
	s.mu.perIP[c.addr]++
	s.wg.Add(1)
	return nil
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
	if c.displaced {
		s.mu.displaced--
	}
	if s.mu.perIP[c.addr]--; s.mu.perIP[c.addr] == 0 {
		delete(s.mu.perIP, c.addr)
	}
}

// A long frame holds a part of the budget, so it does not get the time that idle
// connections get. These are the seconds that it may stand still; fewer when another frame
// waits for the budget, so that clients that announce much and send nothing keep nobody out.
const (
	stalledAfter          = 30
	stalledAfterContended = 1
)

// reap closes, once a second, the connections that are idle or stalled, and tells those
// that wait for a client that is gone.
func (s *Server) reap() {
	for s.pause(time.Second) {
		now, stalled := s.tick.Add(1), int64(stalledAfter)
		if s.budget.Contended() {
			stalled = stalledAfterContended
		}
		s.mu.Lock()
		for c := range s.mu.conns {
			c.reap(now, stalled)
		}
		s.mu.Unlock()
	}
}

func (c *Conn) reap(now, stalled int64) {
	idle := now - c.lastTick.Load()
	limit := c.server.cfg.IdleTimeout
	switch {
	case c.readingLong.Load() && idle > stalled:
		c.kill()
	case c.busy.Load() || c.queued.Load() > 0:
		if idle > 1 && c.hungUp() {
			c.cancel()
		}
	case limit >= 0 && time.Duration(idle)*time.Second > limit:
		c.kill()
	}
}

// kill ends the connection, whose goroutine notices.
func (c *Conn) kill() {
	if c.nc.Close() == nil { // not before
		c.server.killed.Add(1)
	}
}

// hungUp reports whether the client closed its end and sent nothing before that.
func (c *Conn) hungUp() bool {
	if c.raw == nil {
		return false
	}
	gone := false
	c.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil
	})
	return gone
}

// Shutdown stops listening, lets the requests that are being handled finish, and waits for
// all connections until ctx ends; then it cuts them. Handlers that wait are told at once,
// by their context.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for _, ln := range s.mu.listeners {
		ln.Close()
	}
	for c := range s.mu.conns {
		c.nc.SetReadDeadline(time.Unix(1, 0)) // wakes a connection that waits for a request
	}
	s.mu.Unlock()
	s.cancel()

	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.mu.conns {
		c.nc.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
