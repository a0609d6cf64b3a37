package replica

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// scarceLogs cannot create logs as long as there is an error.
type scarceLogs struct {
	Logs
	err error
}

func (l *scarceLogs) Create(p topic.Partition, id uuid.UUID, c commitlog.Config, dir uuid.UUID, isNew bool) (*commitlog.Log, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.Logs.Create(p, id, c, dir, isNew)
}

// A partition whose log could not be created for want of something has it as soon as somebody asks
// and there is enough; one whose disk has failed has not.
func TestLogIsCreatedLate(t *testing.T) {
	f := func(cause error, later bool) {
		t.Helper()
		b := newBench(t, nil)
		scarce := &scarceLogs{Logs: b.o.Logs, err: cause}
		b.o.Logs = scarce
		named, p := metadata.NewTopicRecord(), metadata.NewPartitionRecord()
		named.Name, named.TopicID = "orders", topicID(1)
		p.TopicID, p.Leader, p.Replicas, p.ISR, p.LeaderEpoch = named.TopicID, testNode, []int32{testNode}, []int32{testNode}, 5
		p.PartitionID, p.PartitionEpoch, p.Directories = 0, 0, make([]uuid.UUID, 1)
		img, delta, err := b.img.Apply([]metadata.Record{named, p}, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		b.img = img
		if err := b.Apply(delta); !errors.Is(err, cause) {
			t.Fatalf("got %v", err)
		}
		partition := b.partition("orders")
		appendOne := func() error {
			_, err := partition.Append(set(t, "v"), AppendOptions{Origin: record.Client, LeaderEpoch: NoEpoch})
			return err
		}
		wantError(t, appendOne(), ErrOffline)
		scarce.err = nil
		if partition.late != nil {
			partition.late.tried.Store(time.Now().Add(-latePause).UnixNano())
		}
		err = appendOne()
		if later != (err == nil) {
			t.Fatalf("%v: later got %v", cause, err)
		}
		if !later {
			return
		}
		log, err := partition.Log()
		if err != nil || log.Offsets().HighWatermark != 1 || log.LatestEpoch() != 5 {
			t.Errorf("%v: log %v, %v", cause, log.Offsets(), err)
		}
		b.lead(1, testNode, testNode)
		if log.LatestEpoch() != 6 {
			t.Errorf("%v: epoch %d, want 6", cause, log.LatestEpoch())
		}
	}
	f(syscall.EMFILE, true)
	f(syscall.ENOSPC, true)
	f(syscall.EIO, false)
}

func TestLateIsTriedOnceASecond(t *testing.T) {
	l := &lateLog{}
	now := time.UnixMilli(1_000_000)
	f := func(at time.Duration, want bool) {
		t.Helper()
		if got := l.due(now.Add(at)); got != want {
			t.Errorf("after %v: got %v", at, got)
		}
	}
	f(0, true)
	f(0, false)
	f(latePause-1, false)
	f(latePause, true)
}
