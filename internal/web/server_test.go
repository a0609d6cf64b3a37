package web

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer returns a server in a directory whose path is short enough for a socket.
func newServer(t testing.TB) (*Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gregor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := New(slog.New(slog.DiscardHandler), func() Health { return Health{State: Running} }, 64)
	t.Cleanup(func() { shutdown(t, s) })
	return s, dir
}

func shutdown(t testing.TB, s *Server) {
	t.Helper()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func serveSocket(t *testing.T, s *Server, dir string) *Client {
	t.Helper()
	if err := s.ServeSocket(dir); err != nil {
		t.Fatal(err)
	}
	c := NewSocketClient(dir)
	t.Cleanup(c.Close)
	return c
}

func serveTCP(t *testing.T, s *Server) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ServeTCP(l)
	c := NewHTTPClient(l.Addr().String())
	t.Cleanup(c.Close)
	return c
}

type greeting struct {
	Text string `json:"text"`
}

// Handlers may come while the server serves; both transports have them.
func TestJSON(t *testing.T) {
	s, dir := newServer(t)
	socket, tcp := serveSocket(t, s, dir), serveTCP(t, s)
	s.Handle("GET /greet/{name}", JSON(func(r *http.Request) (any, error) {
		if r.PathValue("name") == "nobody" {
			return nil, Refuse(http.StatusNotFound, "no %s here", "nobody")
		}
		return greeting{"hello " + r.PathValue("name")}, nil
	}))
	for _, c := range []*Client{socket, tcp} {
		var got greeting
		if err := c.Get(t.Context(), "/greet/gregor", &got); err != nil || got.Text != "hello gregor" {
			t.Errorf("got %q, %v", got.Text, err)
		}
		var refused *StatusError
		if err := c.Get(t.Context(), "/greet/nobody", &got); !errors.As(err, &refused) || refused.Status != 404 || err.Error() != "no nobody here" {
			t.Errorf("got %v, want 404, no nobody here", err)
		}
	}
}

// What changes something is for those who may write to the socket.
func TestPost(t *testing.T) {
	s, dir := newServer(t)
	socket, tcp := serveSocket(t, s, dir), serveTCP(t, s)
	s.Handle("POST /echo", JSON(func(r *http.Request) (any, error) {
		var g greeting
		err := ReadJSON(r, &g)
		return g, err
	}))
	var got greeting
	if err := socket.Post(t.Context(), "/echo", greeting{"hi"}, &got); err != nil || got.Text != "hi" {
		t.Errorf("socket: got %q, %v", got.Text, err)
	}
	var refused *StatusError
	if err := socket.Post(t.Context(), "/echo", map[string]int{"volume": 11}, &got); !errors.As(err, &refused) || refused.Status != 400 {
		t.Errorf("an unknown field: got %v, want 400", err)
	}
	if err := socket.Post(t.Context(), "/echo", greeting{strings.Repeat("x", maxBodyBytes)}, &got); !errors.As(err, &refused) || refused.Status != 400 {
		t.Errorf("a body of more than %d bytes: got %v, want 400", maxBodyBytes, err)
	}
	err := tcp.Post(t.Context(), "/echo", greeting{"hi"}, &got)
	if !errors.As(err, &refused) || refused.Status != http.StatusMethodNotAllowed || !strings.Contains(err.Error(), SocketName) {
		t.Errorf("tcp: got %v, want 405 that names the socket", err)
	}
}

func TestSocketIsForItsOwner(t *testing.T) {
	s, dir := newServer(t)
	serveSocket(t, s, dir)
	info, err := os.Lstat(filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("mode %v, want a socket with 0600", info.Mode())
	}
}

func TestSocketIsRemoved(t *testing.T) {
	s, dir := newServer(t)
	c := serveSocket(t, s, dir)
	shutdown(t, s)
	if _, err := os.Lstat(filepath.Join(dir, SocketName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Shutdown: %v, want no socket", err)
	}
	if err := c.Get(t.Context(), "/health", nil); !errors.Is(err, ErrNoBroker) {
		t.Errorf("got %v, want ErrNoBroker", err)
	}
}

// The socket of the next broker in the same directory is not ours to remove.
func TestSocketOfAnother(t *testing.T) {
	s, dir := newServer(t)
	serveSocket(t, s, dir)
	next, _ := newServer(t)
	c := serveSocket(t, next, dir)
	shutdown(t, s)
	if err := c.Get(t.Context(), "/health", nil); err != nil {
		t.Error(err)
	}
}

// leaveSocket makes what a killed broker leaves behind.
func leaveSocket(t *testing.T, dir string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

func TestStaleSocket(t *testing.T) {
	s, dir := newServer(t)
	leaveSocket(t, dir)
	c := NewSocketClient(dir)
	defer c.Close()
	err := c.Get(t.Context(), "/health", nil)
	if !errors.Is(err, ErrNoBroker) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want ErrNoBroker that says why there is a socket", err)
	}
	serveSocket(t, s, dir)
	if err := c.Get(t.Context(), "/health", nil); err != nil {
		t.Errorf("after a start on top of it: %v", err)
	}
}

func TestClientErrors(t *testing.T) {
	f := func(dir, want string) {
		t.Helper()
		c := NewSocketClient(dir)
		defer c.Close()
		if err := c.Get(t.Context(), "/health", nil); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", dir, err, want)
		}
	}
	_, dir := newServer(t)
	f(filepath.Join(dir, "none"), "no broker runs in "+dir+"/none: there is no such directory")
	f(dir, "no broker runs in "+dir+": it would have a gregor.sock there, if this is the first of its log.dirs")
	long := filepath.Join(dir, strings.Repeat("x", 200))
	c := NewSocketClient(long)
	defer c.Close()
	var tooLong *SocketPathError
	if err := c.Get(t.Context(), "/health", nil); !errors.As(err, &tooLong) {
		t.Errorf("a long path: got %v, want a SocketPathError", err)
	}
}

func TestSocketPathTooLong(t *testing.T) {
	s, dir := newServer(t)
	var tooLong *SocketPathError
	if err := s.ServeSocket(filepath.Join(dir, strings.Repeat("x", 200))); !errors.As(err, &tooLong) {
		t.Errorf("got %v, want a SocketPathError", err)
	}
}

// A file of that name that is no socket was not made by us.
func TestSocketIsNotAFile(t *testing.T) {
	s, dir := newServer(t)
	path := filepath.Join(dir, SocketName)
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.ServeSocket(dir); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// Shutdown tells a handler that takes long, and waits for its answer.
func TestShutdownWaits(t *testing.T) {
	s, dir := newServer(t)
	c := serveSocket(t, s, dir)
	begun := make(chan struct{})
	s.Handle("POST /clean", JSON(func(r *http.Request) (any, error) {
		close(begun)
		<-r.Context().Done()
		return greeting{"stopped"}, nil
	}))
	var got greeting
	answered := make(chan error, 1)
	go func() { answered <- c.Post(t.Context(), "/clean", nil, &got) }()
	<-begun
	shutdown(t, s)
	if err := <-answered; err != nil || got.Text != "stopped" {
		t.Errorf("got %q, %v, want the handler's answer", got.Text, err)
	}
}

// A server that was shut down before it served does not begin to.
func TestServeAfterShutdown(t *testing.T) {
	s, dir := newServer(t)
	shutdown(t, s)
	if err := s.ServeSocket(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, SocketName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket: %v, want none", err)
	}
	if err := serveTCP(t, s).Get(t.Context(), "/health", nil); !errors.Is(err, ErrNoBroker) {
		t.Errorf("got %v, want ErrNoBroker", err)
	}
}

// As many connections as there are slots are served; the next one when one of them ends.
func TestConnectionLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 1)
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("a second connection while the first has the only slot")
	default:
	}
	first.Close()
	second := <-accepted
	second.Close()
	second.Close() // gives its slot back once
	l.Close()
	if c, open := <-accepted; open {
		t.Errorf("connection %v after Close", c)
	}
}

func TestHealth(t *testing.T) {
	h := Health{State: Recovery, Reasons: []string{"loading logs"}}
	s := New(slog.New(slog.DiscardHandler), func() Health { return h }, 64)
	t.Cleanup(func() { shutdown(t, s) })
	c := serveTCP(t, s)
	f := func(path string, wantStatus int, want string) {
		t.Helper()
		status, text, err := c.exchange(t.Context(), http.MethodGet, path, nil)
		if err != nil || status != wantStatus {
			t.Errorf("%s: got %d, %v, want %d", path, status, err, wantStatus)
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}
	f("/health", 503, "{\n  \"ready\": false,\n  \"state\": \"recovery\",\n  \"reasons\": [\n    \"loading logs\"\n  ]\n}\n")
	f("/health/live", 200, "{\n  \"ready\": false,\n  \"state\": \"recovery\",\n  \"reasons\": [\n    \"loading logs\"\n  ]\n}\n")
	h = Health{State: Running}
	f("/health", 200, "{\n  \"ready\": true,\n  \"state\": \"running\"\n}\n")
	h.Reasons = []string{"log directory d1 is offline"}
	f("/health", 503, "{\n  \"ready\": false,\n  \"state\": \"running\",\n  \"reasons\": [\n    \"log directory d1 is offline\"\n  ]\n}\n")
}
