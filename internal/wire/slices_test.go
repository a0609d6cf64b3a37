package wire

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// logOf makes a segment of one batch with as many bytes of value, in memory or on the disk.
func logOf(t *testing.T, onDisk bool, size int) *segment.Segment {
	t.Helper()
	fsys, dir := vfs.FS(vfs.NewMem()), "/log"
	if onDisk {
		fsys, dir = vfs.OS, t.TempDir()
	} else if err := fsys.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := segment.Create(fsys, dir, 0, segment.Config{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Value: bytes.Repeat([]byte("0123456789"), size/10)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(b.Build()); err != nil {
		t.Fatal(err)
	}
	return s
}

func sliceOf(t *testing.T, s *segment.Segment, size int) segment.Slice {
	t.Helper()
	sl, err := s.Read(0, size, s.Size(), false)
	if err != nil {
		t.Fatal(err)
	}
	return sl
}

func bytesIn(t *testing.T, s *segment.Segment, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	if err := s.ReadBytes(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// Answers with stretches of files between their bytes arrive as they are, whatever the sizes, however slowly the
// client reads, and whether or not files and connections have descriptors.
func TestSlicesAreSent(t *testing.T) {
	const largest = 3 << 20
	for _, onDisk := range []bool{false, true} {
		log := logOf(t, onDisk, largest)
		all := bytesIn(t, log, largest)
		sizes := []int{0, 1, 1000, sendfileMin - 1, sendfileMin, sendfileMin + 1, 300_000, largest}
		s := NewServer(Config{SendBufferBytes: 128 << 10, Handler: handlerFunc(func(_ context.Context, r *Request, w *Response) error {
			size := sizes[r.CorrelationID]
			w.Buf = append(w.Buf, all[:size/2]...)
			for range 2 {
				if err := w.AppendSlice(sliceOf(t, log, size)); err != nil {
					return err
				}
				w.Buf = append(w.Buf, "end"...)
			}
			return nil
		})})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Serve("PLAINTEXT", ln)
		client, server := net.Pipe()
		s.open("PIPE", server)
		for _, c := range []net.Conn{dial(t, ln.Addr().String()), client} {
			for i, size := range sizes {
				go c.Write(frame(int32(i), nil))
				part := append(bytes.Clone(all[:size]), "end"...)
				wantAnswer(t, c, int32(i), append(append(bytes.Clone(all[:size/2]), part...), part...))
			}
			c.Close()
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that has become shorter than what was promised of it ends the connection.
func TestSliceIsCut(t *testing.T) {
	for _, onDisk := range []bool{false, true} {
		for _, size := range []int{1000, 200_000} {
			log := logOf(t, onDisk, 300_000)
			_, addr := startServer(t, Config{Handler: handlerFunc(func(_ context.Context, _ *Request, w *Response) error {
				sl := sliceOf(t, log, size)
				if _, err := log.TruncateTo(0); err != nil {
					return err
				}
				return w.AppendSlice(sl)
			})})
			c := dial(t, addr)
			c.Write(frame(1, nil))
			if _, _, err := readAnswer(c); err == nil || os.IsTimeout(err) {
				t.Errorf("on disk %v, %d bytes: got %v", onDisk, size, err)
			}
		}
	}
}

// What of an answer is read at once and what is left in its file.
func TestAppendSlice(t *testing.T) {
	log := logOf(t, false, 2<<20)
	f := func(before, size, files int) {
		t.Helper()
		var w Response
		w.begin(1, false)
		w.Buf = append(w.Buf, make([]byte, before)...)
		for i := range w.Buf {
			w.Buf[i] = byte(i)
		}
		have := bytes.Clone(w.Buf)
		if err := w.AppendSlice(sliceOf(t, log, size)); err != nil {
			t.Fatal(err)
		}
		want := have
		if files == 0 {
			want = append(want, bytesIn(t, log, size)...)
		}
		if len(w.files) != files || !bytes.Equal(w.Buf, want) {
			t.Errorf("%d bytes behind %d: %d files, %d bytes in memory", size, before, len(w.files), len(w.Buf))
		}
		if cap(w.Buf) < len(w.Buf)+64 && files == 0 && size > 0 {
			t.Errorf("%d bytes behind %d: no room for what follows", size, before)
		}
		if w.IsDeferred() {
			t.Error("deferred")
		}
		w.Defer(waitFor{})
		if !w.IsDeferred() {
			t.Error("not deferred")
		}
		w.release()
	}
	f(0, 0, 0)
	f(0, 1, 0)
	f(3000, 4000, 0)
	f(5000, 20_000, 0)
	f(0, sendfileMin-1, 0)
	f(0, sendfileMin, 1)
	f(inlineMax-8, 10, 0)
	f(inlineMax-7, 10, 1)
}

// A grown answer has room for what was asked, and leaves its old buffer to others.
func TestGrow(t *testing.T) {
	f := func(room int, moves bool) {
		t.Helper()
		var w Response
		w.begin(1, false)
		old := w.buffer
		w.grow(cap(w.Buf) - len(w.Buf) + room)
		if (w.buffer != old) != moves {
			t.Errorf("room for %d bytes more: moved %v", room, w.buffer != old)
		}
		w.release()
	}
	f(-1, false)
	f(0, false)
	f(1, true)
	var w Response
	w.grow(10)
	if cap(w.Buf) < 10 {
		t.Error("an answer without a buffer does not grow")
	}
	w.release()
}
