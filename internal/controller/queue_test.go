package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
)

// A fakeQuorum proposes at once and commits when it is told.
type fakeQuorum struct {
	tail     quorum.Tail
	stale    int           // so many proposals come too late
	refusal  error         // of every proposal
	commit   chan error    // what becomes of all that was proposed; closed: it is committed
	proposed []int         // numbers of records
	asked    chan struct{} // one for each proposal
}

func newFakeQuorum(t *testing.T) *fakeQuorum {
	q := &fakeQuorum{tail: quorum.Tail{Image: metadata.NewImage("c")}, commit: make(chan error), asked: make(chan struct{}, 100)}
	records, _, err := registerBroker(q.tail.Image, registration(1), 0)
	if err != nil {
		t.Fatal(err)
	}
	if q.tail, err = behind(q.tail, records); err != nil {
		t.Fatal(err)
	}
	return q
}

// behind is the tail after records.
func behind(tail quorum.Tail, records []metadata.Record) (quorum.Tail, error) {
	next := tail.NextOffset + int64(len(records))
	img, _, err := tail.Image.Apply(records, next-1, 1)
	return quorum.Tail{Image: img, NextOffset: next}, err
}

func (q *fakeQuorum) Tail() quorum.Tail { return q.tail }

func (q *fakeQuorum) Propose(_ context.Context, tail quorum.Tail, records []metadata.Record) (func(context.Context) error, error) {
	q.asked <- struct{}{}
	if q.refusal != nil {
		return nil, q.refusal
	}
	if q.stale > 0 {
		q.stale--
		return nil, quorum.ErrStale
	}
	if len(records) > 0 {
		q.proposed = append(q.proposed, len(records))
		var err error
		if q.tail, err = behind(tail, records); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		select {
		case err := <-q.commit:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// createOne creates a topic and returns what it is refused with, of the topic or of the request.
func createOne(ctx context.Context, c *Controller, name string) error {
	created, err := c.CreateTopics(ctx, []NewTopic{{Name: name, Partitions: 1, ReplicationFactor: 1}}, false)
	if err != nil {
		return err
	}
	return created[0].Err
}

// Requests are decided one after the other, each on what was proposed before, and nothing is answered
// before it is committed: a refusal neither, if it rests on what is not.
func TestDecidesOnProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQuorum(t)
		c := New(Options{Quorum: q, Rules: testRules()})
		defer c.Close()
		answers := make(chan error, 3)
		for _, name := range []string{"a", "b", "a"} {
			go func() { answers <- createOne(t.Context(), c, name) }()
			synctest.Wait()
		}
		if len(q.proposed) != 2 || q.tail.Image.NumTopics() != 2 || len(answers) > 0 {
			t.Errorf("before the commit: %d proposals, %d topics, %d answers", len(q.proposed), q.tail.Image.NumTopics(), len(answers))
		}
		close(q.commit)
		synctest.Wait()
		refused := 0
		for range 3 {
			if err := <-answers; err != nil {
				refused++
				if KindOf(err) != TopicAlreadyExists {
					t.Error(err)
				}
			}
		}
		if refused != 1 {
			t.Errorf("%d refused, want 1", refused)
		}
	})
}

// What was decided on metadata that came to nothing is not answered as if they were there.
func TestFailureIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQuorum(t)
		c := New(Options{Quorum: q, Rules: testRules()})
		defer c.Close()
		answers := make(chan error, 2)
		for range 2 {
			go func() { answers <- createOne(t.Context(), c, "a") }()
			synctest.Wait()
		}
		broken := errors.New("the disk is gone")
		for range 2 {
			q.commit <- broken
		}
		for range 2 {
			if err := <-answers; !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A decision that comes too late is taken again on what is there then.
func TestDecidesAgain(t *testing.T) {
	q := newFakeQuorum(t)
	q.stale = 3
	close(q.commit)
	c := New(Options{Quorum: q, Rules: testRules()})
	defer c.Close()
	if err := createOne(t.Context(), c, "a"); err != nil || len(q.proposed) != 1 || len(q.asked) != 4 {
		t.Errorf("got %v after %d proposals, of which %d came in time", err, len(q.asked), len(q.proposed))
	}
}

func TestNotController(t *testing.T) {
	q := newFakeQuorum(t)
	c := New(Options{Quorum: q, Rules: testRules()})
	f := func(name string, want Kind) {
		t.Helper()
		if err := createOne(t.Context(), c, name); KindOf(err) != want {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	q.refusal = quorum.ErrNotLeader
	f("on a node that does not lead", NotController)
	q.refusal = nil
	go func() { q.commit <- quorum.ErrNotLeader }()
	f("that leads no more when it is committed", NotController)
	go func() { q.commit <- quorum.ErrClosed }()
	f("that stops", NotController)
	c.Close()
	f("that has stopped", NotController)
}

// Who asks waits as long as it wants; the next is not held up.
func TestImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQuorum(t)
		c := New(Options{Quorum: q, Rules: testRules()})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := createOne(ctx, c, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := createOne(ctx, c, "b"); !errors.Is(err, context.DeadlineExceeded) || len(q.proposed) != 1 {
			t.Errorf("a request that is over: %v, %d proposals", err, len(q.proposed))
		}
		close(q.commit)
		if err := createOne(t.Context(), c, "c"); err != nil {
			t.Error(err)
		}
	})
}

// Validation proposes nothing.
func TestValidateOnly(t *testing.T) {
	q := newFakeQuorum(t)
	close(q.commit)
	c := New(Options{Quorum: q, Rules: testRules()})
	defer c.Close()
	created, err := c.CreateTopics(t.Context(), []NewTopic{{Name: "a", Partitions: 1, ReplicationFactor: 1}}, true)
	if err != nil || created[0].Err != nil || len(q.proposed) > 0 {
		t.Errorf("got %+v, %v, and %d proposals", created, err, len(q.proposed))
	}
}
