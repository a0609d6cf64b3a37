package memnet

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

// hosts returns a network of some hosts.
func hosts(names ...string) (*Network, []*Host) {
	n, list := &Network{}, []*Host{}
	for _, name := range names {
		list = append(list, n.AddHost(name))
	}
	return n, list
}

// connected returns a connection from one host to another.
func connected(t *testing.T, from, to *Host) (near, far net.Conn) {
	t.Helper()
	l, err := to.Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = from.Dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func mustWrite(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// wantRead reads so many bytes as are wanted.
func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

// wantSilence: nothing comes for an hour.
func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Hour))
	defer c.SetReadDeadline(time.Time{})
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v, want nothing to come", n, err)
	}
}

// What is sent into a cut link arrives when it is healed, in order; the other direction goes on.
func TestCutOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b")
		a, b := connected(t, h[0], h[1])
		n.Link("a", "b").Cut()
		mustWrite(t, a, "one ")
		mustWrite(t, b, "back")
		wantRead(t, a, "back")
		wantSilence(t, b)
		mustWrite(t, a, "two")
		n.Link("b", "a").Cut()
		n.Link("a", "b").Heal()
		wantRead(t, b, "one two")
		mustWrite(t, b, "late")
		wantSilence(t, a)
		n.Heal()
		wantRead(t, a, "late")
	})
}

// A writer into a cut link waits when its window is full, and goes on when it is healed.
func TestCutFillsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b")
		a, b := connected(t, h[0], h[1])
		n.Link("a", "b").Cut()
		a.SetWriteDeadline(time.Now().Add(time.Minute))
		if written, err := a.Write(make([]byte, 2*windowSize)); written != windowSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d bytes, %v, want %d and the deadline", written, err, windowSize)
		}
		a.SetWriteDeadline(time.Time{})
		n.Heal()
		go a.Write(make([]byte, windowSize))
		if read, err := io.ReadFull(b, make([]byte, 2*windowSize)); err != nil {
			t.Errorf("read %d bytes: %v", read, err)
		}
	})
}

// The end of a connection is news that has to get through, behind what was sent before; so is that nobody reads any more.
func TestCutHidesTheEnd(t *testing.T) {
	f := func(name string, end func(*Host, net.Conn), wantRest string, readError, writeError error) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, h := hosts("a", "b")
				a, b := connected(t, h[0], h[1])
				n.Partition("a")
				mustWrite(t, a, "last")
				end(h[0], a)
				wantSilence(t, b)
				mustWrite(t, b, "is anybody there?")
				n.Heal()
				rest, err := io.ReadAll(b)
				if string(rest) != wantRest || !errors.Is(err, readError) {
					t.Errorf("read %q, %v, want %q, %v", rest, err, wantRest, readError)
				}
				if _, err := b.Write([]byte("x")); !errors.Is(err, writeError) {
					t.Errorf("write: %v, want %v", err, writeError)
				}
			})
		})
	}
	f("Close", func(_ *Host, c net.Conn) { c.Close() }, "last", nil, syscall.EPIPE)
	f("CloseWrite", func(_ *Host, c net.Conn) { c.(*Conn).CloseWrite() }, "last", nil, nil)
	f("Kill", func(h *Host, _ net.Conn) { h.Kill() }, "", syscall.ECONNRESET, syscall.ECONNRESET)
}

// Who connects over a cut link, there or back, waits until it is healed, or has waited too long.
func TestCutDial(t *testing.T) {
	for _, cut := range [][2]string{{"a", "b"}, {"b", "a"}} {
		synctest.Test(t, func(t *testing.T) {
			n, h := hosts("a", "b")
			l, err := h[1].Listen(t.Context(), "tcp", ":1")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			dial := func(ctx context.Context, address string, want error, after time.Duration) net.Conn {
				t.Helper()
				began := time.Now()
				c, err := h[0].Dial(ctx, "tcp", address)
				if took := time.Since(began); !errors.Is(err, want) || took != after {
					t.Errorf("%v: dial %s: %v after %v, want %v after %v", cut, address, err, took, want, after)
				}
				return c
			}
			link := n.Link(cut[0], cut[1])
			link.Cut()
			dial(t.Context(), "b:1", syscall.ETIMEDOUT, connectTimeout)
			dial(t.Context(), "b:2", syscall.ETIMEDOUT, connectTimeout) // nobody listens, and nobody hears of it
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			dial(ctx, "b:1", context.DeadlineExceeded, time.Second)
			time.AfterFunc(time.Minute, link.Heal)
			if c := dial(t.Context(), "b:1", nil, time.Minute); c != nil {
				c.Close()
			}
			dial(t.Context(), "b:2", syscall.ECONNREFUSED, 0)
		})
	}
}

// A connection that nobody at home waits for any more is reset for who has accepted it.
func TestCutDialAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b")
		l, err := h[1].Listen(t.Context(), "tcp", ":1")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n.Link("b", "a").Cut()
		if _, err := h[0].Dial(t.Context(), "tcp", "b:1"); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("dial: %v", err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
	})
}

// A partition separates two sides, and nothing else.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b", "c", "d")
		within, far := connected(t, h[0], h[1])
		others, beyond := connected(t, h[2], h[3])
		across, other := connected(t, h[1], h[2])
		n.Partition("a", "b")
		mustWrite(t, within, "x")
		wantRead(t, far, "x")
		mustWrite(t, others, "y")
		wantRead(t, beyond, "y")
		mustWrite(t, across, "z")
		mustWrite(t, other, "w")
		wantSilence(t, other)
		wantSilence(t, across)
		own, err := h[0].Listen(t.Context(), "tcp", ":7") // nobody is cut off from himself
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		if c, err := h[0].Dial(t.Context(), "tcp", "a:7"); err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
		n.Heal()
		wantRead(t, other, "z")
		wantRead(t, across, "w")
	})
}

// What is sent arrives after the delay of its link, and in order however delays are drawn.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b")
		there, back := n.Link("a", "b"), n.Link("b", "a")
		there.SetDelay(func() time.Duration { return 3 * time.Millisecond })
		back.SetDelay(func() time.Duration { return 4 * time.Millisecond })
		began := time.Now()
		after := func(want time.Duration) {
			t.Helper()
			if took := time.Since(began); took != want {
				t.Errorf("after %v, want %v", took, want)
			}
			began = time.Now()
		}
		a, b := connected(t, h[0], h[1])
		after(7 * time.Millisecond)
		mustWrite(t, a, "question")
		wantRead(t, b, "question")
		after(3 * time.Millisecond)
		mustWrite(t, b, "answer")
		wantRead(t, a, "answer")
		after(4 * time.Millisecond)
		there.SetDelay(nil)
		mustWrite(t, a, "at once")
		wantRead(t, b, "at once")
		after(0)

		rng := rand.New(rand.NewPCG(1, 2))
		there.SetDelay(func() time.Duration { return time.Duration(rng.IntN(1000)) * time.Millisecond })
		var want []byte
		for i := range byte(100) {
			want = append(want, i)
			mustWrite(t, a, string([]byte{i}))
			if i%10 == 0 {
				time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			}
			if i == 50 {
				there.Cut()
				time.AfterFunc(3*time.Second, there.Heal)
			}
		}
		there.SetDelay(nil) // what is under way keeps its time, and what comes after it its place
		mustWrite(t, a, "end")
		if time.Since(began) < time.Second {
			t.Fatal("the rest has no time to be late")
		}
		wantRead(t, b, string(want)+"end")
		h[0].Kill()
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
	})
}

// Bytes that arrive where nobody reads any more are gone, and the writer learns it after the way there and back.
func TestDelayedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := hosts("a", "b")
		a, b := connected(t, h[0], h[1])
		n.Link("a", "b").SetDelay(func() time.Duration { return time.Second })
		n.Link("b", "a").SetDelay(func() time.Duration { return time.Minute })
		mustWrite(t, a, "x")
		b.Close()
		time.Sleep(59 * time.Second)
		mustWrite(t, a, "y")
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := a.Write([]byte("z")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
		if _, err := a.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v", err)
		}
	})
}

// A slow connection keeps to what package net says of connections, too.
func TestDelayedConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n, h := hosts("a", "b")
		for _, l := range []*Link{n.Link("a", "b"), n.Link("b", "a")} {
			l.SetDelay(func() time.Duration { return 10 * time.Microsecond })
		}
		a, b := connected(t, h[0], h[1])
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestUnknownLink(t *testing.T) {
	n, _ := hosts("a", "b")
	for name, f := range map[string]func(){
		"to nobody": func() { n.Link("a", "c") }, "from nobody": func() { n.Link("c", "a") }, "to itself": func() { n.Link("a", "a") }, "of nobody": func() { n.Partition("c") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
