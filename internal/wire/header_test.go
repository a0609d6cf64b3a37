package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestFlexible(t *testing.T) {
	f := func(key, version int16, want bool) {
		t.Helper()
		if got := flexible(key, version); got != want {
			t.Errorf("key %d, version %d: got %v", key, version, got)
		}
	}
	f(0, 8, false)
	f(0, 9, true)
	f(3, 8, false)
	f(3, 9, true)
	f(3, 99, true)
	f(17, 1, false) // SaslHandshake never is
	f(17, 99, false)
	f(-1, 99, false)
	f(int16(len(flexibleSince)), 99, false)
	f(int16(len(flexibleSince)-1), 32767, true)
}

// A header has its tags in flexible versions. Those of ApiVersions may be unreadable: the client may be newer.
func TestParseHeader(t *testing.T) {
	f := func(key, version int16, rest []byte, body string, ok bool) {
		t.Helper()
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = append(b, 0, 0, 0, 7, 0, 1, 'c')
		var r Request
		client, err := parseHeader(append(b, rest...), &r)
		switch {
		case ok != (err == nil) || !ok && !errors.Is(err, errHeader):
			t.Errorf("key %d, version %d, %q: got %v", key, version, rest, err)
		case ok && (string(client) != "c" || r.CorrelationID != 7 || string(r.Body) != body || r.Key != key || r.Version != version):
			t.Errorf("key %d, version %d, %q: got %q, %+v", key, version, rest, client, r)
		}
	}
	f(3, 8, []byte("body"), "body", true)
	f(3, 9, []byte("\x00body"), "body", true)
	f(3, 9, []byte("\x01\x05\x02xybody"), "body", true)
	f(3, 9, nil, "", false)
	f(3, 9, []byte("\x01\x05\x09xy"), "", false)
	f(18, 3, []byte("\x00body"), "body", true)
	f(18, 3, []byte("\x01\x05\x02xybody"), "body", true)
	f(18, 99, []byte("\x01\x05\x7fxy"), "\x01\x05\x7fxy", true)
	f(18, 99, nil, "", true)
}

func TestIsDisconnect(t *testing.T) {
	f := func(err error, want bool) {
		t.Helper()
		if got := isDisconnect(fmt.Errorf("read: %w", err)); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
	f(io.EOF, true)
	f(net.ErrClosed, true)
	f(context.Canceled, true)
	f(os.ErrDeadlineExceeded, true)
	f(syscall.ECONNRESET, true)
	f(syscall.EPIPE, true)
	f(io.ErrUnexpectedEOF, false)
	f(errHeader, false)
	f(syscall.EIO, false)
}

// A client may change its id, and the header of its answer follows the version it asked in.
func TestAnswerHeaders(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(func(_ context.Context, r *Request, w *Response) error {
		w.Buf = append(w.Buf, r.ClientID...)
		return nil
	})})
	c := dial(t, addr)
	f := func(key, version int16, client, want string) {
		t.Helper()
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = append(b, 0, 0, 0, 7)
		b = AppendString(b, client, false)
		b = append(b, 0)
		c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
		wantAnswer(t, c, 7, []byte(want))
	}
	f(3, 8, "one", "one")
	f(3, 8, "one", "one")
	f(3, 8, "two", "two")
	f(3, 9, "two", "\x00two")
	f(18, 3, "three", "three")
	f(3, 9, "", "\x00")
}

// What a broker passes on is what the client asked, and the answer comes back to it.
func TestForwardedRequest(t *testing.T) {
	f := func(r Request, head string) {
		t.Helper()
		b := AppendRequest(nil, &r)
		if string(b) != head+string(r.Body) {
			t.Errorf("key %d, version %d: %q, want %q and the body", r.Key, r.Version, b, head)
		}
		got, err := ParseRequest(b)
		if err != nil || got.Key != r.Key || got.Version != r.Version || got.CorrelationID != r.CorrelationID || got.ClientID != r.ClientID || string(got.Body) != string(r.Body) {
			t.Errorf("key %d, version %d: %+v, %v", r.Key, r.Version, got, err)
		}
		answer := append(AppendResponseHeader(nil, got), "answer"...)
		if body, err := ParseResponse(answer, &r); err != nil || string(body) != "answer" {
			t.Errorf("key %d, version %d: the answer is %q, %v", r.Key, r.Version, body, err)
		}
		other := r
		other.CorrelationID++
		if _, err := ParseResponse(answer, &other); !errors.Is(err, errHeader) {
			t.Errorf("an answer to another request: %v", err)
		}
	}
	f(Request{Key: 19, Version: 4, CorrelationID: 7, ClientID: "c", Body: []byte("body")}, "\x00\x13\x00\x04\x00\x00\x00\x07\x00\x01c")
	f(Request{Key: 19, Version: 7, CorrelationID: -2, Body: []byte("body")}, "\x00\x13\x00\x07\xff\xff\xff\xfe\xff\xff\x00")
	f(Request{Key: 18, Version: 3, CorrelationID: 7, ClientID: "c"}, "\x00\x12\x00\x03\x00\x00\x00\x07\x00\x01c\x00")
	for _, short := range []string{"", "\x00\x13\x00\x07\x00\x00", "\x00\x13\x00\x07\x00\x00\x00\x07\x00\x09c"} {
		if _, err := ParseRequest([]byte(short)); !errors.Is(err, errHeader) {
			t.Errorf("%q: %v", short, err)
		}
	}
}
