package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A connection keeps to what package net says of them.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b, l := pair(t)
		return a, b, func() { a.Close(); b.Close(); l.Close() }, nil
	})
}

// pair returns a connection between two hosts, and the listener.
func pair(t *testing.T) (client, server net.Conn, l net.Listener) {
	t.Helper()
	var n Network
	there, here := n.AddHost("there"), n.AddHost("here")
	l, err := there.Listen(t.Context(), "tcp", ":9092")
	if err != nil {
		t.Fatal(err)
	}
	client, err = here.Dial(t.Context(), "tcp", "there:9092")
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server, l
}

func TestAddresses(t *testing.T) {
	var n Network
	a, b := n.AddHost("a"), n.AddHost("b")
	listen := func(h *Host, address, want string, wantErr error) {
		t.Helper()
		l, err := h.Listen(t.Context(), "tcp", address)
		if !errors.Is(err, wantErr) {
			t.Errorf("listen at %q: %v, want %v", address, err, wantErr)
		}
		if err == nil && l.Addr().String() != want {
			t.Errorf("listen at %q: got %v, want %s", address, l.Addr(), want)
		}
	}
	listen(a, ":9092", "10.0.0.1:9092", nil)
	listen(a, "localhost:9093", "10.0.0.1:9093", nil)
	listen(a, "a:0", "10.0.0.1:49152", nil)
	listen(a, "0.0.0.0:0", "10.0.0.1:49153", nil)
	listen(b, "10.0.0.2:9092", "10.0.0.2:9092", nil)
	listen(b, ":9092", "", syscall.EADDRINUSE)
	listen(b, "a:1", "", syscall.EADDRNOTAVAIL)

	dial := func(h *Host, address string, wantErr error) {
		t.Helper()
		c, err := h.Dial(t.Context(), "tcp", address)
		if !errors.Is(err, wantErr) {
			t.Errorf("dial %q: %v, want %v", address, err, wantErr)
		}
		if err == nil {
			c.Close()
		}
	}
	dial(b, "a:9092", nil)
	dial(b, "10.0.0.1:9092", nil)
	dial(b, "localhost:9092", nil)
	dial(b, "localhost:9093", syscall.ECONNREFUSED)
	dial(b, "a:1", syscall.ECONNREFUSED)
	if _, err := b.Dial(t.Context(), "tcp", "c:9092"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("dial c: %v", err)
	}
	if addrs, err := b.LookupNetIP(t.Context(), "ip", "a"); err != nil || len(addrs) != 1 || addrs[0].String() != "10.0.0.1" {
		t.Errorf("a is at %v, %v", addrs, err)
	}
}

// A port is free again when its listener is closed.
func TestListenAgain(t *testing.T) {
	h := new(Network).AddHost("a")
	for range 3 {
		l, err := h.Listen(t.Context(), "tcp", ":9092")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	}
}

// What was written before a close, whole or half, is read; then comes the end.
func TestClose(t *testing.T) {
	f := func(name string, end func(net.Conn) error, wantWrite error) {
		t.Run(name, func(t *testing.T) {
			client, server, l := pair(t)
			defer l.Close()
			defer server.Close()
			defer client.Close()
			if _, err := client.Write([]byte("question")); err != nil {
				t.Fatal(err)
			}
			if err := end(client); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(server); err != nil || string(got) != "question" {
				t.Errorf("the server read %q, %v", got, err)
			}
			if _, err := server.Write([]byte("answer")); !errors.Is(err, wantWrite) {
				t.Errorf("the server's answer: %v, want %v", err, wantWrite)
			}
			if _, err := client.Write([]byte("more")); err == nil {
				t.Error("the client wrote after the end")
			}
			if wantWrite != nil {
				return
			}
			got := make([]byte, 6)
			if _, err := io.ReadFull(client, got); err != nil || string(got) != "answer" {
				t.Errorf("the client read %q, %v", got, err)
			}
		})
	}
	f("both ways", net.Conn.Close, syscall.EPIPE)
	f("one way", func(c net.Conn) error { return c.(*Conn).CloseWrite() }, nil)
}

// After a kill nobody listens, and neither end reads or writes, whatever was under way.
func TestKill(t *testing.T) {
	client, server, l := pair(t)
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	host := l.(*listener).host
	late, err := host.Dial(t.Context(), "tcp", ":9092") // nobody accepts it
	if err != nil {
		t.Fatal(err)
	}
	host.Kill()
	for name, c := range map[string]net.Conn{"client": client, "server": server, "late": late} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s reads: %v", name, err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s writes: %v", name, err)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := host.Dial(t.Context(), "tcp", ":9092"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
	again, err := host.Listen(t.Context(), "tcp", ":9092")
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// Whoever waits on the network waits durably: time goes on in a bubble.
func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, l := pair(t)
		began := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() { l.Accept() })
		waiting.Go(func() { server.Read(make([]byte, 1)) })
		waiting.Go(func() { client.Write(make([]byte, windowSize+2)) }) // the server reads one byte of it
		time.Sleep(time.Hour)
		synctest.Wait()
		if took := time.Since(began); took != time.Hour {
			t.Errorf("%v have passed", took)
		}
		client.Close()
		server.Close()
		l.Close()
		waiting.Wait()
	})
}

// A deadline ends what waits, at its time; a new one lets it go on.
func TestDeadlineInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, l := pair(t)
		began := time.Now()
		after := func(name string, wait time.Duration, err error) {
			t.Helper()
			if took := time.Since(began); took != wait || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v after %v, want the deadline after %v", name, err, took, wait)
			}
		}
		client.SetReadDeadline(began.Add(time.Second))
		_, err := client.Read(make([]byte, 1))
		after("read", time.Second, err)
		client.SetDeadline(began.Add(3 * time.Second))
		n, err := client.Write(make([]byte, 2*windowSize))
		after("write", 3*time.Second, err)
		if n != windowSize {
			t.Errorf("%d bytes are written, want %d", n, windowSize)
		}
		client.SetDeadline(time.Time{})
		go server.Write([]byte("x"))
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		client.Close()
		server.Close()
		l.Close()
	})
}

// Who connects to a listener whose queue is full waits, until the context ends.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(Network).AddHost("a")
		l, err := h.Listen(t.Context(), "tcp", ":1")
		if err != nil {
			t.Fatal(err)
		}
		for range backlog {
			if _, err := h.Dial(t.Context(), "tcp", "a:1"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := h.Dial(ctx, "tcp", "a:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the connection behind a full queue: %v", err)
		}
		l.Close()
		if _, err := h.Dial(t.Context(), "tcp", "a:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the close: %v", err)
		}
	})
}
