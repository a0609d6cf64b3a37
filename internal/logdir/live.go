package logdir

import (
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// liveSettings are those of the Config that change while the manager runs, besides the move rate.
type liveSettings struct {
	recoveryThreads      atomic.Int64
	fileDeleteDelay      atomic.Int64 // nanoseconds
	producerIDExpiration atomic.Int64 // nanoseconds
}

// Reconfigure puts the settings in force that may change at run time: RecoveryThreads, for a
// directory whose loading has not begun, FileDeleteDelay, ProducerIDExpiration, MoveRate and Cordoned.
func (m *Manager) Reconfigure(c Config) {
	m.live.recoveryThreads.Store(int64(max(c.RecoveryThreads, 1)))
	m.live.fileDeleteDelay.Store(int64(c.FileDeleteDelay))
	m.mover.pace.SetRate(float64(c.MoveRate))
	for _, d := range m.dirs {
		d.cordoned.Store(slices.ContainsFunc(c.Cordoned, func(path string) bool { return filepath.Clean(path) == d.path }))
	}
	if m.live.producerIDExpiration.Swap(int64(c.ProducerIDExpiration)) == int64(c.ProducerIDExpiration) {
		return
	}
	for _, e := range append(m.places.entries(), m.places.allFutures(nil)...) {
		e.log.SetProducerIDExpiration(c.ProducerIDExpiration)
	}
}

func (m *Manager) fileDeleteDelay() time.Duration {
	return time.Duration(m.live.fileDeleteDelay.Load())
}
