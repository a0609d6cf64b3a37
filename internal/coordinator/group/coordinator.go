package group

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Options say what a Coordinator works with.
type Options struct {
	Config Config
	Log    coordinator.Log // the partitions of __consumer_offsets
	// Partitions is the partition count of __consumer_offsets as the metadata has it, 0
	// while the topic does not exist.
	Partitions func() int32
	MaxBatch   int              // max.message.bytes of the topic; default 1 MiB
	Codec      record.Codec     // offsets.topic.compression.codec
	Now        func() time.Time // default time.Now
	// Random returns the randomness of the member ids of a partition; it never fails. Nil is the host's.
	Random func(partition int32) io.Reader
	Logger *slog.Logger // nil: no log
}

// A Coordinator is this broker's part of the group coordinator. All methods may be called
// concurrently. Errors are the refusals of this package and of coordinator, or an AppendError.
type Coordinator struct {
	runtime    *coordinator.Runtime[*Shard]
	partitions func() int32
}

// New returns a coordinator that leads nothing yet.
func New(o Options) *Coordinator {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = func(int32) io.Reader { return random.Host("members") }
	}
	return &Coordinator{
		partitions: o.Partitions,
		runtime: coordinator.New(coordinator.Options[*Shard]{
			Topic:    topic.ConsumerOffsets,
			Log:      o.Log,
			New:      o.newShard,
			Now:      o.Now,
			MaxBatch: o.MaxBatch,
			Codec:    o.Codec,
			Logger:   o.Logger,
		}),
	}
}

func (o *Options) newShard(partition int32) *Shard {
	source := o.Random(partition)
	return NewShard(o.Config, func() string { return newID(source) }, o.Logger)
}

// newID returns a random UUID in the usual notation, as in the member ids of Kafka.
func newID(random io.Reader) string {
	u := uuid.From(random)
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Lead makes this broker the coordinator of a partition of __consumer_offsets. It returns
// at once; groups of the partition answer ErrLoading until its log has been read.
func (c *Coordinator) Lead(partition, epoch int32) { c.runtime.Lead(partition, epoch) }

// Resign ends that.
func (c *Coordinator) Resign(partition, epoch int32) { c.runtime.Resign(partition, epoch) }

// TopicsDeleted drops the offsets of topics that are gone. It does not wait for that.
func (c *Coordinator) TopicsDeleted(names []string) {
	for _, p := range c.runtime.Partitions() {
		// A shard that has stopped meanwhile is somebody else's.
		_ = c.runtime.Submit(p, coordinator.Event[*Shard]{
			Run:     func(s *Shard, t *coordinator.Turn) { s.DropTopics(t, names) },
			Fail:    func(error) {},
			Alone:   true,
			Patient: true,
		})
	}
}

// Close answers what waits, and stops.
func (c *Coordinator) Close() { c.runtime.Close() }

// step is what a shard does for a request.
type step[R any] func(s *Shard, t *coordinator.Turn, reply func(R))

// ask runs a step in the shard of a group. A request whose connection is going away is
// told to look for the coordinator again, should anybody still listen.
func ask[R any](ctx context.Context, c *Coordinator, partition int32, with coordinator.Company, f step[R]) (R, error) {
	r, err := coordinator.Ask(ctx, c.runtime, partition, with, f)
	if ctx.Err() != nil && err == ctx.Err() {
		err = coordinator.ErrClosed
	}
	return r, err
}

// partitionOf is the shard of a group.
func (c *Coordinator) partitionOf(group string) (int32, error) {
	count := c.partitions()
	if count <= 0 {
		return 0, ErrCoordinatorNotAvailable
	}
	return topic.PartitionFor(group, count), nil
}

// partitionOfMembers is partitionOf for what needs a group with a name, as members do.
func (c *Coordinator) partitionOfMembers(group string) (int32, error) {
	if group == "" {
		return 0, ErrInvalidGroupID
	}
	return c.partitionOf(group)
}

// Join answers JoinGroup. It blocks until the generation is complete.
func (c *Coordinator) Join(ctx context.Context, r *JoinRequest) *JoinResponse {
	p, err := c.partitionOfMembers(r.Group)
	if err != nil {
		return joinFailure(r.MemberID, err)
	}
	resp, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, t *coordinator.Turn, reply func(*JoinResponse)) {
		s.Join(t, r, reply)
	})
	if err != nil {
		return joinFailure(r.MemberID, err)
	}
	return resp
}

// Sync answers SyncGroup. It blocks until the leader's assignment is there.
func (c *Coordinator) Sync(ctx context.Context, r *SyncRequest) *SyncResponse {
	p, err := c.partitionOfMembers(r.Group)
	if err != nil {
		return &SyncResponse{Err: err}
	}
	resp, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, t *coordinator.Turn, reply func(*SyncResponse)) {
		s.Sync(t, r, reply)
	})
	if err != nil {
		return &SyncResponse{Err: err}
	}
	return resp
}

// Heartbeat answers Heartbeat. While the group is being loaded all is well: its members
// are to survive that.
func (c *Coordinator) Heartbeat(ctx context.Context, group, memberID string, instanceID *string, generation int32) error {
	p, err := c.partitionOfMembers(group)
	if err != nil {
		return err
	}
	refusal, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, t *coordinator.Turn, reply func(error)) {
		reply(s.Heartbeat(t, group, memberID, instanceID, generation))
	})
	switch err {
	case nil:
		return refusal
	case coordinator.ErrLoading:
		return nil
	}
	return err
}

// answers are errors for each of several things, or one for all.
type answers struct {
	errs []error
	err  error
}

// Leave answers LeaveGroup: with an error per member, or one for all.
func (c *Coordinator) Leave(ctx context.Context, group string, leavers []Leaver) ([]error, error) {
	p, err := c.partitionOfMembers(group)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, p, coordinator.Shared, func(s *Shard, t *coordinator.Turn, reply func([]error)) {
		reply(s.Leave(t, group, leavers))
	})
}

// unless returns the answers, or err if there is none because of it.
func (a answers) unless(err error) ([]error, error) {
	if err != nil {
		return nil, err
	}
	return a.errs, a.err
}

// Commit answers OffsetCommit: with an error per offset, or one for all.
func (c *Coordinator) Commit(ctx context.Context, r *CommitRequest) ([]error, error) {
	p, err := c.partitionOf(r.Group)
	if err != nil {
		return nil, err
	}
	a, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, t *coordinator.Turn, reply func(answers)) {
		s.Commit(t, r, func(errs []error, err error) { reply(answers{errs, err}) })
	})
	return a.unless(err)
}

// Fetch answers OffsetFetch for one group.
func (c *Coordinator) Fetch(ctx context.Context, r *FetchRequest) ([]TopicOffsets, error) {
	p, err := c.partitionOf(r.Group)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, p, coordinator.Shared, func(s *Shard, _ *coordinator.Turn, reply func([]TopicOffsets)) {
		reply(s.Fetch(r))
	})
}

// List lists the groups of all partitions that this broker leads. With an error the list
// is incomplete.
func (c *Coordinator) List(ctx context.Context) ([]Listing, error) {
	var list []Listing
	for _, p := range c.runtime.Partitions() {
		part, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, _ *coordinator.Turn, reply func([]Listing)) {
			reply(s.List())
		})
		if err != nil {
			return list, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// Describe answers DescribeGroups for one group.
func (c *Coordinator) Describe(ctx context.Context, group string) Description {
	p, err := c.partitionOf(group)
	if err != nil {
		return Description{Err: err, Group: group}
	}
	d, err := ask(ctx, c, p, coordinator.Shared, func(s *Shard, _ *coordinator.Turn, reply func(Description)) {
		reply(s.Describe(group))
	})
	if err != nil {
		return Description{Err: err, Group: group}
	}
	return d
}

// Delete answers DeleteGroups, with an error per group.
func (c *Coordinator) Delete(ctx context.Context, groups []string) []error {
	errs := make([]error, len(groups))
	byPartition := make(map[int32][]int) // indexes of groups
	for i, g := range groups {
		p, err := c.partitionOf(g)
		if err != nil {
			errs[i] = err
			continue
		}
		byPartition[p] = append(byPartition[p], i)
	}
	for p, indexes := range byPartition {
		ids := make([]string, len(indexes))
		for i, index := range indexes {
			ids[i] = groups[index]
		}
		results, err := ask(ctx, c, p, coordinator.Alone, func(s *Shard, t *coordinator.Turn, reply func([]error)) {
			s.Delete(t, ids, reply)
		})
		for i, index := range indexes {
			errs[index] = err
			if err == nil {
				errs[index] = results[i]
			}
		}
	}
	return errs
}

// DeleteOffsets answers OffsetDelete: with an error per topic, or one for all.
func (c *Coordinator) DeleteOffsets(ctx context.Context, group string, topics []TopicPartitions) ([]error, error) {
	p, err := c.partitionOfMembers(group)
	if err != nil {
		return nil, err
	}
	a, err := ask(ctx, c, p, coordinator.Alone, func(s *Shard, t *coordinator.Turn, reply func(answers)) {
		s.DeleteOffsets(t, group, topics, func(errs []error, err error) { reply(answers{errs, err}) })
	})
	return a.unless(err)
}
