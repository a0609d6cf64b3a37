package api

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/wire"
)

// conversions bounds the memory of all that is converted for old clients at the same time, however
// many there are. Nobody waits for one bound while holding a part of another that the first depends
// on: turns are for the processor only, ready is never waited for, and a request that holds sending waits
// for its client, not longer than sendingMax when others wait for him.
type conversions struct {
	turns   chan struct{} // a token for each conversion that is under way, decompressed batches included
	ready   *wire.Budget  // records that are converted and not sent; without it they are converted later
	sending *wire.Budget  // pieces of answers that are converted while they are sent
}

const (
	conversionReadyBytes   = 16 << 20
	conversionSendingBytes = 48 << 20
)

func newConversions() *conversions {
	return &conversions{
		turns:   make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		ready:   wire.NewBudget(conversionReadyBytes),
		sending: wire.NewBudget(conversionSendingBytes),
	}
}

// inTurn runs a conversion when it is its turn, in order of arrival.
func (c *conversions) inTurn(ctx context.Context, convert func() error) error {
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turns }()
	return convert()
}

// ConversionBytes tells how much memory conversions for old clients hold, and how much they may.
func (s *Server) ConversionBytes() (used, most int64) {
	c := s.conversions
	return c.ready.InUse() + c.sending.InUse(), c.ready.Size() + c.sending.Size()
}

// How long a client may take for what is converted while it is sent, when others wait for the memory;
// and how often it is looked whether they do.
const (
	sendingMax  = 10 * time.Second
	sendingLook = time.Second
)

// errSlowClient ends a connection.
var errSlowClient = errors.New("the client is too slow for records that have to be converted, and others wait")

// A share is a part of conversions.sending that one answer holds.
type share struct {
	budget *wire.Budget
	size   int64
	since  time.Time
}

// acquire waits until a share that holds nothing has n bytes.
func (h *share) acquire(ctx context.Context, n int64) error {
	if err := h.budget.Acquire(ctx, n); err != nil {
		return err
	}
	h.size, h.since = n, time.Now()
	return nil
}

func (h *share) release() {
	if h.size > 0 {
		h.budget.Release(h.size)
		h.size = 0
	}
}

// tooLong reports whether a share that is held for so long has to be given up.
func tooLong(held time.Duration, contended bool) bool { return contended && held >= sendingMax }

// write writes b as long as the client may take.
func (h *share) write(w io.Writer, b []byte) (n int, err error) {
	conn, ok := w.(interface{ SetWriteDeadline(time.Time) error })
	if !ok {
		return w.Write(b)
	}
	defer conn.SetWriteDeadline(time.Time{})
	for {
		conn.SetWriteDeadline(time.Now().Add(sendingLook))
		m, err := w.Write(b[n:])
		n += m
		switch {
		case n == len(b):
			return n, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case tooLong(time.Since(h.since), h.budget.Contended()):
			return n, errSlowClient
		}
	}
}

// oldBuffers are those that records are read into and converted in, up to a size.
var oldBuffers = sync.Pool{New: func() any { return new([]byte) }}

const oldBufferMax = 4 << 20

func getOldBuffer(n int) []byte {
	b := *oldBuffers.Get().(*[]byte)
	if cap(b) < n {
		b = make([]byte, n)
	}
	return b[:0]
}

func putOldBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= oldBufferMax {
		oldBuffers.Put(&b)
	}
}
