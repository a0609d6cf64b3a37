package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type handlerFunc func(ctx context.Context, r *Request, w *Response) error

func (f handlerFunc) Handle(ctx context.Context, r *Request, w *Response) error { return f(ctx, r, w) }

// echo answers with the body of the request.
func echo(_ context.Context, r *Request, w *Response) error {
	w.Buf = append(w.Buf, r.Body...)
	return nil
}

func startServer(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(cfg)
	s.Serve("PLAINTEXT", ln)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if used := s.budget.mu.used; used != 0 {
			t.Errorf("%d bytes of the budget are not given back", used)
		}
	})
	return s, ln.Addr().String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// frame builds a request of key 3 (Metadata) in version 0, which is not flexible.
func frame(correlation int32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+2+4+len(body)))
	b = append(b, 0, 3, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = append(b, 0, 4)
	b = append(b, "test"...)
	return append(b, body...)
}

func readAnswer(r io.Reader) (correlation int32, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
	_, err = io.ReadFull(r, body)
	return int32(binary.BigEndian.Uint32(head[4:])), body, err
}

func wantAnswer(t *testing.T, r io.Reader, correlation int32, want []byte) {
	t.Helper()
	got, body, err := readAnswer(r)
	if err != nil {
		t.Fatalf("answer %d: %v", correlation, err)
	}
	if got != correlation || !bytes.Equal(body, want) {
		t.Fatalf("got answer %d of %d bytes, want %d of %d", got, len(body), correlation, len(want))
	}
}

func TestEcho(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	for i, size := range []int{0, 1, 100, 5000, readBufferSize - 20, readBufferSize - 18, readBufferSize, 300_000, longFrameStep + 1, 5 << 20} {
		body := bytes.Repeat([]byte{byte(i + 1)}, size)
		go c.Write(frame(int32(i), body))
		wantAnswer(t, c, int32(i), body)
	}
}

// Requests of all lengths written in one go, then in pieces, are answered in order.
func TestPipelined(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(echo)})
	sizes := []int{3, 40_000, 7, 100_000, 64_000, 30_000, 1, 0, 2_000_000, 12}
	for _, piece := range []int{1 << 30, 1000, 65_537} {
		c := dial(t, addr)
		var all []byte
		for i, size := range sizes {
			all = append(all, frame(int32(i), bytes.Repeat([]byte{byte(i + 1)}, size))...)
		}
		go func() {
			for len(all) > 0 {
				n := min(piece, len(all))
				c.Write(all[:n])
				all = all[n:]
			}
		}()
		for i, size := range sizes {
			wantAnswer(t, c, int32(i), bytes.Repeat([]byte{byte(i + 1)}, size))
		}
	}
}

func TestByteByByte(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(echo)})
	c := dial(t, addr)
	go func() {
		for _, b := range frame(7, []byte("abc")) {
			c.Write([]byte{b})
		}
	}()
	wantAnswer(t, c, 7, []byte("abc"))
}

func TestWithoutDescriptor(t *testing.T) {
	s := NewServer(Config{Handler: handlerFunc(echo)})
	client, server := net.Pipe()
	s.open("PIPE", server)
	for i, size := range []int{1, 70_000, 5, 3 << 20} {
		body := bytes.Repeat([]byte{9}, size)
		go client.Write(frame(int32(i), body))
		wantAnswer(t, client, int32(i), body)
	}
	client.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waitFor is a Deferred that waits for a channel.
type waitFor struct {
	c    chan struct{}
	text string
}

func (d waitFor) Finish(ctx context.Context, w *Response) error {
	select {
	case <-d.c:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.Buf = append(w.Buf, d.text...)
	return nil
}

// An answer that waits does not stop the connection from reading, and the answers behind
// it stay behind it.
func TestDeferredAnswersStayInOrder(t *testing.T) {
	gates := make([]chan struct{}, 6)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	handled := make(chan int, len(gates))
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		i := int(r.CorrelationID)
		if i%2 == 1 {
			w.Defer(waitFor{gates[i], fmt.Sprint("deferred ", i)})
		} else {
			w.Buf = append(w.Buf, fmt.Sprint("direct ", i)...)
		}
		handled <- i
		return nil
	})})
	c := dial(t, addr)
	for i := range gates {
		c.Write(frame(int32(i), nil))
	}
	for range gates {
		<-handled // all were read although the second one waits
	}
	wantAnswer(t, c, 0, []byte("direct 0"))
	close(gates[5])
	close(gates[3])
	close(gates[1])
	for i := 1; i < len(gates); i++ {
		want := fmt.Sprint("direct ", i)
		if i%2 == 1 {
			want = fmt.Sprint("deferred ", i)
		}
		wantAnswer(t, c, int32(i), []byte(want))
	}
}

// A client that waits for each answer is served by one goroutine, also when answers are
// deferred, until it pipelines.
func TestDeferredAnswersToPatientClient(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		done := make(chan struct{})
		close(done)
		w.Defer(waitFor{done, fmt.Sprint(r.CorrelationID)})
		return nil
	})})
	c := dial(t, addr)
	for i := range int32(3 * aloneMin) {
		c.Write(frame(i, nil))
		wantAnswer(t, c, i, fmt.Append(nil, i))
	}
	var burst []byte
	for i := range int32(10) {
		burst = append(burst, frame(i, nil)...)
	}
	c.Write(burst)
	for i := range int32(10) {
		wantAnswer(t, c, i, fmt.Append(nil, i))
	}
}

// A client that goes away while its answers wait leaves nothing behind (TestMain checks).
func TestDisconnectWhileDeferred(t *testing.T) {
	never := make(chan struct{})
	handled := make(chan bool, 100)
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		w.Defer(waitFor{never, ""})
		handled <- true
		return nil
	})})
	c := dial(t, addr)
	c.Write(frame(1, nil))
	c.Write(frame(2, nil))
	<-handled
	<-handled
	c.Close()
}

func TestHandlerErrorClosesAfterEarlierAnswers(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		if r.CorrelationID == 2 {
			w.Buf = append(w.Buf, "half an answer"...)
			return errors.New("no")
		}
		return echo(ctx, r, w)
	})})
	c := dial(t, addr)
	c.Write(append(frame(1, []byte("x")), frame(2, nil)...))
	wantAnswer(t, c, 1, []byte("x"))
	if _, _, err := readAnswer(c); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
}

func TestDropSendsNothing(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		if r.CorrelationID%2 == 0 {
			w.Drop()
			return nil
		}
		return echo(ctx, r, w)
	})})
	c := dial(t, addr)
	for i := range 10 {
		c.Write(frame(int32(i), []byte("x")))
	}
	for i := 1; i < 10; i += 2 {
		wantAnswer(t, c, int32(i), []byte("x"))
	}
}

// Flush sends earlier answers while the handler still waits.
func TestFlushBeforeWaiting(t *testing.T) {
	gate := make(chan struct{})
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		if r.CorrelationID == 1 {
			if err := w.Flush(); err != nil {
				return err
			}
			<-gate
		}
		return echo(ctx, r, w)
	})})
	c := dial(t, addr)
	c.Write(append(frame(0, []byte("a")), frame(1, []byte("b"))...))
	wantAnswer(t, c, 0, []byte("a"))
	close(gate)
	wantAnswer(t, c, 1, []byte("b"))
}

func TestBadFramesCloseTheConnection(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(echo), MaxRequestSize: 1000})
	good := dial(t, addr)
	f := func(b []byte) {
		t.Helper()
		c := dial(t, addr)
		c.Write(b)
		c.(*net.TCPConn).CloseWrite()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%x was answered", b)
		}
	}
	f([]byte{0xff, 0xff, 0xff, 0xff})
	f([]byte{0x7f, 0xff, 0xff, 0xff})
	f([]byte{0, 0, 3, 0xe9})
	f([]byte{0, 0, 0, 0})
	f([]byte{0, 0, 0, 9, 0, 3, 0, 0, 0, 0, 0, 1, 0})
	f([]byte{0, 0, 0, 10, 0, 3, 0, 0, 0, 0, 0, 1, 0x7f, 0xff})
	f([]byte{0, 0, 0, 100, 1, 2, 3})
	f([]byte("GET / HTTP/1.1\r\n\r\n"))
	good.Write(frame(1, []byte("still here")))
	wantAnswer(t, good, 1, []byte("still here"))
}

func TestConnectionLimits(t *testing.T) {
	f := func(limits ConnectionLimits) {
		t.Helper()
		s, addr := startServer(t, Config{Handler: handlerFunc(echo)})
		s.Limit(limits)
		a, b := dial(t, addr), dial(t, addr)
		for i, c := range []net.Conn{a, b} {
			c.Write(frame(int32(i), nil))
			wantAnswer(t, c, int32(i), nil)
		}
		third := dial(t, addr)
		if _, err := third.Read(make([]byte, 1)); err == nil {
			t.Error("the third connection was served")
		}
		a.Close()
		for { // until the server has noticed
			c := dial(t, addr)
			c.Write(frame(9, []byte("served")))
			if _, body, err := readAnswer(c); err == nil && string(body) == "served" {
				break
			}
		}
		if n := s.Stats().Listeners[0].Connections; n != 2 {
			t.Errorf("got %d connections, want 2", n)
		}
	}
	local := netip.MustParseAddr("127.0.0.1")
	f(ConnectionLimits{All: 2, PerIP: 9})
	f(ConnectionLimits{All: 9, PerIP: 2})
	f(ConnectionLimits{All: 9, PerIP: 0, Of: map[netip.Addr]int{local: 2}})
	f(ConnectionLimits{All: 9, PerIP: 2, Of: map[netip.Addr]int{local.Next(): 9}})
}

// Beyond the descriptors that there are for connections one that is idle makes room for another; one
// that is at work does not.
func TestIdleConnectionMakesRoom(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		if string(r.Body) == "wait" {
			close(entered)
			<-release
		}
		return echo(ctx, r, w)
	})})
	s.Limit(ConnectionLimits{All: math.MaxInt, PerIP: math.MaxInt, Descriptors: 2})
	busy, idle := dial(t, addr), dial(t, addr)
	idle.Write(frame(1, nil))
	wantAnswer(t, idle, 1, nil)
	busy.Write(frame(1, []byte("wait")))
	<-entered
	s.tick.Add(2)
	third := dial(t, addr)
	third.Write(frame(2, []byte("served")))
	wantAnswer(t, third, 2, []byte("served"))
	fourth := dial(t, addr)
	if _, err := fourth.Read(make([]byte, 1)); err == nil {
		t.Error("a connection was served though no other is idle")
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the idle connection was kept")
	}
	close(release)
	wantAnswer(t, busy, 1, []byte("wait"))
	silent, last := dial(t, addr), dial(t, addr) // who never asked for anything goes at once
	last.Write(frame(4, nil))
	wantAnswer(t, last, 4, nil)
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection was kept")
	}
	if stats := s.Stats(); stats.Displaced != 3 {
		t.Errorf("got %+v", stats)
	}
}

// A listener that cannot accept goes on, at its pace, and makes room.
func TestAcceptFails(t *testing.T) {
	s, addr := startServer(t, Config{Handler: handlerFunc(echo)})
	idle := dial(t, addr)
	idle.Write(frame(1, nil))
	wantAnswer(t, idle, 1, nil)
	l := &shortListener{accepted: make(chan struct{}), closed: make(chan struct{})}
	s.Serve("SHORT", l)
	for range 3 {
		<-l.accepted
	}
	s.tick.Add(2)
	for s.Stats().Displaced == 0 {
		<-l.accepted
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the idle connection was kept")
	}
}

// A shortListener has no descriptors.
type shortListener struct{ accepted, closed chan struct{} }

func (l *shortListener) Accept() (net.Conn, error) {
	select {
	case l.accepted <- struct{}{}:
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *shortListener) Close() error {
	close(l.closed)
	return nil
}

func (l *shortListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestShutdownLetsRequestsFinish(t *testing.T) {
	started := make(chan bool)
	s, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		close(started)
		<-ctx.Done()
		return echo(ctx, r, w)
	})})
	c, idle := dial(t, addr), dial(t, addr)
	c.Write(frame(1, []byte("last words")))
	<-started
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, c, 1, []byte("last words"))
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the idle connection got something")
	}
}

func TestShutdownCutsWhatDoesNotFinish(t *testing.T) {
	release := make(chan bool)
	started := make(chan bool)
	s, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		close(started)
		<-release
		return nil
	})})
	c := dial(t, addr)
	c.Write(frame(1, nil))
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	time.AfterFunc(10*time.Millisecond, func() { close(release) })
	if err := s.Shutdown(ctx); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// A client that hangs up while its request waits ends the context of the request.
func TestHangUpEndsContext(t *testing.T) {
	ended := make(chan bool)
	_, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})})
	c := dial(t, addr)
	c.Write(frame(1, nil))
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the handler still waits")
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	s, addr := startServer(t, Config{Handler: handlerFunc(echo), IdleTimeout: time.Second})
	c := dial(t, addr)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	for s.Stats().Killed == 0 { // it is counted right behind
		runtime.Gosched()
	}
}

// Clients that announce long frames and send nothing do not keep others from sending theirs.
func TestStalledFramesMakeRoom(t *testing.T) {
	_, addr := startServer(t, Config{Handler: handlerFunc(echo), BufferBytes: 1 << 20})
	long := frame(1, make([]byte, 200_000))
	for range 6 {
		stalled := dial(t, addr)
		if _, err := stalled.Write(long[:len(long)/2]); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, addr)
	go c.Write(long)
	wantAnswer(t, c, 1, make([]byte, 200_000))
}

// An idle connection holds no buffer, and a request does not allocate.
func TestRequestDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops things on purpose under the race detector")
	}
	s := NewServer(Config{Handler: handlerFunc(echo)})
	defer s.Shutdown(context.Background())
	client, server := net.Pipe()
	defer client.Close()
	c := s.newConn("PIPE", server)
	defer c.cancel()
	req := frame(1, []byte("0123456789"))
	if n := testing.AllocsPerRun(100, func() {
		c.in.buf = nil
		copy(c.in.room(len(req)), req)
		c.in.r, c.in.w = 0, len(req)
		b, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.handle(b); err != nil {
			t.Fatal(err)
		}
		c.endFrame()
		c.in.releaseIfEmpty()
		c.out.release()
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
	if c.in.buf != nil || c.out.buffer != nil {
		t.Error("the connection holds a buffer")
	}
}

func TestBudget(t *testing.T) {
	b := Budget{size: 100}
	if err := b.Acquire(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Acquire(ctx, 41); err == nil {
		t.Error("more than the budget was given")
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := b.Acquire(t.Context(), 50); err != nil {
				t.Error(err)
			}
			b.Release(50)
		})
	}
	b.Release(60)
	wg.Wait()
	if err := b.Acquire(t.Context(), 1<<40); err != nil { // counts as the whole
		t.Fatal(err)
	}
	b.Release(1 << 40)
	if b.mu.used != 0 || len(b.mu.waiters) != 0 {
		t.Errorf("%d used, %d waiters, want none", b.mu.used, len(b.mu.waiters))
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(frame(1, []byte("body"))[4:])
	f.Add([]byte{0, 18, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 2, 'a', 2, 'b', 0})
	f.Add([]byte{0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 1, 0, 13, 0, 0, 0, 1, 0, 1, 'c', 1, 5, 2, 'x', 'y', 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Request
		clientID, err := parseHeader(b, &r)
		if err == nil && 8+2+len(clientID)+len(r.Body) > len(b) {
			t.Errorf("a client id of %d and a body of %d bytes in a frame of %d", len(clientID), len(r.Body), len(b))
		}
	})
}

func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{100, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, addr := startServer(b, Config{Handler: handlerFunc(func(_ context.Context, r *Request, w *Response) error {
				w.Buf = append(w.Buf, 1, 2, 3, 4)
				return nil
			})})
			c := dial(b, addr)
			req := frame(1, make([]byte, size))
			var answer [12]byte
			b.ReportAllocs()
			for b.Loop() {
				c.Write(req)
				if _, err := io.ReadFull(c, answer[:]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
