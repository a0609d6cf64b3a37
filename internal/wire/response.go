package wire

import (
	"context"
	"encoding/binary"
	"io"
	"net"

	"github.com/gregor-kafka/gregor/internal/segment"
)

const (
	// flushSize is the length at which gathered responses are sent without waiting for more.
	flushSize = 128 << 10
	// sendfileMin is the shortest stretch of a file that goes out by sendfile.
	sendfileMin = 64 << 10
	// inlineMax is the length of a response from which on shorter stretches go by sendfile, too.
	inlineMax = 1 << 20
)

// A Deferred completes a response that had to wait.
type Deferred interface {
	// Finish waits and appends the rest of the body. It is called once, after the Handler
	// returned and perhaps from another goroutine. An error closes the connection.
	Finish(ctx context.Context, w *Response) error
}

// A Response is where a Handler writes. Buf holds the response header already, and perhaps
// whole earlier responses; the Handler appends its body and touches nothing else of it.
type Response struct {
	Buf []byte

	buffer   *buffer
	files    []file // in the order of their places
	start    int    // of the current response in Buf
	files0   int    // of the current response in files
	deferred Deferred
	dropped  bool
	takeOver func(ctx context.Context, nc net.Conn)
	flush    func(upTo int) error // of the connection, nil once the response was deferred
}

// A Body is a part of a response that is made while it is sent, so that it is never in memory
// as a whole.
type Body interface {
	// Size returns how many bytes WriteTo writes.
	Size() int
	// WriteTo writes the bytes. It is called at most once; an error closes the connection.
	WriteTo(w io.Writer) (int64, error)
	// Release is called once, in the end, whether the bytes were sent or not.
	Release()
}

// A file is a stretch of a file, or a Body, that belongs before Buf[at].
type file struct {
	at    int
	slice segment.Slice
	body  Body // nil: slice it is
}

func (f *file) size() int {
	if f.body != nil {
		return f.body.Size()
	}
	return f.slice.Size()
}

func (f *file) release() {
	if f.body != nil {
		f.body.Release()
		return
	}
	f.slice.Release()
}

// TakeOver gives the connection to serve once the answer is sent: what follows is no request of Kafka's
// protocol. The connection is closed when serve returns; ctx ends with the server or when the other side
// hangs up. A client that does not wait for the answer is cut off.
func (w *Response) TakeOver(serve func(ctx context.Context, nc net.Conn)) { w.takeOver = serve }

// begin starts a response behind those that Buf already holds.
func (w *Response) begin(correlationID int32, tags bool) {
	if w.buffer == nil {
		w.buffer = getBuffer(4 << 10)
		w.Buf = w.buffer.b
	}
	w.start, w.files0, w.deferred, w.dropped, w.takeOver = len(w.Buf), len(w.files), nil, false, nil
	w.Buf = append(w.Buf, 0, 0, 0, 0)
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(correlationID))
	if tags {
		w.Buf = append(w.Buf, 0)
	}
}

// end closes the current response: its size is known now.
func (w *Response) end() {
	size := len(w.Buf) - w.start - 4
	for i := range w.files[w.files0:] {
		size += w.files[w.files0+i].size()
	}
	binary.BigEndian.PutUint32(w.Buf[w.start:], uint32(size))
}

// rewind forgets the current response.
func (w *Response) rewind() {
	w.Buf = w.Buf[:w.start]
	w.dropFiles(w.files0, len(w.files))
}

// dropFiles releases files[i:j] and closes the gap.
func (w *Response) dropFiles(i, j int) {
	for k := i; k < j; k++ {
		w.files[k].release()
	}
	n := i + copy(w.files[i:], w.files[j:])
	clear(w.files[n:])
	w.files = w.files[:n]
}

// release gives the buffer and the files back. Nothing of Buf may be needed any more.
func (w *Response) release() {
	w.dropFiles(0, len(w.files))
	if w.buffer != nil {
		w.buffer.b = w.Buf
		putBuffer(w.buffer)
		w.buffer, w.Buf = nil, nil
	}
}

// append adds the responses of other, whole ones, behind those of w, and leaves other empty.
func (w *Response) append(other *Response) {
	for _, f := range other.files {
		f.at += len(w.Buf)
		w.files = append(w.files, f)
	}
	clear(other.files)
	other.files = other.files[:0]
	w.Buf = append(w.Buf, other.Buf...)
	other.release()
}

// grow makes room for n bytes.
func (w *Response) grow(n int) {
	if cap(w.Buf)-len(w.Buf) >= n {
		return
	}
	old, grown := w.buffer, getBuffer(len(w.Buf)+n)
	grown.b = append(grown.b, w.Buf...)
	if old != nil {
		old.b = w.Buf // which may have been moved by append
		putBuffer(old)
	}
	w.buffer, w.Buf = grown, grown.b
}

// AppendSlice appends a stretch of a log, and owns it from now on. A long one is sent from
// its file; a short one is read into Buf. After an error nothing was appended.
func (w *Response) AppendSlice(s segment.Slice) error {
	n := s.Size()
	switch {
	case n == 0:
		s.Release()
		return nil
	case n >= sendfileMin || len(w.Buf)-w.start > inlineMax:
		w.files = append(w.files, file{at: len(w.Buf), slice: s})
		return nil
	}
	defer s.Release()
	w.grow(n + 64) // what follows is short, most of the time
	at := len(w.Buf)
	k, err := s.ReadAt(w.Buf[at:at+n], 0)
	if k < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	w.Buf = w.Buf[:at+n]
	return nil
}

// AppendBody appends what is made while it is sent, and owns it from now on.
func (w *Response) AppendBody(b Body) {
	w.files = append(w.files, file{at: len(w.Buf), body: b})
}

// Mark returns a place in the current response, its present end, for At and Rewind.
func (w *Response) Mark() int { return len(w.Buf) - w.start }

// At returns the bytes of the current response from a mark on, to be changed in place.
func (w *Response) At(mark int) []byte { return w.Buf[w.start+mark:] }

// Rewind forgets what was appended since the mark, slices excepted.
func (w *Response) Rewind(mark int) { w.Buf = w.Buf[:w.start+mark] }

// Drop says that the request gets no answer (acks=0).
func (w *Response) Drop() { w.dropped = true }

// Defer says that d completes the response. The connection reads on meanwhile; later
// responses queue up behind this one.
func (w *Response) Defer(d Deferred) { w.deferred = d }

// IsDeferred reports whether something else completes the response.
func (w *Response) IsDeferred() bool { return w.deferred != nil }

// Flush sends the earlier responses that are still held back. A Handler calls it before it
// waits, and before it has appended a slice.
func (w *Response) Flush() error {
	if w.flush == nil || w.start == 0 {
		return nil
	}
	if err := w.flush(w.start); err != nil {
		return err
	}
	n := copy(w.Buf, w.Buf[w.start:])
	w.Buf, w.start, w.files0 = w.Buf[:n], 0, 0
	return nil
}
