package cleaner

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gregor-kafka/gregor/internal/topic"
)

var orders0 = topic.Partition{Topic: "orders", Partition: 0}

func newTask() *task {
	_, cancel := context.WithCancel(context.Background())
	return &task{cancel: cancel}
}

func TestStates(t *testing.T) {
	s := newStates()
	is := func(want string) {
		t.Helper()
		if got := s.name(orders0); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	is("idle")
	first, second := newTask(), newTask()
	if !s.begin(orders0, first) || s.begin(orders0, second) {
		t.Error("one task at a time")
	}
	is("cleaning")
	s.end(orders0, first)
	is("idle")
	s.pause(orders0)
	s.pause(orders0)
	is("paused")
	if s.begin(orders0, first) {
		t.Error("a task began at a paused log")
	}
	s.resume(orders0)
	is("paused")
	s.resume(orders0)
	is("idle")
	if !s.begin(orders0, second) {
		t.Error("no task after all resumed")
	}
	s.abort(orders0)
	is("aborted")
	s.end(orders0, second)
	is("idle")
	s.abort(orders0) // of nothing
	is("idle")
	if len(s.known) > 0 {
		t.Errorf("idle logs have state: %v", s.known)
	}
}

// A pause waits until the task has noticed; further pauses wait with it.
func TestPauseWaitsForTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStates()
		ctx, cancel := context.WithCancel(context.Background())
		work := &task{cancel: cancel}
		s.begin(orders0, work)
		paused := make(chan int, 2)
		for i := range 2 {
			go func() {
				s.pause(orders0)
				paused <- i
			}()
		}
		synctest.Wait()
		if ctx.Err() == nil || !s.isAborted(work) || len(paused) > 0 || s.name(orders0) != "aborted" {
			t.Fatalf("cancelled %v, aborted %v, %d pauses came through, state %s", ctx.Err(), s.isAborted(work), len(paused), s.name(orders0))
		}
		s.end(orders0, work)
		synctest.Wait()
		if len(paused) != 2 || s.name(orders0) != "paused" {
			t.Fatalf("%d pauses came through, state %s", len(paused), s.name(orders0))
		}
		s.resume(orders0)
		if s.begin(orders0, newTask()) {
			t.Error("a task began under the second pause")
		}
		s.resume(orders0)
	})
}

func TestResumeWithoutPausePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newStates().resume(orders0)
}
