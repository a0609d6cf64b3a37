package logdir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// places knows the open logs and where each lies.
type places struct {
	// mu guards the maps and dir.logCount; it is held for moments only.
	mu        sync.RWMutex
	logs      map[topic.Partition]entry
	futures   map[topic.Partition]entry // copies of moves under way
	preferred map[topic.Partition]*dir  // where logs are to be created
}

// An entry is an open log and where it lies.
type entry struct {
	log *commitlog.Log
	dir *dir
	// loadedHighWatermark is what the checkpoint said at start, or -1.
	loadedHighWatermark int64
}

func (l *places) init() {
	l.logs = make(map[topic.Partition]entry)
	l.futures = make(map[topic.Partition]entry)
	l.preferred = make(map[topic.Partition]*dir)
}

func (l *places) entry(p topic.Partition) (entry, bool) { return l.in(l.logs, p) }

func (l *places) future(p topic.Partition) (entry, bool) { return l.in(l.futures, p) }

func (l *places) in(m map[topic.Partition]entry, p topic.Partition) (entry, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	e, ok := m[p]
	return e, ok
}

// entries returns a copy, so that its users hold no lock.
func (l *places) entries() []entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]entry, 0, len(l.logs))
	for _, e := range l.logs {
		list = append(list, e)
	}
	return list
}

func (l *places) entriesOf(d *dir) []entry {
	return slices.DeleteFunc(l.entries(), func(e entry) bool { return e.dir != d })
}

// put adds an open log, putFuture the copy of a move.
func (l *places) put(p topic.Partition, e entry) error { return l.putIn(l.logs, p, e) }

func (l *places) putFuture(p topic.Partition, e entry) error { return l.putIn(l.futures, p, e) }

// putIn adds an entry, unless its directory has gone offline meanwhile. Who takes a
// directory offline marks it first and sweeps the map then, so nothing stays behind.
func (l *places) putIn(m map[topic.Partition]entry, p topic.Partition, e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := e.dir.failure(); err != nil {
		return err
	}
	m[p] = e
	e.dir.logCount++
	return nil
}

func (l *places) take(p topic.Partition) (entry, bool) { return l.takeFrom(l.logs, p) }

func (l *places) takeFuture(p topic.Partition) (entry, bool) { return l.takeFrom(l.futures, p) }

func (l *places) takeFrom(m map[topic.Partition]entry, p topic.Partition) (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := m[p]
	if ok {
		delete(m, p)
		e.dir.logCount--
	}
	return e, ok
}

// replace puts a log in the place of the one that the partition has.
func (l *places) replace(p topic.Partition, log *commitlog.Log, d *dir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs[p] = entry{log, d, -1}
}

// allFutures returns a copy of those of the directory or, with nil, of all.
func (l *places) allFutures(d *dir) []entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var list []entry
	for _, e := range l.futures {
		if d == nil || e.dir == d {
			list = append(list, e)
		}
	}
	return list
}

// promote makes the copy of a move the partition's log.
func (l *places) promote(p topic.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live, future := l.logs[p], l.futures[p]
	delete(l.futures, p)
	l.logs[p] = entry{future.log, future.dir, -1}
	live.dir.logCount--
}

// prefer notes where the log of a partition is to be created.
func (l *places) prefer(p topic.Partition, d *dir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preferred[p] = d
}

// reserve chooses the directory for a new log, the preferred one or one of those given, and counts the log
// as one of it. unreserve ends that.
func (l *places) reserve(p topic.Partition, id uuid.UUID, dirs []*dir) (*dir, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.preferred[p]
	delete(l.preferred, p)
	switch {
	case d != nil && d.failure() == nil:
	case len(dirs) == 0:
		return nil, fmt.Errorf("%w: directory.id=%v", ErrNoDirectory, id)
	default:
		d = slices.MinFunc(dirs, func(a, b *dir) int { return cmp.Compare(a.rank(), b.rank()) })
	}
	d.logCount++
	return d, nil
}

func (l *places) unreserve(d *dir) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.logCount--
}

// rank orders directories by their logs, cordoned ones behind all others. places.mu is held.
func (d *dir) rank() int64 {
	rank := int64(d.logCount)
	if d.cordoned.Load() {
		rank += math.MaxInt32
	}
	return rank
}
