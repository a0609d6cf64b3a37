package logdir

import (
	"sync"
	"time"
)

// handoffs are what logs want done soon: syncing what a roll sealed, writing the topic id of
// a new log. A few goroutines do them, which live while there are any: thousands of logs
// may be created at once, and each of them waits for the disk. Nothing is lost when the
// manager closes first: the logs' own Close does the same.
type handoffs struct {
	sync.Mutex
	queue   []func()
	workers int
}

const handoffWorkers = 4

// logRequests are what logs ask a manager to do: one method value for all of them instead of one each.
type logRequests struct {
	later func(delay time.Duration, remove func()) // deleteLater
	soon  func(task func())                        // handOff
}

// handOff queues a task and returns at once.
func (m *Manager) handOff(task func()) {
	q := &m.handoffs
	q.Lock()
	defer q.Unlock()
	q.queue = append(q.queue, task)
	if q.workers < handoffWorkers {
		q.workers++
		m.background(m.runHandoffs)
	}
}

func (m *Manager) runHandoffs() {
	q := &m.handoffs
	for {
		q.Lock()
		if len(q.queue) == 0 || m.isClosing() {
			q.queue = nil
			q.workers--
			q.Unlock()
			return
		}
		task := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.Unlock()
		task()
	}
}
