package wire

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// takeOverAll hands every connection over to serve at its first request.
func takeOverAll(serve func(ctx context.Context, nc net.Conn)) Handler {
	return handlerFunc(func(_ context.Context, r *Request, w *Response) error {
		w.Buf = append(w.Buf, r.Body...)
		w.TakeOver(serve)
		return nil
	})
}

// Behind its answer a connection is somebody else's, until that one returns.
func TestTakeOver(t *testing.T) {
	_, addr := startServer(t, Config{Handler: takeOverAll(func(_ context.Context, nc net.Conn) {
		var b [3]byte
		if _, err := io.ReadFull(nc, b[:]); err == nil {
			nc.Write(append(b[:], '!'))
		}
	})})
	c := dial(t, addr)
	c.Write(frame(7, []byte("hi")))
	wantAnswer(t, c, 7, []byte("hi"))
	c.Write([]byte("raw"))
	if rest, err := io.ReadAll(c); err != nil || string(rest) != "raw!" {
		t.Errorf("%q, %v", rest, err)
	}
}

// A client that sends on before it has the answer is cut off: nobody could say whose the bytes are.
func TestTakeOverOfHastyClient(t *testing.T) {
	taken := make(chan bool, 1)
	_, addr := startServer(t, Config{Handler: takeOverAll(func(context.Context, net.Conn) { taken <- true })})
	c := dial(t, addr)
	c.Write(append(frame(7, nil), "more"...))
	if _, err := io.ReadAll(c); err != nil && !isDisconnect(err) {
		t.Error(err)
	}
	if len(taken) > 0 {
		t.Error("the connection was handed over")
	}
}

// A connection that was taken over ends with the server, and with a client that hangs up, whoever has it.
func TestTakeOverEnds(t *testing.T) {
	ended := make(chan error, 1)
	taken := make(chan bool, 1)
	s, addr := startServer(t, Config{IdleTimeout: time.Millisecond, Handler: takeOverAll(func(ctx context.Context, _ net.Conn) {
		taken <- true
		<-ctx.Done()
		ended <- ctx.Err()
	})})
	hangsUp := dial(t, addr)
	hangsUp.Write(frame(1, nil))
	wantAnswer(t, hangsUp, 1, nil)
	<-taken
	hangsUp.Close()
	<-ended

	stays := dial(t, addr)
	stays.Write(frame(2, nil))
	wantAnswer(t, stays, 2, nil)
	<-taken
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}
