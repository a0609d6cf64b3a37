package quorum

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/vfs"
)

// mustSubmit proposes records behind the newest Tail and does not wait for them.
func mustSubmit(t *testing.T, q *Quorum, records ...metadata.Record) func(context.Context) error {
	t.Helper()
	wait, err := q.Propose(context.Background(), q.Tail(), records)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

// A stuckDisk holds every sync of the log until it is let go, with an error or none.
type stuckDisk struct {
	syncs chan error
}

func stick(fsys *vfs.Mem) *stuckDisk {
	d := &stuckDisk{syncs: make(chan error)}
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, logSuffix) {
			return <-d.syncs
		}
		return nil
	})
	return d
}

// Several proposals are on their way before the first is on the disk, each on what those before it
// make; each is published after its commit, in order.
func TestProposeBehindProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		disk := stick(fsys)
		start := q.Tail()
		var seen []int
		q.Subscribe(func(img *metadata.Image, _ *metadata.Delta) { seen = append(seen, img.NumTopics()) })
		var waits []func(context.Context) error
		for n := range 3 {
			waits = append(waits, mustSubmit(t, q, topicRecords(n)...))
		}
		synctest.Wait()
		if tail := q.Tail(); tail.Image.NumTopics() != 3 || tail.NextOffset != start.NextOffset+6 || q.Image().NumTopics() != 0 {
			t.Errorf("before the disk: tail of %d topics, next offset %d after %d, image of %d", tail.Image.NumTopics(), tail.NextOffset, start.NextOffset, q.Image().NumTopics())
		}
		if _, err := q.Propose(context.Background(), q.Tail(), topicRecords(1)); !errors.Is(err, metadata.ErrCorrupt) {
			t.Errorf("a topic that is proposed already: %v", err)
		}
		if _, err := q.Propose(context.Background(), start, topicRecords(7)); !errors.Is(err, ErrStale) {
			t.Errorf("on a tail of before: %v", err)
		}
		impatient, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := mustSubmit(t, q, topicRecords(3)...)(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is over: %v", err)
		}
		behind := mustSubmit(t, q) // nothing to propose, but made of what is proposed
		if synctest.Wait(); len(seen) != 1 {
			t.Errorf("published before the disk: %v", seen)
		}
		close(disk.syncs)
		for n, wait := range append(waits, behind) {
			if err := wait(context.Background()); err != nil || q.Image().NumTopics() < n+1 {
				t.Errorf("wait %d: %v, and the image has %d topics", n, err, q.Image().NumTopics())
			}
		}
		if !slices.Equal(seen, []int{0, 1, 2, 3, 4}) {
			t.Errorf("published images of %v topics", seen)
		}
		if tail := q.Tail(); tail.Image != q.Image() || tail.NextOffset != q.NextOffset() {
			t.Error("with nothing in flight the tail is not the image")
		}
		fsys.SetHook(nil)
	})
}

// What is built on a proposal that fails fails too, and the next Tail has neither.
func TestProposalsFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		disk := stick(fsys)
		var waits []func(context.Context) error
		for n := range 3 {
			waits = append(waits, mustSubmit(t, q, topicRecords(n)...))
		}
		waits = append(waits, mustSubmit(t, q))
		doomed := q.Tail()
		broken := errors.New("the disk is gone")
		disk.syncs <- broken
		for n, wait := range waits {
			if err := wait(context.Background()); !errors.Is(err, broken) {
				t.Errorf("proposal %d: %v", n, err)
			}
		}
		if tail := q.Tail(); tail.Image.NumTopics() != 0 {
			t.Errorf("the tail still has %d topics", tail.Image.NumTopics())
		}
		for _, records := range [][]metadata.Record{topicRecords(8), nil} {
			if _, err := q.Propose(context.Background(), doomed, records); !errors.Is(err, ErrStale) {
				t.Errorf("%d records on what has failed: %v", len(records), err)
			}
		}
		fsys.SetHook(nil)
	})
}

// No more than so many proposals are in flight; who comes then waits, but not for ever.
func TestProposalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		disk := stick(fsys)
		for n := range inFlightMax {
			mustSubmit(t, q, topicRecords(n)...)
		}
		impatient, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := q.Propose(impatient, q.Tail(), topicRecords(inFlightMax)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(disk.syncs)
		wait := mustSubmit(t, q, topicRecords(inFlightMax)...)
		if err := wait(context.Background()); err != nil || q.Image().NumTopics() != inFlightMax+1 {
			t.Errorf("got %v, and %d topics", err, q.Image().NumTopics())
		}
		fsys.SetHook(nil)
	})
}

// A subscriber that takes its time holds up who waits for it, not the log: what comes is committed,
// in order, and a snapshot is of the batch that it says.
func TestSlowSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		o := options(fsys, dir)
		o.SnapshotBytes = 1 << 10
		q := mustOpen(t, o)
		mustPropose(t, q, topicRecords(0)...)
		gate := make(chan struct{})
		var seen []int
		q.Subscribe(func(img *metadata.Image, _ *metadata.Delta) {
			if seen = append(seen, img.NumTopics()); len(seen) > 1 {
				<-gate
			}
		})
		end := q.NextOffset()
		var wg sync.WaitGroup
		for n := range 30 {
			wait := mustSubmit(t, q, topicRecords(n+1)...)
			wg.Go(func() {
				if err := wait(context.Background()); err != nil {
					t.Errorf("topic %d: %v", n+1, err)
				}
			})
		}
		synctest.Wait()
		if got := q.NextOffset() - end; got != 60 || q.Image().NumTopics() != 2 {
			t.Errorf("while the subscriber works %d records were committed, want 60, and the image has %d topics", got, q.Image().NumTopics())
		}
		close(gate)
		wg.Wait()
		synctest.Wait()
		for n, topics := range seen {
			if topics != n+1 {
				t.Errorf("call %d: an image of %d topics", n, topics)
			}
		}
		if ids, err := q.snapshots.checkpoints(); err != nil || len(ids) == 0 || ids[0] == bootstrapID {
			t.Errorf("snapshots %v, %v: want one", ids, err)
		}
		state := stateOf(q.Image())
		mustClose(t, q)
		if again := mustOpen(t, o); len(stateOf(again.Image())) != len(state) {
			t.Error("the image differs after a start")
		}
	})
}

// Close sees to the end what is in flight.
func TestCloseWithProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		disk := stick(fsys)
		var waits []func(context.Context) error
		for n := range 5 {
			waits = append(waits, mustSubmit(t, q, topicRecords(n)...))
		}
		tail := q.Tail()
		closed := make(chan error, 1)
		go func() { closed <- q.Close() }()
		synctest.Wait()
		if _, err := q.Propose(context.Background(), tail, topicRecords(7)); !errors.Is(err, ErrClosed) {
			t.Errorf("a proposal after Close has begun: %v", err)
		}
		close(disk.syncs)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		for n, wait := range waits {
			if err := wait(context.Background()); err != nil {
				t.Errorf("proposal %d: %v", n, err)
			}
		}
	})
}
