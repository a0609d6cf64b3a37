package broker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A replay passes by what is damaged, at the beginning, in the middle and at the end, and counts it.
func TestReplayOfDamage(t *testing.T) {
	const perBatch, batches = 3, 6
	f := func(clean bool, skipped int64, damaged ...int64) {
		t.Helper()
		o := commitlog.Options{
			FS: vfs.NewMem(), Dir: "/data/__consumer_offsets-0", Partition: topic.Partition{Topic: topic.ConsumerOffsets},
			Config: commitlog.DefaultConfig(), Logger: slog.New(slog.DiscardHandler),
			Background: func(task func()) { task() },
		}
		l := mustOpen(t, o)
		var want []int64
		for i := range int64(batches) {
			records := make([]record.Record, perBatch)
			if _, err := l.AppendAsLeader(logtest.Batch(t, record.BuilderOptions{}, records...), 0, commitlog.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(damaged, i) {
				want = append(want, i*perBatch)
			}
		}
		path := l.Offsets().CleanSegments()[0].Path(segment.LogFile)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, i := range damaged {
			breakBatch(t, o.FS, path, int(i), batches)
		}
		o.Clean, o.RecoveryPoint = clean, perBatch*batches
		l = mustOpen(t, o)
		l.SetHighWatermark(perBatch * batches)
		var got []int64
		n, err := replayLog(t.Context(), l, 1, func(b record.Batch) error {
			got = append(got, b.BaseOffset())
			return nil
		})
		if err != nil || n != skipped || !slices.Equal(got, want) {
			t.Errorf("clean %v, damaged %v: replayed %v, skipped %d, %v, want %v and %d", clean, damaged, got, n, err, want, skipped)
		}
		stop := errors.New("stop")
		if _, err := replayLog(t.Context(), l, 1, func(record.Batch) error { return stop }); len(want) > 0 && !errors.Is(err, stop) {
			t.Errorf("damaged %v: the error of visit became %v", damaged, err)
		}
	}
	for _, clean := range []bool{true, false} {
		f(clean, 0)
		f(clean, 3, 0)
		f(clean, 3, 2)
		f(clean, 6, 2, 3)
		f(clean, 6, 1, 4)
		f(clean, 3, 5)
		f(clean, 18, 0, 1, 2, 3, 4, 5)
	}
}

// A coordinator reads a log when all in it is committed, and no further.
func TestReplayToTheHighWatermark(t *testing.T) {
	id := topic.Partition{Topic: topic.ConsumerOffsets}
	l := mustOpen(t, commitlog.Options{
		FS: vfs.NewMem(), Dir: "/data/__consumer_offsets-0", Partition: id, TopicID: uuid.UUID{15: 1},
		Config: commitlog.DefaultConfig(), Logger: slog.New(slog.DiscardHandler),
	})
	replicas := replica.NewManager(replica.Options{NodeID: 1, Logs: oneLog{l}})
	img := metadata.NewImage("test")
	apply := func(records ...metadata.Record) {
		t.Helper()
		next, delta, err := img.Apply(records, img.Offset+int64(len(records)), 1)
		if err == nil {
			err = replicas.Apply(delta)
		}
		if err != nil {
			t.Fatal(err)
		}
		img = next
	}
	r, p := metadata.NewTopicRecord(), metadata.NewPartitionRecord()
	r.Name, r.TopicID = id.Topic, l.TopicID()
	p.TopicID, p.PartitionID, p.Leader, p.Replicas, p.ISR, p.Directories = r.TopicID, 0, 1, []int32{1, 2}, []int32{1, 2}, make([]uuid.UUID, 2)
	apply(r, p)
	for range 3 {
		if _, err := l.AppendAsLeader(logtest.Batch(t, record.BuilderOptions{}, record.Record{}), 0, commitlog.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.SetHighWatermark(2) // 2 has not fetched the last one

	c := &coordinatorLog{replicas: replicas, loadBuffer: func() int { return 1 << 20 }, logger: slog.New(slog.DiscardHandler)}
	count := func() (n int) {
		if err := c.Replay(t.Context(), id, func(record.Batch) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("replayed %d batches, want the 2 that are committed", n)
	}
	done := make(chan error)
	go func() { done <- c.AwaitCommitted(t.Context(), id) }()
	for replicas.DelayedProduces() == 0 {
		runtime.Gosched()
	}
	gone := metadata.NewPartitionChangeRecord()
	gone.TopicID, gone.PartitionID, gone.Leader, gone.ISR = r.TopicID, 0, -2, []int32{1}
	apply(gone)
	if err := <-done; err != nil || count() != 3 {
		t.Errorf("after the follower left the ISR: %v and %d batches, want 3", err, count())
	}

	end := func(want error, change func()) {
		t.Helper()
		l.SetHighWatermark(2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { done <- c.AwaitCommitted(ctx, id) }()
		for replicas.DelayedProduces() == 0 {
			runtime.Gosched()
		}
		if change == nil {
			cancel()
		} else {
			change()
		}
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	end(replica.ErrTimedOut, nil)
	end(replica.ErrNotLeaderOrFollower, func() {
		moved := metadata.NewPartitionChangeRecord()
		moved.TopicID, moved.PartitionID, moved.Leader = r.TopicID, 0, 2
		apply(moved)
	})
}

// oneLog is a log directory with one log.
type oneLog struct{ log *commitlog.Log }

func (l oneLog) Log(topic.Partition) *commitlog.Log { return l.log }

func (l oneLog) Create(topic.Partition, uuid.UUID, commitlog.Config, uuid.UUID, bool) (*commitlog.Log, error) {
	return l.log, nil
}

func (l oneLog) Delete(...topic.Partition) error { return nil }

func (l oneLog) TruncateTo(_ topic.Partition, offset int64) error { return l.log.TruncateTo(offset) }

func (l oneLog) TruncateFullyAndStartAt(_ topic.Partition, offset int64) error {
	return l.log.TruncateFullyAndStartAt(offset)
}

func mustOpen(t *testing.T, o commitlog.Options) *commitlog.Log {
	t.Helper()
	l, err := commitlog.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// breakBatch turns a byte round in the records of one of several batches of one size.
func breakBatch(t *testing.T, fsys vfs.FS, path string, i, count int) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	at := size/int64(count)*int64(i) + record.HeaderSize
	b := make([]byte, 1)
	if err == nil {
		_, err = f.ReadAt(b, at)
	}
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
