package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrDamaged says that Consume has passed by offsets that the broker could not read.
var ErrDamaged = errors.New("there is damage: not all records could be read")

// passBy goes on behind the damage that a partition has where it is read, and names it. The broker
// says no more than that an offset cannot be read.
func (c *consumer) passBy(ctx context.Context, partition int32) error {
	admin := kadm.NewClient(c.client)
	at, err := c.position(ctx, admin, partition)
	if err != nil {
		return err
	}
	ends, err := c.o.listed(c.o.listEnds(ctx, admin))
	if err != nil {
		return err
	}
	p, err := newProber(ctx, c, admin, partition)
	if err != nil {
		return err
	}
	first, next, err := findDamage(at, ends[partition], p.probe)
	if err != nil || first >= next {
		return err
	}
	c.damaged = true
	c.skip(partition, next)
	clear := ""
	if c.o.Progress != nil {
		clear = "\r\x1b[K"
	}
	_, err = fmt.Fprintf(c.o.Warnings, "%sdamage: topic %s partition %d: offsets %d-%d cannot be read: %v\n",
		clear, c.o.Topic, partition, first, next-1, kerr.CorruptMessage.Message)
	return err
}

// skip makes a partition go on at an offset.
func (c *consumer) skip(partition int32, next int64) {
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.o.Topic: {partition: {Epoch: -1, Offset: next}}})
	c.next[partition] = next
	if end, ok := c.ends[partition]; ok && next >= end {
		delete(c.ends, partition)
	}
}

// position is the offset that a partition is read at, or one below it that has no record.
func (c *consumer) position(ctx context.Context, admin *kadm.Client, partition int32) (int64, error) {
	if at, ok := c.next[partition]; ok {
		return at, nil
	}
	if o, ok := c.client.CommittedOffsets()[c.o.Topic][partition]; ok && o.Offset >= 0 {
		return o.Offset, nil
	}
	starts, _, err := c.o.positions(ctx, admin)
	return starts[partition].EpochOffset().Offset, err
}

// singleSteps is how many offsets behind damage are tried one by one. Where it is longer, readable
// records between two pieces of it may be passed by, and are named with it.
const singleSteps = 1000

// A probe asks for what is at an offset: the offset behind the batches that come, or readable is
// false.
type probe func(at int64) (next int64, readable bool, err error)

// findDamage returns the first offset from at on that cannot be read, and the next one behind it that
// can: end if there is none. Both are end if nothing is damaged.
func findDamage(at, end int64, ask probe) (first, next int64, err error) {
	for first = at; first < end; {
		behind, readable, err := ask(first)
		if err != nil {
			return 0, 0, err
		}
		if !readable {
			next, err = findReadable(first, end, ask)
			return first, next, err
		}
		if behind <= first { // nothing there up to the end
			break
		}
		first = behind
	}
	return end, end, nil
}

// findReadable returns an offset above bad that can be read, with one in front of it that cannot. It
// tries singleSteps offsets, then those at growing distances, and looks between the last two.
func findReadable(bad, end int64, ask probe) (int64, error) {
	step := int64(1)
	for n := 1; end-bad > step; n++ {
		_, readable, err := ask(bad + step)
		if err != nil {
			return 0, err
		}
		if readable {
			return bisect(bad, bad+step, ask)
		}
		bad += step
		if n >= singleSteps {
			step *= 2
		}
	}
	return bisect(bad, end, ask)
}

// bisect narrows a stretch down that begins with a bad offset and ends with a good one.
func bisect(bad, good int64, ask probe) (int64, error) {
	for good-bad > 1 {
		middle := bad + (good-bad)/2
		_, readable, err := ask(middle)
		if err != nil {
			return 0, err
		}
		if readable {
			good = middle
		} else {
			bad = middle
		}
	}
	return good, nil
}

// A prober asks the leader of a partition for single batches.
type prober struct {
	ctx       context.Context
	leader    *kgo.Broker
	topic     kadm.TopicDetail
	partition int32
	isolation int8
}

func newProber(ctx context.Context, c *consumer, admin *kadm.Client, partition int32) (*prober, error) {
	topics, err := admin.ListTopics(ctx, c.o.Topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return nil, err
	}
	p := &prober{ctx: ctx, topic: topics[c.o.Topic], partition: partition}
	p.leader = c.client.Broker(int(p.topic.Partitions[partition].Leader))
	if c.o.ReadCommitted {
		p.isolation = 1
	}
	return p, nil
}

func (p *prober) probe(at int64) (int64, bool, error) {
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.Partition, fp.FetchOffset, fp.PartitionMaxBytes = p.partition, at, 1 // which is one batch
	ft := kmsg.NewFetchRequestTopic()
	ft.Topic, ft.TopicID, ft.Partitions = p.topic.Topic, p.topic.ID, []kmsg.FetchRequestTopicPartition{fp}
	request := kmsg.NewPtrFetchRequest()
	request.MaxBytes, request.IsolationLevel, request.Topics = 1, p.isolation, []kmsg.FetchRequestTopic{ft}
	response, err := p.leader.RetriableRequest(p.ctx, request)
	if err != nil {
		return 0, false, err
	}
	fetched := response.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetched.ErrorCode); err != nil {
		return 0, false, err
	}
	if len(fetched.Topics) != 1 || len(fetched.Topics[0].Partitions) != 1 {
		return 0, false, fmt.Errorf("topic %s partition %d: the broker answers for another partition", p.topic.Topic, p.partition)
	}
	answer := fetched.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil && err != kerr.CorruptMessage {
		return 0, false, fmt.Errorf("topic %s partition %d offset %d: %w", p.topic.Topic, p.partition, at, err)
	}
	return behind(answer.RecordBatches), answer.ErrorCode == 0, nil
}

// behind is the offset behind the first batch of a set, 0 if there is none.
func behind(set []byte) int64 {
	const magic, lastDelta, header = 16, 23, 61
	if len(set) <= magic {
		return 0
	}
	base := int64(binary.BigEndian.Uint64(set))
	if set[magic] < 2 || len(set) < header { // a message has one offset, that of its last record
		return base + 1
	}
	return base + int64(binary.BigEndian.Uint32(set[lastDelta:])) + 1
}
