package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memLog keeps batches in memory.
type memLog struct {
	mu      sync.Mutex
	batches map[int32][][]byte
	end     map[int32]int64
	delay   time.Duration // of an append
	fail    error         // of the next append
	failing error         // of every replay
	gate    chan struct{} // if not nil: replays wait until it is closed

	committed map[int32]chan error // if not nil: AwaitCommitted waits for what comes
}

func newMemLog() *memLog {
	return &memLog{batches: make(map[int32][][]byte), end: make(map[int32]int64)}
}

func (l *memLog) Append(ctx context.Context, p topic.Partition, epoch int32, batch []byte) (int64, error) {
	select {
	case <-time.After(l.delay):
	case <-ctx.Done():
		return -1, fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fail := l.fail
	l.fail = nil
	if fail != nil && !errors.Is(fail, ErrUncertain) {
		return -1, fail
	}
	b := record.Batch(batch)
	b.SetBaseOffset(l.end[p.Partition])
	b.SetLeaderEpoch(epoch)
	if err := b.Verify(); err != nil {
		return -1, err
	}
	l.batches[p.Partition] = append(l.batches[p.Partition], b)
	l.end[p.Partition] = b.NextOffset()
	return b.BaseOffset(), fail
}

func (l *memLog) AwaitCommitted(ctx context.Context, p topic.Partition) error {
	c := l.committed[p.Partition]
	if c == nil {
		return nil
	}
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *memLog) Replay(_ context.Context, p topic.Partition, visit func(record.Batch) error) error {
	if l.gate != nil {
		<-l.gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing != nil {
		return l.failing
	}
	for _, b := range l.batches[p.Partition] {
		if err := visit(b); err != nil {
			return err
		}
	}
	return nil
}

func (l *memLog) countBatches(p int32) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.batches[p])
}

// notes is a machine that keeps the values of its records in order.
type notes struct {
	values  []string
	pending map[int64][]string
	alarm   time.Time // writes "alarm" then
	waiting []func(string)
}

func newNotes(int32) *notes { return &notes{pending: make(map[int64][]string)} }

func (n *notes) Replay(r Replayed) error {
	v := string(r.Value)
	switch {
	case v == "bad":
		return errors.New("bad note")
	case r.ProducerID >= 0:
		n.pending[r.ProducerID] = append(n.pending[r.ProducerID], v)
	default:
		n.values = append(n.values, v)
	}
	return nil
}

func (n *notes) EndTransaction(producerID int64, commit bool) {
	if commit {
		n.values = append(n.values, n.pending[producerID]...)
	}
	delete(n.pending, producerID)
}

func (n *notes) Loaded(*Turn) {}

func (n *notes) Deadline() (time.Time, bool) { return n.alarm, !n.alarm.IsZero() }

func (n *notes) Tick(t *Turn) {
	n.alarm = time.Time{}
	n.write(t, "alarm", func(string) {})
}

func (n *notes) Stop(err error) {
	for _, reply := range n.waiting {
		reply("stopped: " + err.Error())
	}
}

// write notes a value down and replies with where.
func (n *notes) write(t *Turn, value string, reply func(string)) {
	t.Write([]Record{{Key: []byte("k"), Value: []byte(value)}}, func(_ *Turn, first int64, err error) {
		if err != nil {
			reply(err.Error())
			return
		}
		n.values = append(n.values, value)
		reply(fmt.Sprintf("%s@%d", value, first))
	})
}

func newRuntime(t *testing.T, log Log) *Runtime[*notes] {
	t.Helper()
	r := New(Options[*notes]{Topic: "t", Log: log, New: newNotes, MaxBatch: 4096})
	t.Cleanup(r.Close)
	return r
}

func write(ctx context.Context, r *Runtime[*notes], p int32, value string) (string, error) {
	return Ask(ctx, r, p, Shared, func(n *notes, t *Turn, reply func(string)) { n.write(t, value, reply) })
}

func values(t *testing.T, r *Runtime[*notes], p int32) string {
	t.Helper()
	v, err := Ask(t.Context(), r, p, Shared, func(n *notes, _ *Turn, reply func(string)) {
		reply(strings.Join(n.values, " "))
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustWrite(t *testing.T, r *Runtime[*notes], p int32, value, want string) {
	t.Helper()
	got, err := write(t.Context(), r, p, value)
	if err != nil || got != want {
		t.Errorf("write %s: got %q, %v, want %q", value, got, err, want)
	}
}

func TestRuntimeWritesAndLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRuntime(t, log)
		if _, err := write(t.Context(), r, 0, "x"); err != ErrNotCoordinator {
			t.Errorf("before Lead: got %v, want %v", err, ErrNotCoordinator)
		}
		r.Lead(0, 5)
		synctest.Wait()
		mustWrite(t, r, 0, "a", "a@0")
		mustWrite(t, r, 0, "b", "b@1")
		mustWrite(t, r, 0, "bad", "bad@2")
		r.Lead(0, 5) // nothing new
		if got := values(t, r, 0); got != "a b bad" {
			t.Errorf("got %q", got)
		}
		r.Lead(0, 6)
		synctest.Wait()
		if got := values(t, r, 0); got != "a b" { // the bad record is skipped
			t.Errorf("after reload: got %q", got)
		}
		r.Resign(0, 5) // of an epoch that is over
		mustWrite(t, r, 0, "c", "c@3")
		r.Resign(0, 6)
		if _, err := write(t.Context(), r, 0, "x"); err != ErrNotCoordinator {
			t.Errorf("after Resign: got %v, want %v", err, ErrNotCoordinator)
		}
	})
}

// Steps that wait while an append is on its way share the next batch.
func TestRuntimeGroupsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.delay = time.Second
		r := newRuntime(t, log)
		r.Lead(0, 0)
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if _, err := write(t.Context(), r, 0, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		start := time.Now()
		wg.Wait()
		if n, d := log.countBatches(0), time.Since(start); n > 2 || d > 2*time.Second {
			t.Errorf("ten writes took %d appends and %v, want two", n, d)
		}
	})
}

// A batch holds no more than it may; a write that never fits fails alone.
func TestRuntimeBoundsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRuntime(t, log)
		r.Lead(0, 0)
		synctest.Wait()
		got, err := Ask(t.Context(), r, 0, Shared, func(n *notes, t *Turn, reply func(string)) {
			var answers []string
			note := func(s string) {
				answers = append(answers, s[max(0, len(s)-30):])
				if len(answers) == 4 {
					reply(strings.Join(answers, " "))
				}
			}
			n.write(t, "a", note)
			n.write(t, strings.Repeat("x", 5000), note)
			n.write(t, strings.Repeat("y", 3000), func(s string) { note(s[len(s)-2:]) })
			n.write(t, strings.Repeat("z", 3000), func(s string) { note(s[len(s)-2:]) })
		})
		if want := "a@0 records do not fit in a batch @1 @2"; err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if n := log.countBatches(0); n != 3 {
			t.Errorf("got %d batches, want 3", n)
		}
	})
}

func TestRuntimeAppendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		r := newRuntime(t, log)
		r.Lead(0, 0)
		synctest.Wait()
		mustWrite(t, r, 0, "a", "a@0")
		log.fail = errors.New("no room")
		mustWrite(t, r, 0, "b", "no room")
		mustWrite(t, r, 0, "c", "c@1")
		if got := values(t, r, 0); got != "a c" {
			t.Errorf("got %q", got)
		}
		// When it is not known what the log holds the shard looks.
		log.fail = fmt.Errorf("%w: slow", ErrUncertain)
		mustWrite(t, r, 0, "d", "append of unknown outcome: slow")
		synctest.Wait()
		if got := values(t, r, 0); got != "a c d" {
			t.Errorf("after reload: got %q", got)
		}
	})
}

func TestRuntimeReplaysTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		add := func(o record.BuilderOptions, key, value []byte) {
			b := record.NewBuilder(o)
			if err := b.Append(record.Record{Key: key, Value: value}); err != nil {
				t.Fatal(err)
			}
			if _, err := log.Append(t.Context(), topic.Partition{}, 0, b.Build()); err != nil {
				t.Fatal(err)
			}
		}
		txn := func(id int64) record.BuilderOptions {
			return record.BuilderOptions{Transactional: true, Producer: &record.Producer{ID: id}}
		}
		marker := func(id int64, c record.ControlType) {
			o := txn(id)
			o.Control = true
			add(o, record.ControlKey(c), []byte{0, 0, 0, 0, 0, 0})
		}
		add(txn(1), nil, []byte("committed"))
		add(txn(2), nil, []byte("aborted"))
		add(txn(3), nil, []byte("open"))
		add(record.BuilderOptions{}, nil, []byte("plain"))
		marker(1, record.ControlCommit)
		marker(2, record.ControlAbort)
		r := newRuntime(t, log)
		r.Lead(0, 0)
		synctest.Wait()
		if got, want := values(t, r, 0), "plain committed"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A log is read when all in it is committed; until then others are read.
func TestRuntimeLoadsWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.committed = map[int32]chan error{0: make(chan error), 1: make(chan error), 2: make(chan error)}
		r := New(Options[*notes]{Topic: "t", Log: log, New: newNotes, MaxBatch: 4096, Loaders: 1})
		defer r.Close()
		for p := range int32(4) {
			r.Lead(p, 0)
		}
		synctest.Wait()
		mustWrite(t, r, 3, "a", "a@0")
		if _, err := write(t.Context(), r, 0, "x"); err != ErrLoading {
			t.Errorf("got %v, want %v", err, ErrLoading)
		}
		log.committed[0] <- nil
		synctest.Wait()
		mustWrite(t, r, 0, "b", "b@0")
		log.committed[1] <- errors.New("not the leader")
		synctest.Wait()
		if _, err := write(t.Context(), r, 1, "x"); err != ErrNotCoordinator {
			t.Errorf("got %v, want %v", err, ErrNotCoordinator)
		}
	}) // and the last one waits when the runtime is closed
}

func TestRuntimeLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.gate = make(chan struct{})
		r := newRuntime(t, log)
		r.Lead(0, 0)
		if _, err := write(t.Context(), r, 0, "x"); err != ErrLoading {
			t.Errorf("got %v, want %v", err, ErrLoading)
		}
		// Who comes shortly before the end waits, and so do patient events.
		err := r.Submit(0, Event[*notes]{Patient: true, Run: func(n *notes, t *Turn) {
			n.write(t, "patient", func(string) {})
		}})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(loadGrace/2, func() { close(log.gate) })
		mustWrite(t, r, 0, "a", "a@1")
		if got := values(t, r, 0); got != "patient a" {
			t.Errorf("got %q", got)
		}
	})
}

func TestRuntimeLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.gate, log.failing = make(chan struct{}), errors.New("disk on fire")
		r := newRuntime(t, log)
		r.Lead(0, 0)
		var failed error
		err := r.Submit(0, Event[*notes]{Patient: true, Fail: func(err error) { failed = err }})
		if err != nil {
			t.Fatal(err)
		}
		close(log.gate)
		if _, err := write(t.Context(), r, 0, "x"); err != ErrNotCoordinator {
			t.Errorf("got %v, want %v", err, ErrNotCoordinator)
		}
		if failed != ErrNotCoordinator {
			t.Errorf("patient event: got %v, want %v", failed, ErrNotCoordinator)
		}
		if got := r.Partitions(); len(got) != 0 {
			t.Errorf("partitions %v, want none", got)
		}
		log.failing = nil
		r.Lead(0, 1)
		mustWrite(t, r, 0, "a", "a@0")
	})
}

func TestRuntimeTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRuntime(t, newMemLog())
		r.Lead(0, 0)
		synctest.Wait()
		set := func(d time.Duration) {
			_, err := Ask(t.Context(), r, 0, Shared, func(n *notes, t *Turn, reply func(struct{})) {
				n.alarm = t.Now.Add(d)
				reply(struct{}{})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(time.Minute)
		synctest.Wait()
		time.Sleep(59 * time.Second)
		if got := values(t, r, 0); got != "" {
			t.Errorf("too early: %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := values(t, r, 0); got != "alarm" {
			t.Errorf("got %q", got)
		}
		set(0)
		synctest.Wait()
		if got := values(t, r, 0); got != "alarm alarm" {
			t.Errorf("got %q", got)
		}
	})
}

// Requests that a machine holds on to, and those behind them, are answered at the end.
func TestRuntimeStopAnswersAll(t *testing.T) {
	f := func(stop func(r *Runtime[*notes]), want string, wantErr error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			log := newMemLog()
			log.delay = time.Hour
			r := newRuntime(t, log)
			r.Lead(0, 0)
			synctest.Wait()
			held := make(chan string, 1)
			_, err := Ask(t.Context(), r, 0, Shared, func(n *notes, _ *Turn, reply func(struct{})) {
				n.waiting = append(n.waiting, func(s string) { held <- s })
				reply(struct{}{})
			})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = write(t.Context(), r, 0, "on its way") }()
			synctest.Wait()
			queued := make(chan error, 1)
			go func() {
				_, err := write(t.Context(), r, 0, "queued")
				queued <- err
			}()
			synctest.Wait()
			stop(r)
			if got := <-held; got != want {
				t.Errorf("held request: got %q, want %q", got, want)
			}
			if err := <-queued; err != wantErr {
				t.Errorf("queued request: got %v, want %v", err, wantErr)
			}
		})
	}
	f(func(r *Runtime[*notes]) { r.Close() }, "stopped: "+ErrClosed.Error(), ErrClosed)
	f(func(r *Runtime[*notes]) { r.Resign(0, 0) }, "stopped: "+ErrNotCoordinator.Error(), ErrNotCoordinator)
	f(func(r *Runtime[*notes]) { r.Lead(0, 1) }, "stopped: "+ErrNotCoordinator.Error(), ErrNotCoordinator)
}

func TestRuntimeClientGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMemLog()
		log.delay = time.Minute
		r := newRuntime(t, log)
		r.Lead(0, 0)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := write(ctx, r, 0, "a"); err != context.DeadlineExceeded {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		time.Sleep(time.Hour)
		if got := values(t, r, 0); got != "a" {
			t.Errorf("the step went on without its client: got %q", got)
		}
	})
}

// An event that runs alone sees what was written before it.
func TestRuntimeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRuntime(t, newMemLog())
		r.Lead(0, 0)
		synctest.Wait()
		var seen []string
		done := make(chan struct{})
		_, err := Ask(t.Context(), r, 0, Shared, func(n *notes, _ *Turn, reply func(struct{})) {
			// Queue three events at once, from within the shard.
			look := func(alone bool) {
				err := r.Submit(0, Event[*notes]{Alone: alone, Run: func(n *notes, t *Turn) {
					seen = append(seen, strings.Join(n.values, " "))
					n.write(t, fmt.Sprint(len(seen)), func(string) {
						if len(n.values) == 4 {
							close(done)
						}
					})
				}})
				if err != nil {
					t.Error(err)
				}
			}
			look(false)
			look(false)
			look(true)
			look(false)
			reply(struct{}{})
		})
		if err != nil {
			t.Fatal(err)
		}
		<-done
		if want := []string{"", "", "1 2", "1 2 3"}; !slices.Equal(seen, want) {
			t.Errorf("got %q, want %q", seen, want)
		}
	})
}

// Many clients, partitions and changes of leadership at once, for the race detector.
func TestRuntimeConcurrent(t *testing.T) {
	log := newMemLog()
	r := newRuntime(t, log)
	var wg sync.WaitGroup
	for p := range int32(4) {
		r.Lead(p, 0)
		wg.Go(func() {
			for epoch := range int32(20) {
				r.Lead(p, epoch)
				r.Partitions()
			}
		})
		for range 4 {
			wg.Go(func() {
				for i := range 50 {
					_, err := write(t.Context(), r, p, fmt.Sprint(i))
					if err != nil && err != ErrLoading && err != ErrNotCoordinator {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
}
