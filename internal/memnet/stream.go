package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// windowSize is how many bytes are under way in one direction; writers wait then.
const windowSize = 256 << 10

// A stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond // with mu, of anything below

	buf        []byte // what was written and not read
	readError  error  // nil: reads go on. io.EOF only when buf is read
	writeError error  // nil: writes go on

	reading, writing deadline
}

// A deadline is when reading or writing fails.
type deadline struct {
	at    time.Time // zero: never
	timer *time.Timer
}

func (d *deadline) isOver() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func isEOF(err error) bool { return err == io.EOF }

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readError != nil && (s.readError != io.EOF || len(s.buf) == 0):
			return 0, s.readError
		case s.reading.isOver():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(s.buf) > 0:
			n := copy(p, s.buf)
			if s.buf = s.buf[n:]; len(s.buf) == 0 {
				s.buf = nil
			}
			s.changed.Broadcast()
			return n, nil
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.writeError != nil:
			return n, s.writeError
		case s.writing.isOver():
			return n, os.ErrDeadlineExceeded
		case n == len(p):
			return n, nil
		}
		if room := windowSize - len(s.buf); room > 0 {
			piece := p[n:min(len(p), n+room)]
			s.buf = append(s.buf, piece...)
			n += len(piece)
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// finish ends the writing: reads reach an end, further writes fail.
func (s *stream) finish(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readError == nil {
		s.readError = io.EOF
	}
	if s.writeError == nil || why == net.ErrClosed {
		s.writeError = why
	}
	s.writing.stop()
	s.changed.Broadcast()
}

// abandon ends the reading: what is there is lost, and writes fail.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf, s.readError = nil, net.ErrClosed
	if s.writeError == nil {
		s.writeError = syscall.EPIPE
	}
	s.reading.stop()
	s.changed.Broadcast()
}

// fail ends both, unless they have ended.
func (s *stream) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readError == nil || s.readError == io.EOF {
		s.buf, s.readError = nil, why
	}
	if s.writeError == nil {
		s.writeError = why
	}
	s.reading.stop()
	s.writing.stop()
	s.changed.Broadcast()
}

// setDeadline changes a deadline of the stream; whoever waits looks at it again.
func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.stop()
	d.at = t
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, s.wake)
	}
	s.changed.Broadcast()
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}
