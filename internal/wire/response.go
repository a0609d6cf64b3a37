package wire

import (
	"context"
	"encoding/binary"
)

// flushSize is the length at which gathered responses are sent without waiting for more.
const flushSize = 128 << 10

// A Deferred completes a response that had to wait.
type Deferred interface {
	// Ready reports whether Finish would return at once.
	Ready() bool
	// Finish waits and appends the rest of the body. It is called once, from another goroutine
	// than the Handler and after it. An error closes the connection.
	Finish(ctx context.Context, w *Response) error
}

// A Response is where a Handler writes. Buf holds the response header already, and perhaps
// whole earlier responses; the Handler appends its body and touches nothing else of it.
type Response struct {
	Buf []byte

	buffer   *buffer
	start    int // of the current response in Buf
	deferred Deferred
	dropped  bool
	flush    func(upTo int) error // of the connection, nil once the response was deferred
}

// begin starts a response behind those that Buf already holds.
func (w *Response) begin(correlationID int32, tags bool) {
	if w.buffer == nil {
		w.buffer = getBuffer(4 << 10)
		w.Buf = w.buffer.b
	}
	w.start, w.deferred, w.dropped = len(w.Buf), nil, false
	w.Buf = append(w.Buf, 0, 0, 0, 0)
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(correlationID))
	if tags {
		w.Buf = append(w.Buf, 0)
	}
}

// end closes the current response: its size is known now.
func (w *Response) end() {
	binary.BigEndian.PutUint32(w.Buf[w.start:], uint32(len(w.Buf)-w.start-4))
}

// rewind forgets the current response.
func (w *Response) rewind() { w.Buf = w.Buf[:w.start] }

// release gives the buffer back. Nothing of Buf may be needed any more.
func (w *Response) release() {
	if w.buffer != nil {
		w.buffer.b = w.Buf
		putBuffer(w.buffer)
		w.buffer, w.Buf = nil, nil
	}
}

// append adds the responses of other, whole ones, behind those of w.
func (w *Response) append(other *Response) { w.Buf = append(w.Buf, other.Buf...) }

// Drop says that the request gets no answer (acks=0).
func (w *Response) Drop() { w.dropped = true }

// Defer says that d completes the response. The connection reads on meanwhile; later
// responses queue up behind this one.
func (w *Response) Defer(d Deferred) { w.deferred = d }

// Flush sends the earlier responses that are still held back. A Handler calls it before it
// waits, and before it appended anything.
func (w *Response) Flush() error {
	if w.flush == nil || w.start == 0 {
		return nil
	}
	head := len(w.Buf) - w.start
	if err := w.flush(w.start); err != nil {
		return err
	}
	copy(w.Buf, w.Buf[w.start:])
	w.Buf, w.start = w.Buf[:head], 0
	return nil
}
