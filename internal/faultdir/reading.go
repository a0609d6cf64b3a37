package faultdir

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Reading is all that clients can read of a broker.
type Reading struct {
	ClusterID  string
	Partitions map[topic.Partition]*PartitionReading
	Groups     map[string]map[topic.Partition]string // committed offset, epoch and metadata
	Configs    map[string]string                     // by topic: its id, and what is set on it
}

// A PartitionReading is what clients get of one partition.
type PartitionReading struct {
	Err         string // why there is nothing else
	Start, End  int64
	LastStable  int64
	Uncommitted []Record // with control records
	Committed   []Record
	Errors      []FetchError
	Times       map[int64]Answer   // by timestamp asked for
	Epochs      map[int32]EpochEnd // OffsetForLeaderEpoch
	Sequenced   record.Batch       // the last one of an idempotent producer, or nil
}

// A FetchError is what was wrong with the answer to a Fetch from an offset on.
type FetchError struct {
	Offset int64
	What   string
}

func (e FetchError) String() string { return fmt.Sprintf("%s at %d", e.What, e.Offset) }

// A Record as a reader gets it.
type Record struct {
	Offset    int64
	Timestamp int64
	Digest    uint64 // of all that it is
	Producer  int64  // of a transactional record or a marker, else -1
	Control   int16  // the type of a marker, else -1
}

// An EpochEnd is an answer of OffsetForLeaderEpoch: -1, -1 for an epoch that is not known.
type EpochEnd struct {
	Epoch int32
	End   int64
}

// An Answer of ListOffsets.
type Answer struct{ Offset, Timestamp int64 }

const (
	earliest     = -2
	latest       = -1
	maxTimestamp = -3

	readCommitted = 1
	// fetchSize is so small that a reader of committed records meets the transaction index at each
	// batch.
	fetchSize      = 8 << 20
	fetchSizeSmall = 512
)

// reader reads a broker.
type reader struct {
	c      *client
	result *Reading
	order  []topic.Partition
}

// Read reads all that there is. The timestamps to look up are those of the truth, or, if that is
// nil, of what is read.
func read(c *client, truth *Reading) (*Reading, error) {
	r := &reader{c: c, result: &Reading{Partitions: map[topic.Partition]*PartitionReading{}, Groups: map[string]map[topic.Partition]string{}, Configs: map[string]string{}}}
	if err := r.metadata(); err != nil {
		return nil, err
	}
	if truth == nil {
		truth = r.result
	}
	steps := []func() error{
		func() error { return r.bounds() },
		func() error { return r.fetchAll(0, fetchSize) },
		func() error { return r.fetchAll(readCommitted, fetchSizeSmall) },
		func() error { return r.times(truth) },
		func() error { return r.epochs() },
		func() error { return r.groups() },
		func() error { return r.configs() },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.result, nil
}

func codeName(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return ""
}

func (r *reader) metadata() error {
	req := kmsg.NewPtrMetadataRequest()
	resp, err := ask[*kmsg.MetadataResponse](r.c, 12, req)
	if err != nil {
		return err
	}
	if resp.ClusterID != nil {
		r.result.ClusterID = *resp.ClusterID
	}
	for _, t := range resp.Topics {
		r.result.Configs[*t.Topic] = fmt.Sprintf("id %x", t.TopicID)
		for _, p := range t.Partitions {
			id := topic.Partition{Topic: *t.Topic, Partition: p.Partition}
			r.result.Partitions[id] = &PartitionReading{Err: codeName(cmp.Or(t.ErrorCode, p.ErrorCode))}
			r.order = append(r.order, id)
		}
	}
	slices.SortFunc(r.order, topic.Partition.Compare)
	return nil
}

// list asks ListOffsets one thing about each partition that has not failed.
func (r *reader) list(isolation int8, timestamp func(topic.Partition) (int64, bool), take func(topic.Partition, *PartitionReading, Answer)) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	for _, id := range r.order {
		at, ok := timestamp(id)
		if !ok || r.result.Partitions[id].Err != "" {
			continue
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = id.Partition, at
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != id.Topic {
			req.Topics = append(req.Topics, kmsg.ListOffsetsRequestTopic{Topic: id.Topic})
		}
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	if len(req.Topics) == 0 {
		return nil
	}
	resp, err := ask[*kmsg.ListOffsetsResponse](r.c, 7, req)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			id := topic.Partition{Topic: t.Topic, Partition: p.Partition}
			got := r.result.Partitions[id]
			if p.ErrorCode != 0 {
				p.Offset, p.Timestamp = -1000-int64(p.ErrorCode), -1
			}
			if at, _ := timestamp(id); p.ErrorCode != 0 && (at == earliest || at == latest) {
				got.Err = codeName(p.ErrorCode)
				continue
			}
			take(id, got, Answer{p.Offset, p.Timestamp})
		}
	}
	return nil
}

func (r *reader) bounds() error {
	f := func(isolation int8, at int64, take func(*PartitionReading, int64)) error {
		return r.list(isolation, func(topic.Partition) (int64, bool) { return at, true },
			func(_ topic.Partition, got *PartitionReading, a Answer) { take(got, a.Offset) })
	}
	return cmp.Or(
		f(0, earliest, func(p *PartitionReading, offset int64) { p.Start = offset }),
		f(0, latest, func(p *PartitionReading, offset int64) { p.End = offset }),
		f(readCommitted, latest, func(p *PartitionReading, offset int64) { p.LastStable = offset }),
	)
}

// A cursor is where the reading of a partition has come to.
type cursor struct {
	id  topic.Partition
	got *PartitionReading
	at  int64
	end int64

	size, sizeMin int32 // to ask for: an answer need not have a whole batch of each partition
	errors        int
}

// errorsMax is after how many errors a cursor leaps.
const errorsMax = 2000

// fetchAll reads all partitions to their ends, at first all in one request.
func (r *reader) fetchAll(isolation int8, size int32) error {
	var open []*cursor
	for _, id := range r.order {
		if got := r.result.Partitions[id]; got.Err == "" && got.Start < got.End {
			open = append(open, &cursor{id: id, got: got, at: got.Start, end: got.End, size: size, sizeMin: size})
			if isolation == readCommitted {
				open[len(open)-1].end = got.LastStable
			}
		}
	}
	for len(open) > 0 {
		byID := map[topic.Partition]*cursor{}
		for _, c := range open {
			byID[c.id] = c
		}
		resp, err := ask[*kmsg.FetchResponse](r.c, 12, fetchRequest(open, isolation))
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if c := byID[topic.Partition{Topic: t.Topic, Partition: p.Partition}]; c != nil {
					c.take(&p, isolation)
				}
			}
		}
		open = slices.DeleteFunc(open, func(c *cursor) bool { return c.at >= c.end })
	}
	return nil
}

func fetchRequest(open []*cursor, isolation int8) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch, req.IsolationLevel = -1, 0, 0, 256<<20, -1, isolation
	for _, c := range open {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = c.id.Partition, c.at, c.size
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != c.id.Topic {
			req.Topics = append(req.Topics, kmsg.FetchRequestTopic{Topic: c.id.Topic})
		}
		last := &req.Topics[len(req.Topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	return req
}

// take takes the records of an answer, as consumers do, and moves on. Where there is an error it
// tries the next offset, as a person would who wants all that there is.
func (c *cursor) take(p *kmsg.FetchResponseTopicPartition, isolation int8) {
	before := c.at
	if p.ErrorCode != 0 {
		c.note("%s, isolation %d", codeName(p.ErrorCode), isolation)
		c.at++
		if c.errors++; c.errors == errorsMax { // a long gap: there may be something at the end of it
			c.at = max(c.at, c.end-errorsMax)
		}
		return
	}
	aborted := slices.SortedFunc(slices.Values(p.AbortedTransactions), func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	hidden := map[int64]bool{}
	for b, err := range record.Batches(p.RecordBatches) {
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			c.note("a bad batch, isolation %d: %v", isolation, err)
			break
		}
		for len(aborted) > 0 && aborted[0].FirstOffset <= b.LastOffset() {
			hidden[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		c.takeBatch(b, isolation, hidden)
	}
	switch {
	case c.at > before:
		c.size = c.sizeMin
	case c.size < fetchSize:
		c.size *= 4
	default:
		c.note("no records, isolation %d", isolation)
		c.at = c.end // a consumer waits here for ever
	}
}

func (c *cursor) takeBatch(b record.Batch, isolation int8, hidden map[int64]bool) {
	if b.BaseSequence() >= 0 && !b.IsTransactional() {
		c.got.Sequenced = b
	}
	for rec, err := range b.Records() {
		if err != nil {
			c.note("a bad record in the batch up to %d: %v", b.LastOffset(), err)
			break
		}
		if rec.Offset < c.at || rec.Offset >= c.end {
			continue
		}
		r := Record{rec.Offset, rec.Timestamp, digest(rec), -1, -1}
		if b.IsTransactional() {
			r.Producer = b.ProducerID()
		}
		if b.IsControl() {
			r.Control = -2
			if len(rec.Key) >= 4 {
				r.Control = int16(binary.BigEndian.Uint16(rec.Key[2:]))
			}
		}
		switch {
		case isolation != readCommitted:
			c.got.Uncommitted = append(c.got.Uncommitted, r)
		case b.IsControl():
		case !b.IsTransactional() || !hidden[b.ProducerID()]:
			c.got.Committed = append(c.got.Committed, r)
		}
		if b.IsControl() && r.Control == 0 {
			delete(hidden, b.ProducerID())
		}
	}
	c.at = max(c.at, b.NextOffset())
}

// notesMax bounds what is noted of one partition.
const notesMax = 10

func (c *cursor) note(format string, args ...any) {
	if len(c.got.Errors) < notesMax {
		c.got.Errors = append(c.got.Errors, FetchError{c.at, fmt.Sprintf(format, args...)})
	}
}

func digest(r record.Record) uint64 {
	h := fnv.New64a()
	put := func(b []byte) {
		fmt.Fprintf(h, "%d %t ", len(b), b == nil)
		h.Write(b)
	}
	fmt.Fprintf(h, "%d %d %v ", r.Offset, r.Timestamp, r.TimestampType)
	put(r.Key)
	put(r.Value)
	for _, header := range r.Headers {
		put([]byte(header.Key))
		put(header.Value)
	}
	return h.Sum64()
}

// timesMax is how many timestamps of a partition are looked up.
const timesMax = 6

// times looks up timestamps.
func (r *reader) times(truth *Reading) error {
	queries := map[topic.Partition][]int64{}
	for id, p := range truth.Partitions {
		queries[id] = queriesOf(p)
	}
	for i := range timesMax {
		at := func(id topic.Partition) (int64, bool) {
			if q := queries[id]; i < len(q) {
				return q[i], true
			}
			return 0, false
		}
		err := r.list(0, at, func(id topic.Partition, got *PartitionReading, a Answer) {
			if got.Times == nil {
				got.Times = map[int64]Answer{}
			}
			q, _ := at(id)
			got.Times[q] = a
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// queriesOf chooses timestamps: the largest, and some of records and between them.
func queriesOf(p *PartitionReading) []int64 {
	list := []int64{maxTimestamp}
	n := len(p.Uncommitted)
	for i := range min(n, timesMax-1) {
		t := p.Uncommitted[i*(n-1)/max(1, min(n, timesMax-1)-1)].Timestamp + int64(i%2)
		if t >= 0 && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// epochsMax is the largest leader epoch that is asked for.
const epochsMax = 5

func (r *reader) epochs() error {
	for epoch := range int32(epochsMax) {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		for _, id := range r.order {
			if r.result.Partitions[id].Err != "" {
				continue
			}
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = id.Partition, -1, epoch
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != id.Topic {
				req.Topics = append(req.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: id.Topic})
			}
			last := &req.Topics[len(req.Topics)-1]
			last.Partitions = append(last.Partitions, p)
		}
		resp, err := ask[*kmsg.OffsetForLeaderEpochResponse](r.c, 4, req)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				got := r.result.Partitions[topic.Partition{Topic: t.Topic, Partition: p.Partition}]
				if got.Epochs == nil {
					got.Epochs = map[int32]EpochEnd{}
				}
				got.Epochs[epoch] = EpochEnd{p.LeaderEpoch, p.EndOffset}
			}
		}
	}
	return nil
}

// groups reads all committed offsets, when the coordinator has loaded them.
func (r *reader) groups() error {
	for {
		clear(r.result.Groups)
		loading, err := r.tryGroups()
		if err != nil || !loading {
			return err
		}
		time.Sleep(time.Millisecond) // the deadline of the connection ends it
	}
}

func (r *reader) tryGroups() (loading bool, err error) {
	list, err := ask[*kmsg.ListGroupsResponse](r.c, 4, kmsg.NewPtrListGroupsRequest())
	if err != nil {
		return false, err
	}
	if loading = list.ErrorCode == kerr.CoordinatorLoadInProgress.Code; list.ErrorCode != 0 {
		r.result.Groups["ListGroups: "+codeName(list.ErrorCode)] = nil
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	for _, g := range list.Groups {
		q := kmsg.NewOffsetFetchRequestGroup()
		q.Group = g.Group
		req.Groups = append(req.Groups, q)
		r.result.Groups[g.Group] = map[topic.Partition]string{}
	}
	if len(req.Groups) == 0 {
		return loading, nil
	}
	resp, err := ask[*kmsg.OffsetFetchResponse](r.c, 8, req)
	if err != nil {
		return false, err
	}
	for _, g := range resp.Groups {
		offsets := r.result.Groups[g.Group]
		if loading = loading || g.ErrorCode == kerr.CoordinatorLoadInProgress.Code; g.ErrorCode != 0 {
			offsets[topic.Partition{Topic: codeName(g.ErrorCode)}] = ""
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				metadata := ""
				if p.Metadata != nil {
					metadata = *p.Metadata
				}
				offsets[topic.Partition{Topic: t.Topic, Partition: p.Partition}] = fmt.Sprintf("%s%d (epoch %d) %q", codeName(p.ErrorCode), p.Offset, p.LeaderEpoch, metadata)
			}
		}
	}
	return loading, nil
}

// configs reads what is set on topics and on all brokers.
func (r *reader) configs() error {
	const topics, brokers = 2, 4
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range slices.Sorted(maps.Keys(r.result.Configs)) {
		req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: topics, ResourceName: name})
	}
	req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: brokers})
	resp, err := ask[*kmsg.DescribeConfigsResponse](r.c, 4, req)
	if err != nil {
		return err
	}
	for _, res := range resp.Resources {
		var set []string
		for _, c := range res.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig || c.Source == kmsg.ConfigSourceDynamicDefaultBrokerConfig {
				value := "secret"
				if c.Value != nil {
					value = *c.Value
				}
				set = append(set, c.Name+"="+value)
			}
		}
		slices.Sort(set)
		r.result.Configs[res.ResourceName] += fmt.Sprint(" ", codeName(res.ErrorCode), set)
	}
	return nil
}

// partitions lists those of a reading in order.
func (r *Reading) partitions() []topic.Partition {
	return slices.SortedFunc(maps.Keys(r.Partitions), topic.Partition.Compare)
}
