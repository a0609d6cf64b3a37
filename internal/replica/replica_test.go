package replica

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testNode = 1

// A bench is a Manager over real logs in memory, and the metadata that it was given.
type bench struct {
	*Manager
	t     *testing.T
	logs  *logdir.Manager
	img   *metadata.Image
	roles []string // what OnChange was told
}

func newBench(t *testing.T, change func(*commitlog.Config)) *bench {
	t.Helper()
	return openBench(t, vfs.NewMem(), change)
}

// openBench is newBench with what is on a file system.
func openBench(t *testing.T, fsys vfs.FS, change func(*commitlog.Config)) *bench {
	t.Helper()
	cfg := logdir.DefaultConfig()
	cfg.FS, cfg.Dirs, cfg.NodeID = fsys, []string{"data"}, testNode
	logs, err := logdir.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.Load(t.Context(), logdir.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { logs.Close(context.Background()) })
	logConfig := commitlog.DefaultConfig()
	if change != nil {
		change(&logConfig)
	}
	b := &bench{t: t, logs: logs, img: metadata.NewImage("test-cluster")}
	b.Manager = NewManager(Options{
		NodeID: testNode, Logs: logs,
		LogConfig: func(string) commitlog.Config { return logConfig },
		OnChange: func(p topic.Partition, r *PartitionState) {
			b.roles = append(b.roles, fmt.Sprintf("%v leading=%t removed=%t epoch=%d", p, r.Leading, r.Removed, r.LeaderEpoch))
		},
	})
	return b
}

func (b *bench) apply(records ...metadata.Record) {
	b.t.Helper()
	img, delta, err := b.img.Apply(records, b.img.Offset+int64(len(records)), 1)
	if err != nil {
		b.t.Fatal(err)
	}
	b.img = img
	if err := b.Apply(delta); err != nil {
		b.t.Fatal(err)
	}
}

func topicID(n byte) uuid.UUID { return uuid.UUID{6: 0x40, 15: n} }

// create adds a topic with one partition.
func (b *bench) create(name string, id byte, leader int32, replicas, isr []int32) {
	b.t.Helper()
	t := metadata.NewTopicRecord()
	t.Name, t.TopicID = name, topicID(id)
	p := metadata.NewPartitionRecord()
	p.PartitionID, p.TopicID, p.Leader, p.Replicas, p.ISR = 0, t.TopicID, leader, replicas, isr
	p.LeaderEpoch, p.PartitionEpoch = 5, 0
	p.Directories = make([]uuid.UUID, len(replicas))
	b.apply(t, p)
}

// leaderUnchanged in a PartitionChangeRecord keeps the leader and its epoch.
const leaderUnchanged = -2

// lead makes a broker the leader in the next epochs.
func (b *bench) lead(id byte, leader int32, isr ...int32) {
	b.t.Helper()
	c := metadata.NewPartitionChangeRecord()
	c.TopicID, c.PartitionID, c.Leader, c.ISR = topicID(id), 0, leader, isr
	b.apply(c)
}

func (b *bench) partition(name string) *Partition {
	b.t.Helper()
	p, err := b.Partition(topic.Partition{Topic: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func set(t *testing.T, values ...string) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{})
	for i, v := range values {
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

var client = AppendOptions{Origin: record.Client, LeaderEpoch: NoEpoch}

func TestAppendMovesHighWatermark(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	p := b.partition("t")
	info, err := p.Append(set(t, "a", "b"), client)
	if err != nil {
		t.Fatal(err)
	}
	log, err := p.Log()
	if err != nil {
		t.Fatal(err)
	}
	if hw := log.Offsets().HighWatermark; info.LastOffset != 1 || hw != 2 {
		t.Errorf("got last offset %d and high watermark %d, want 1 and 2", info.LastOffset, hw)
	}
	if done, err := p.Committed(2); !done || err != nil {
		t.Errorf("Committed = %t, %v", done, err)
	}
}

// KIP-966: with too few replicas in sync, acks=all is refused and the high watermark stands.
func TestTooFewInSync(t *testing.T) {
	b := newBench(t, func(c *commitlog.Config) { c.MinInsyncReplicas = 2 })
	b.create("t", 1, testNode, []int32{testNode, 2}, []int32{testNode})
	p := b.partition("t")
	all := client
	all.AllInSync = true
	_, err := p.Append(set(t, "a"), all)
	wantError(t, err, ErrNotEnoughReplicas)
	if _, err := p.Append(set(t, "a"), client); err != nil {
		t.Fatal(err)
	}
	if done, _ := p.Committed(1); done {
		t.Error("the record counts as committed")
	}
	wantError(t, p.AwaitCommitted(t.Context(), 1, time.Now().Add(time.Millisecond)), ErrTimedOut)
}

// min.insync.replicas counts for no more than the replicas that there are.
func TestMinInsyncReplicasAboveReplicas(t *testing.T) {
	b := newBench(t, func(c *commitlog.Config) { c.MinInsyncReplicas = 3 })
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	all := client
	all.AllInSync = true
	if _, err := b.partition("t").Append(set(t, "a"), all); err != nil {
		t.Error(err)
	}
}

// A produce that waits for a follower ends when the follower leaves the in-sync replicas,
// or when the leadership goes.
func TestAwaitCommitted(t *testing.T) {
	f := func(want error, change func(*bench)) {
		t.Helper()
		b := newBench(t, nil)
		b.create("t", 1, testNode, []int32{testNode, 2}, []int32{testNode, 2})
		p := b.partition("t")
		if _, err := p.Append(set(t, "a"), client); err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() { result <- p.AwaitCommitted(t.Context(), 1, time.Now().Add(time.Minute)) }()
		for p.produces.Len() == 0 {
			runtime.Gosched()
		}
		change(b)
		wantError(t, <-result, want)
		if p.produces.Len() != 0 {
			t.Error("the partition still has a waiting produce")
		}
	}
	f(nil, func(b *bench) { b.lead(1, leaderUnchanged, testNode) })
	f(ErrNotLeaderOrFollower, func(b *bench) { b.lead(1, 2, testNode, 2) })
	f(ErrUnknownTopicOrPartition, func(b *bench) {
		r := metadata.NewRemoveTopicRecord()
		r.TopicID = topicID(1)
		b.apply(r)
	})
}

func TestLeadershipAndEpochs(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode, 2}, []int32{testNode, 2})
	p := b.partition("t")
	inEpoch := func(epoch int32) error {
		_, err := p.Append(set(t, "a"), AppendOptions{Origin: record.Coordinator, LeaderEpoch: epoch})
		return err
	}
	wantError(t, inEpoch(4), ErrFencedLeaderEpoch)
	wantError(t, inEpoch(6), ErrUnknownLeaderEpoch)
	wantError(t, inEpoch(5), nil)
	b.lead(1, 2, testNode, 2)
	wantError(t, inEpoch(NoEpoch), ErrNotLeaderOrFollower)
	wantError(t, inEpoch(5), ErrFencedLeaderEpoch)
	b.lead(1, testNode, testNode, 2)
	wantError(t, inEpoch(7), nil)
	if epoch, end, err := p.EndOffset(NoEpoch, 5); err != nil || epoch != 5 || end != 1 {
		t.Errorf("EndOffset(5) = %d, %d, %v, want 5, 1", epoch, end, err)
	}
	want := "[t-0 leading=true removed=false epoch=5 t-0 leading=false removed=false epoch=6 t-0 leading=true removed=false epoch=7]"
	if got := fmt.Sprint(b.roles); got != want {
		t.Errorf("got roles\n%s, want\n%s", got, want)
	}
}

func TestMissing(t *testing.T) {
	b := newBench(t, nil)
	b.create("here", 1, testNode, []int32{testNode}, []int32{testNode})
	b.create("there", 2, 2, []int32{2}, []int32{2})
	f := func(name string, partition int32, want error) {
		t.Helper()
		_, err := b.Partition(topic.Partition{Topic: name, Partition: partition})
		wantError(t, err, want)
	}
	f("here", 0, nil)
	f("here", 1, ErrUnknownTopicOrPartition)
	f("here", -1, ErrUnknownTopicOrPartition)
	f("there", 0, ErrNotLeaderOrFollower)
	f("nowhere", 0, ErrUnknownTopicOrPartition)
	wantError(t, b.MissingID(topicID(9), 0), ErrUnknownTopicID)
	wantError(t, b.MissingID(topicID(2), 0), ErrNotLeaderOrFollower)
	if got := b.TopicByID(topicID(1)); got == nil || got.Name != "here" {
		t.Errorf("TopicByID = %v", got)
	}
}

// A topic that is deleted and created again under its name starts with an empty log.
func TestRecreate(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	old := b.partition("t")
	if _, err := old.Append(set(t, "a"), client); err != nil {
		t.Fatal(err)
	}
	r := metadata.NewRemoveTopicRecord()
	r.TopicID = topicID(1)
	b.apply(r)
	_, err := old.Append(set(t, "b"), client)
	wantError(t, err, ErrUnknownTopicOrPartition)
	b.create("t", 2, testNode, []int32{testNode}, []int32{testNode})
	log, err := b.partition("t").Log()
	if err != nil {
		t.Fatal(err)
	}
	if end := log.Offsets().End; end != 0 {
		t.Errorf("the new topic ends at %d, want 0", end)
	}
}

// What a request remembers of the topic it found last is not taken for another one, nor for what is gone.
func TestFetchAnotherTopic(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	b.create("t", 1, testNode, one, one)
	b.create("u", 2, testNode, one, one)
	req := &FetchRequest{MaxBytes: 1000, MinBytes: 7}
	f := func(name string, id byte, want *Partition, wantErr error) {
		t.Helper()
		req.Reset()
		if req.MinBytes != 0 {
			t.Error("Reset left something")
		}
		f := &FetchPartition{Name: []byte(name), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1}
		if name == "" {
			f.Name, f.TopicID = nil, topicID(id)
		}
		if err := b.Fetch(t.Context(), req, []*FetchPartition{f}); err != nil {
			t.Fatal(err)
		}
		wantError(t, f.Result.Err, wantErr)
		if f.Partition() != want {
			t.Errorf("%s %d: got partition %v, want %v", name, id, f.Partition(), want)
		}
		f.Result.Read.Slice.Release()
	}
	f("t", 0, b.partition("t"), nil)
	f("t", 0, b.partition("t"), nil)
	f("u", 0, b.partition("u"), nil)
	f("", 1, b.partition("t"), nil)
	f("", 1, b.partition("t"), nil)
	f("", 2, b.partition("u"), nil)
	f("v", 0, nil, ErrUnknownTopicOrPartition)
	f("u", 0, b.partition("u"), nil)
	gone := metadata.NewRemoveTopicRecord()
	gone.TopicID = topicID(2)
	b.apply(gone)
	f("u", 0, nil, ErrUnknownTopicOrPartition)
	b.create("u", 3, testNode, one, one)
	f("u", 0, b.partition("u"), nil)
	f("", 2, nil, ErrUnknownTopicID)
	f("", 3, b.partition("u"), nil)
	other := b.partition("t")
	f("t", 0, other, nil)
	b = newBench(t, nil) // of another broker
	b.create("t", 1, testNode, one, one)
	if b.partition("t") == other {
		t.Fatal("two brokers have one partition")
	}
	f("t", 0, b.partition("t"), nil)
}

func TestFetchSlicesAreReleased(t *testing.T) {
	b := newBench(t, nil)
	b.create("t", 1, testNode, []int32{testNode}, []int32{testNode})
	p := b.partition("t")
	if _, err := p.Append(set(t, "a"), client); err != nil {
		t.Fatal(err)
	}
	f := &FetchPartition{Name: []byte("t"), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}
	req := &FetchRequest{MinBytes: 1000, MaxBytes: 1000, MaxWait: time.Millisecond}
	parts := []*FetchPartition{f}
	if err := b.Fetch(t.Context(), req, parts); err != nil {
		t.Fatal(err)
	}
	if f.Result.Read.Slice.Size() == 0 || f.Result.Err != nil {
		t.Errorf("got %+v after the wait, want the record", f.Result)
	}
	Release(parts)
	if p.Waiting() != 0 {
		t.Error("the partition still has a waiting fetch")
	}
	failing := errors.New("no")
	req.Output = output{failing}
	wantError(t, b.Fetch(t.Context(), req, parts), failing)
}

type output struct{ err error }

func (o output) Flush() error { return o.err }
