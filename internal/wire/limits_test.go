package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// quietServer serves nobody; its clock stands still but for what a test adds.
func quietServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Handler = handlerFunc(echo)
	s := NewServer(cfg)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return s
}

// piped returns a connection of a server over a pipe, and the client's end.
func piped(t *testing.T, s *Server) (c *Conn, client net.Conn) {
	t.Helper()
	client, server := net.Pipe()
	c = s.newConn("PIPE", server)
	t.Cleanup(func() { client.Close(); server.Close(); c.cancel() })
	return c, client
}

func TestIdlerThan(t *testing.T) {
	s := quietServer(t, Config{})
	f := func(tick, number, otherTick, otherNumber int64, want bool) {
		t.Helper()
		a, b := &Conn{server: s, number: number}, &Conn{server: s, number: otherNumber}
		a.lastTick.Store(tick)
		b.lastTick.Store(otherTick)
		if got := a.idlerThan(b); got != want {
			t.Errorf("tick %d, number %d and tick %d, number %d: got %v", tick, number, otherTick, otherNumber, got)
		}
	}
	f(1, 9, 2, 1, true)
	f(2, 1, 1, 9, false)
	f(1, 1, 1, 2, true)
	f(1, 2, 1, 1, false)
	f(1, 1, 1, 1, false)
}

// A shortage is named in the log once a minute.
func TestWarnPause(t *testing.T) {
	var log bytes.Buffer
	s := quietServer(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	lines := 0
	f := func(tick int64, warns bool) {
		t.Helper()
		s.tick.Store(tick)
		s.warnOfDescriptors("test", nil)
		if warns {
			lines++
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("tick %d: %d lines, want %d", tick, got, lines)
		}
	}
	f(0, true)
	f(1, false)
	f(warnPause-1, false)
	f(warnPause, true)
	f(2*warnPause-1, false)
	f(3*warnPause, true)
}

// Who is refused for want of descriptors is not in the log, one by one; others are.
func TestRefusalsAreLogged(t *testing.T) {
	f := func(limits ConnectionLimits, want string, count int) {
		t.Helper()
		var log bytes.Buffer
		s := quietServer(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.Limit(limits)
		if limits.Descriptors > 0 {
			c, _ := piped(t, s)
			c.busy.Store(true)
			if err := s.add(c); err != nil {
				t.Fatal(err)
			}
			defer func() { s.remove(c); s.wg.Done() }()
		}
		for range 3 {
			client, server := net.Pipe()
			s.open("PIPE", server)
			if _, err := client.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%+v: got %v, want to be refused", limits, err)
			}
			client.Close()
		}
		if got := strings.Count(log.String(), want); got != count {
			t.Errorf("%+v: %d lines say %q, want %d:\n%s", limits, got, want, count, log.String())
		}
	}
	f(ConnectionLimits{All: 0, PerIP: 9}, `msg="connection refused"`, 3)
	f(ConnectionLimits{All: 9, PerIP: 0}, `msg="connection refused"`, 3)
	f(ConnectionLimits{All: 9, PerIP: 9, Descriptors: 1}, "connections are refused", 1)
	f(ConnectionLimits{All: 9, PerIP: 9, Descriptors: 1}, `msg="connection refused"`, 0)
}

// Addresses whose connections are gone are not counted any more.
func TestAddressesAreForgotten(t *testing.T) {
	s := quietServer(t, Config{})
	a, _ := piped(t, s)
	b, _ := piped(t, s)
	want := func(n, addresses int) {
		t.Helper()
		if s.mu.perIP[a.addr] != n || len(s.mu.perIP) != addresses {
			t.Errorf("got %v, want %d connections of %d addresses", s.mu.perIP, n, addresses)
		}
	}
	for _, c := range []*Conn{a, b} {
		if err := s.add(c); err != nil {
			t.Fatal(err)
		}
		defer s.wg.Done()
	}
	want(2, 1)
	s.remove(a)
	want(1, 1)
	s.remove(b)
	want(0, 0)
}

// When a connection is closed that is silent, and when whoever works for it is told that the client is gone.
func TestReap(t *testing.T) {
	f := func(name string, timeout time.Duration, idle int64, state func(*Conn), killed bool) {
		t.Helper()
		s := quietServer(t, Config{IdleTimeout: timeout})
		c, _ := piped(t, s)
		if state != nil {
			state(c)
		}
		c.reap(c.lastTick.Load()+idle, 30)
		if got := s.killed.Load() > 0; got != killed || c.ctx.Err() != nil {
			t.Errorf("%s, idle for %d s of %v: killed %v, %v", name, idle, timeout, got, c.ctx.Err())
		}
	}
	long := func(c *Conn) { c.readingLong.Store(true) }
	busy := func(c *Conn) { c.busy.Store(true) }
	queued := func(c *Conn) { c.queued.Store(1) }
	f("idle", 5*time.Second, 5, nil, false)
	f("idle", 5*time.Second, 6, nil, true)
	f("idle, no limit", -1, 1<<20, nil, false)
	f("a long frame", time.Hour, 30, long, false)
	f("a long frame", time.Hour, 31, long, true)
	f("busy", 5*time.Second, 99, busy, false)
	f("queued", 5*time.Second, 99, queued, false)
}

// A client that hangs up ends what is done for it, a moment later, and one that is there does not.
func TestReapHungUp(t *testing.T) {
	s := quietServer(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client := dial(t, ln.Addr().String())
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := s.newConn("TCP", server)
	defer c.cancel()
	c.busy.Store(true)
	f := func(name string, idle int64, gone bool) {
		t.Helper()
		c.reap(c.lastTick.Load()+idle, 30)
		if got := c.ctx.Err() != nil; got != gone {
			t.Errorf("%s, idle for %d s: told %v", name, idle, got)
		}
	}
	f("there", 2, false)
	client.Close()
	for !c.hungUp() { // the kernel tells it soon
		runtime.Gosched()
	}
	f("gone", 1, false)
	f("gone", 2, true)
}

// An end between two requests is one; an end inside of one is not.
func TestNeedAtTheEnd(t *testing.T) {
	f := func(sent string, want error) {
		t.Helper()
		s := quietServer(t, Config{})
		c, client := piped(t, s)
		go func() { io.WriteString(client, sent); client.Close() }()
		if err := c.need(4); !errors.Is(err, want) || want == nil && string(c.in.buffered()) != sent {
			t.Errorf("%q: got %v, %q", sent, err, c.in.buffered())
		}
		c.in.release()
	}
	f("", io.EOF)
	f("abc", io.ErrUnexpectedEOF)
	f("abcd", nil)
}

func TestIsPipelined(t *testing.T) {
	f := func(frames, r, w int, want bool) {
		t.Helper()
		if got := (&input{frames: frames, r: r, w: w}).pipelined(); got != want {
			t.Errorf("%d frames since a read, bytes %d to %d: got %v", frames, r, w, got)
		}
	}
	f(1, 10, 10, false)
	f(0, 0, 0, false)
	f(2, 10, 10, true)
	f(1, 10, 11, true)
}

// As large a request as is allowed is read.
func TestLargestRequest(t *testing.T) {
	f := func(limit, size int, ok bool) {
		t.Helper()
		s := quietServer(t, Config{MaxRequestSize: limit})
		c, client := piped(t, s)
		go client.Write(frame(1, make([]byte, size-14)))
		if got, err := c.next(); (err == nil) != ok || ok && len(got) != size {
			t.Errorf("limit %d, %d bytes: got %d, %v", limit, size, len(got), err)
		}
		c.endFrame()
		c.in.release()
	}
	f(100, 100, true)
	f(100, 101, false)
	f(200_000, 200_000, true)
	f(200_000, 200_001, false)
}

// Buffers have the size that is asked for, at least, and come back to their class.
func TestBufferClasses(t *testing.T) {
	for i := range bufferPools {
		bufferPools[i] = sync.Pool{} // without what others have left
	}
	for _, class := range bufferClasses {
		for _, n := range []int{class - 1, class} {
			if b := getBuffer(n); cap(b.b) != class || len(b.b) != 0 {
				t.Errorf("%d bytes: got a buffer of %d", n, cap(b.b))
			}
		}
	}
	largest := bufferClasses[len(bufferClasses)-1]
	if b := getBuffer(largest + 1); cap(b.b) != largest+1 {
		t.Errorf("%d bytes: got a buffer of %d", largest+1, cap(b.b))
	}
	putBuffer(&buffer{make([]byte, 0, 100)}) // of no class
	for range 20 {
		if b := getBuffer(1); cap(b.b) < bufferClasses[0] {
			t.Fatalf("got a buffer of %d", cap(b.b))
		}
	}
}

func TestTryAcquire(t *testing.T) {
	b := NewBudget(100)
	try := func(n int64, want bool) {
		t.Helper()
		if got := b.TryAcquire(n); got != want {
			t.Errorf("%d of 100, %d used: got %v", n, b.mu.used, got)
		}
	}
	try(60, true)
	try(41, false)
	try(40, true)
	try(1, false)
	b.Release(100)
	try(101, false)
	try(100, true)
	if b.Contended() {
		t.Error("nobody waits")
	}
	// Who waits goes first, and who gives up waiting makes room for those behind.
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { first <- b.Acquire(ctx, 80) }()
	waiters := func(n int) {
		for {
			b.mu.Lock()
			got := len(b.mu.waiters)
			b.mu.Unlock()
			if got == n {
				return
			}
			runtime.Gosched()
		}
	}
	waiters(1)
	go func() { second <- b.Acquire(t.Context(), 30) }()
	waiters(2)
	if !b.Contended() {
		t.Error("two wait, and nobody says so")
	}
	b.Release(50)
	try(1, false) // though 50 are free
	cancel()
	if err := <-first; err == nil {
		t.Error("who gave up got it")
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	if b.Contended() || b.mu.used != 80 {
		t.Errorf("%d used, contended %v", b.mu.used, b.Contended())
	}
	try(20, true)
	b.Release(100)
}

func TestConnectionLimitsMath(t *testing.T) {
	s := quietServer(t, Config{})
	c, _ := piped(t, s)
	f := func(limits ConnectionLimits, want error) {
		t.Helper()
		s.Limit(limits)
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := s.refusalLocked(c); got != want {
			t.Errorf("%+v: got %v, want %v", limits, got, want)
		}
	}
	f(ConnectionLimits{All: 1, PerIP: 1}, nil)
	f(ConnectionLimits{All: 0, PerIP: 1}, errConnections)
	f(ConnectionLimits{All: 1, PerIP: 0}, errConnectionsPerIP)
	f(ConnectionLimits{All: math.MaxInt, PerIP: math.MaxInt, Descriptors: 1}, nil)
}
