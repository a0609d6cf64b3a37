package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
)

// A testBody writes its text in pieces, and fails behind it if it is told so.
type testBody struct {
	text     string
	err      error
	released atomic.Int32
}

func (b *testBody) Size() int { return len(b.text) }

func (b *testBody) WriteTo(w io.Writer) (n int64, err error) {
	for rest := b.text; rest != ""; {
		k, err := io.WriteString(w, rest[:min(len(rest), 10_000)])
		n += int64(k)
		if err != nil {
			return n, err
		}
		rest = rest[k:]
	}
	return n, b.err
}

func (b *testBody) Release() { b.released.Add(1) }

// Bodies are sent at their places, in answers that follow each other and in deferred ones.
func TestBody(t *testing.T) {
	var bodies [4]*testBody
	for i := range bodies {
		bodies[i] = &testBody{text: strings.Repeat(string(rune('a'+i)), 70_000*i+5)}
	}
	open := make(chan struct{})
	server, addr := startServer(t, Config{Handler: handlerFunc(func(_ context.Context, r *Request, w *Response) error {
		w.Buf = append(w.Buf, '<')
		w.AppendBody(bodies[r.CorrelationID])
		w.Buf = append(w.Buf, '>')
		if r.CorrelationID == 2 {
			w.Defer(waitFor{c: open})
		}
		return nil
	})})
	c := dial(t, addr)
	var requests []byte
	for i := range bodies {
		requests = append(requests, frame(int32(i), nil)...)
	}
	if _, err := c.Write(requests); err != nil {
		t.Fatal(err)
	}
	close(open)
	for i, b := range bodies {
		correlation, got, err := readAnswer(c)
		if err != nil || correlation != int32(i) {
			t.Fatalf("got answer %d, %v, want %d", correlation, err, i)
		}
		if want := []byte("<" + b.text + ">"); !bytes.Equal(got, want) {
			t.Errorf("answer %d has %d bytes, want %d", i, len(got), len(want))
		}
	}
	c.Close()
	if err := server.Shutdown(context.Background()); err != nil { // a body is released behind its last byte
		t.Fatal(err)
	}
	for i, b := range bodies {
		if n := b.released.Load(); n != 1 {
			t.Errorf("body %d was released %d times", i, n)
		}
	}
}

// A body that cannot be made closes the connection: its size was promised.
func TestBodyFails(t *testing.T) {
	body := &testBody{text: "half", err: errors.New("no more")}
	server, addr := startServer(t, Config{Handler: handlerFunc(func(_ context.Context, _ *Request, w *Response) error {
		w.AppendBody(body)
		return nil
	})})
	c := dial(t, addr)
	if _, err := c.Write(frame(1, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	if err := server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := body.released.Load(); n != 1 {
		t.Errorf("the body was released %d times", n)
	}
}
