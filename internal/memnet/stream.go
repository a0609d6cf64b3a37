package memnet

import (
	"bytes"
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
	link *Link // nil: the ends are on one host

	mu      sync.Mutex
	changed sync.Cond // with mu, of anything below

	// flight is what was sent and has not arrived, in order; flying counts its bytes.
	flight  []packet
	flying  int
	arrival *time.Timer // of the first of flight

	buf        []byte // what has arrived and was not read
	readError  error  // nil: reads go on. io.EOF only when buf is read
	writeError error  // nil: writes go on

	reading, writing deadline
}

// A packet is what is sent at once: bytes, or news for the other end.
type packet struct {
	data []byte
	news func() // is called without locks when it arrives; nil: data
	due  time.Time
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

func newStream(l *Link) *stream {
	s := &stream{link: l}
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
		if room := windowSize - len(s.buf) - s.flying; room > 0 {
			piece := p[n:min(len(p), n+room)]
			s.sendLocked(piece)
			n += len(piece)
			continue
		}
		s.changed.Wait()
	}
}

// sendLocked sends bytes, which stay the caller's.
func (s *stream) sendLocked(data []byte) {
	wait := s.link.draw()
	if len(s.flight) == 0 && wait == 0 && !s.link.isCut(s) {
		s.arriveLocked(data)
		return
	}
	s.queueLocked(packet{data: bytes.Clone(data)}, wait)
	if news := s.advanceLocked(); len(news) > 0 {
		panic("BUG: bytes are sent behind the news that none will be")
	}
}

// send sends news.
func (s *stream) send(news func()) {
	s.mu.Lock()
	s.queueLocked(packet{news: news}, s.link.draw())
	s.mu.Unlock()
	s.deliver()
}

// queueLocked adds what arrives after a time, and after all that was sent before.
func (s *stream) queueLocked(p packet, wait time.Duration) {
	if wait > 0 {
		p.due = time.Now().Add(wait)
	}
	if last := len(s.flight) - 1; last >= 0 && s.flight[last].due.After(p.due) {
		p.due = s.flight[last].due
	}
	s.flight = append(s.flight, p)
	s.flying += len(p.data)
}

// deliver lets arrive what is due.
func (s *stream) deliver() {
	s.mu.Lock()
	news := s.advanceLocked()
	s.mu.Unlock()
	for _, f := range news {
		f()
	}
}

// advanceLocked takes what is due out of flight and returns the news in it. For the rest it comes again: when
// it is due, or the link is healed.
func (s *stream) advanceLocked() (news []func()) {
	for len(s.flight) > 0 && !s.link.isCut(s) {
		p := s.flight[0]
		if wait := time.Until(p.due); wait > 0 {
			if s.arrival != nil {
				s.arrival.Stop()
			}
			s.arrival = time.AfterFunc(wait, s.deliver)
			break
		}
		s.flight = s.flight[1:]
		s.flying -= len(p.data)
		if p.news != nil {
			news = append(news, p.news)
		} else {
			s.arriveLocked(p.data)
		}
	}
	return news
}

// arriveLocked gives bytes to who reads, if somebody still does.
func (s *stream) arriveLocked(data []byte) {
	if s.readError == nil {
		s.buf = append(s.buf, data...)
	}
	s.changed.Broadcast()
}

// endWrites ends the writing.
func (s *stream) endWrites(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeError == nil || why == net.ErrClosed {
		s.writeError = why
	}
	s.writing.stop()
	s.changed.Broadcast()
}

// finish lets reads reach an end, behind what has arrived.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readError == nil {
		s.readError = io.EOF
	}
	s.changed.Broadcast()
}

// abandon ends the reading: what has arrived is lost, and so is what will.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf, s.readError = nil, net.ErrClosed
	s.reading.stop()
	s.changed.Broadcast()
}

// failReads ends the reading, unless it has ended, because the connection was reset.
func (s *stream) failReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readError == nil || s.readError == io.EOF {
		s.buf, s.readError = nil, syscall.ECONNRESET
	}
	s.reading.stop()
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
