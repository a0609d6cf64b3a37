package replica

import (
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// A lateLog is a log that could not be created when its partition came, because descriptors, memory or
// room were short. Whoever asks for it tries again, once a second at most.
type lateLog struct {
	create func() (*commitlog.Log, error)
	tried  atomic.Int64 // when, in nanoseconds
}

const latePause = time.Second

// due reports whether to try now, to one of those who ask at the same time.
func (l *lateLog) due(now time.Time) bool {
	tried := l.tried.Load()
	return now.UnixNano()-tried >= int64(latePause) && l.tried.CompareAndSwap(tried, now.UnixNano())
}

// createLate returns the log if there is one now.
func (p *Partition) createLate(now time.Time) *commitlog.Log {
	if !p.late.due(now) {
		return p.log.Load()
	}
	log, err := p.late.create()
	if err != nil {
		return p.log.Load()
	}
	p.enter(log, p.state.Load())
	if p.log.CompareAndSwap(nil, log) {
		p.enter(log, p.state.Load()) // which may have changed meanwhile, without a log to tell
	}
	return p.log.Load()
}
