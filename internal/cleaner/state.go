package cleaner

import (
	"context"
	"fmt"
	"sync"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// A task is work on one log that nothing else must meet: a cleaning, or the deletion of old
// segments of a compacted log.
type task struct {
	kind   taskKind
	cancel context.CancelFunc
	done   chan struct{} // closed when the task has ended

	aborted  bool      // guarded by states
	cleaning *cleaning // nil for a retentionTask
}

type taskKind int8

const (
	cleaningTask taskKind = iota
	retentionTask
)

// states knows what may be done with which log (doc/format.md 7.1, Kafka's LogCleaningState):
//
//	none --begin--> in progress --end--> none
//	                     | pause
//	                     v
//	                  aborted --end--> paused(n) --resume n times--> none
//
// It is safe for concurrent use. Its mutex is a leaf: nothing is called under it.
type states struct {
	mu    sync.Mutex
	known map[topic.Partition]*state // what is not here has no state
}

// A state has a task, pauses, or both: then the task was aborted and has not noticed yet.
type state struct {
	task   *task
	pauses int
}

func newStates() *states { return &states{known: make(map[topic.Partition]*state)} }

// begin gives a log without state to a task.
func (s *states) begin(p topic.Partition, t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[p] != nil {
		return false
	}
	t.done = make(chan struct{})
	s.known[p] = &state{task: t}
	return true
}

// end takes the log from its task.
func (s *states) end(p topic.Partition, t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.known[p]
	st.task = nil
	s.dropIdleLocked(p, st)
	close(t.done)
}

// isAborted reports whether somebody wants the log. What the task has found out about it
// counts no more.
func (s *states) isAborted(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.aborted
}

// pause keeps tasks off a log until resume, aborts the one that runs, and returns when there
// is none. Pauses add up.
func (s *states) pause(p topic.Partition) {
	s.mu.Lock()
	st := s.known[p]
	if st == nil {
		st = &state{}
		s.known[p] = st
	}
	st.pauses++
	t := st.task
	if t != nil {
		t.aborted = true
	}
	s.mu.Unlock()
	if t != nil {
		t.cancel()
		<-t.done
	}
}

func (s *states) resume(p topic.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.known[p]
	if st == nil || st.pauses == 0 {
		panic(fmt.Sprintf("BUG: cleaning of %v is resumed and was not paused", p))
	}
	st.pauses--
	s.dropIdleLocked(p, st)
}

func (s *states) dropIdleLocked(p topic.Partition, st *state) {
	if st.task == nil && st.pauses == 0 {
		delete(s.known, p)
	}
}

// abort ends the task of a log, if there is one, without waiting.
func (s *states) abort(p topic.Partition) {
	s.mu.Lock()
	st := s.known[p]
	if st == nil || st.task == nil {
		s.mu.Unlock()
		return
	}
	st.task.aborted = true
	cancel := st.task.cancel
	s.mu.Unlock()
	cancel()
}

// running returns the task of a log, or nil, and whether the log is paused.
func (s *states) running(p topic.Partition) (t *task, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.known[p]
	if st == nil {
		return nil, false
	}
	return st.task, st.pauses > 0
}

// name is what an operator is told.
func (s *states) name(p topic.Partition) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.known[p]
	switch {
	case st == nil:
		return "idle"
	case st.task != nil && st.task.aborted:
		return "aborted"
	case st.task != nil && st.task.kind == retentionTask:
		return "deleting"
	case st.task != nil:
		return "cleaning"
	}
	return "paused"
}
