package logdir

import (
	"iter"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Cleaner compacts logs beside the manager, and has the retention of compacted logs in its
// care. The manager tells it before it changes a log in another way than by appending, and what
// has become of it. It is called with locks of the manager held and must not call back.
type Cleaner interface {
	// Pause keeps the cleaner off a log until Resume, and waits until it is. Pauses add up.
	Pause(p topic.Partition)
	Resume(p topic.Partition)
	// Abort ends what the cleaner is doing at a log.
	Abort(p topic.Partition)

	// Truncated notes that a paused log ends at offset.
	Truncated(dir string, p topic.Partition, offset int64) error
	// Carry notes in another directory how far a paused log is clean.
	Carry(p topic.Partition, from, to string) error
	// Forget drops logs that have left a directory, or that begin there.
	Forget(dir string, partitions ...topic.Partition) error
	// DirFailed drops a directory that is offline, with the logs in it, without waiting.
	DirFailed(dir string, partitions ...topic.Partition)
}

// noCleaner stands for a cleaner where there is none.
type noCleaner struct{}

func (noCleaner) Pause(topic.Partition)                          {}
func (noCleaner) Resume(topic.Partition)                         {}
func (noCleaner) Abort(topic.Partition)                          {}
func (noCleaner) Truncated(string, topic.Partition, int64) error { return nil }
func (noCleaner) Carry(topic.Partition, string, string) error    { return nil }
func (noCleaner) Forget(string, ...topic.Partition) error        { return nil }
func (noCleaner) DirFailed(string, ...topic.Partition)           {}

// FailSoon takes a directory offline, and does not wait for it.
func (m *Manager) FailSoon(path string, cause error) {
	for _, d := range m.dirs {
		if d.path == path {
			m.failSoon(d, cause)
		}
	}
}

// Placed yields the logs that are open now, each with its directory, in no order.
func (m *Manager) Placed() iter.Seq2[*commitlog.Log, string] {
	return func(yield func(*commitlog.Log, string) bool) {
		for _, e := range m.places.entries() {
			if !yield(e.log, e.dir.path) {
				return
			}
		}
	}
}

// Place returns the log of a partition and its directory; nil and "" if there is none.
func (m *Manager) Place(p topic.Partition) (*commitlog.Log, string) {
	if e, ok := m.places.entry(p); ok {
		return e.log, e.dir.path
	}
	return nil, ""
}
