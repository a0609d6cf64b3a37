package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// adminClientID is the client id that may write to internal topics (Kafka's
// AdminUtils.ADMIN_CLIENT_ID).
const adminClientID = "__admin_client"

// A produceWork is the work on one Produce request. The answer is written while the request
// is read: the error code and the offsets of a partition that has to wait are changed
// afterwards, at their place. It is pooled.
type produceWork struct {
	s        *Server
	listener string
	received metrics.Stopwatch
	worked   time.Duration // until it waits
	version  int16
	acks     int16
	timeout  time.Duration
	internal bool // the client may write to internal topics
	named    bool // there is a transactional id
	flexible bool

	topic       produceTopic
	place       int           // of the record set that is being worked on, in the request
	ahead       []aheadResult // of record sets that were appended beside each other, by place
	conversions int           // sets that came in another format than the log's
	failed      error         // of any partition
	twice       twiceFinder   // partitions of the request
	leader      []int32       // leaders that the answer names
	waits       []produceWait // what the answer has to wait for
}

// A produceTopic is the topic that is being worked on. Its name is a view of the request.
type produceTopic struct {
	name   []byte
	id     uuid.UUID
	hosted *replica.Topic // nil: not here
}

// A produceWait is a partition whose records are in the log and that cannot be acknowledged
// yet.
type produceWait struct {
	mark     int // of the error code in the answer
	p        *replica.Partition
	flushTo  int64 // records below it have to be on disk; 0: no matter
	required int64 // the high watermark has to be here; 0: no matter
}

var producePool = sync.Pool{New: func() any { return new(produceWork) }}

func (s *Server) produce(_ context.Context, r *Request, w *wire.Response) error {
	p := producePool.Get().(*produceWork)
	p.s, p.version, p.flexible, p.listener = s, r.Version, r.Flexible(), r.Listener
	p.internal, p.received = r.ClientID == adminClientID, r.Received
	body, err := p.check(r.Body)
	if err != nil {
		p.release()
		return err
	}
	d := wire.NewDecoder(body)
	p.run(&d, w)
	if p.version < 3 || p.conversions > 0 {
		s.noteOldClient(r, p.conversions)
	}
	switch {
	case p.acks == 0:
		w.Drop()
		if p.failed != nil {
			// The only way to tell a client that wants no answer.
			defer p.release()
			return fmt.Errorf("produce with acks=0: %w", p.failed)
		}
	case len(p.waits) > 0:
		r.BeginWait()
		p.worked = r.Worked
		w.Defer(p) // releases itself
		return nil
	}
	p.release()
	return nil
}

func (p *produceWork) release() {
	clear(p.waits)
	*p = produceWork{twice: p.twice.emptied(), leader: p.leader[:0], waits: p.waits[:0]}
	producePool.Put(p)
}

// check looks at a body from its first byte to its last, so that nothing of a broken request is
// appended, and returns one that has no partition twice.
func (p *produceWork) check(body []byte) ([]byte, error) {
	switch {
	case !p.valid(body):
		return nil, errMalformed
	case !p.twice.found():
		return body, nil
	case len(p.twice.keys) > producedTwiceMax:
		return nil, errMalformed
	}
	return produceOnce(body, p.version)
}

// valid reports whether a body is a Produce request, and notes its partitions.
func (p *produceWork) valid(body []byte) bool {
	d := wire.NewDecoder(body)
	if p.version >= 3 {
		d.String(p.flexible)
	}
	d.Int16()
	d.Int32()
	for range d.ArrayLen(p.flexible, 2) {
		p.validTopic(&d)
		if d.Bad() {
			return false
		}
	}
	if p.flexible {
		d.SkipTags()
	}
	return !d.Bad() && d.Len() == 0
}

func (p *produceWork) validTopic(d *wire.Decoder) {
	if p.version >= 13 {
		p.twice.inTopic(d.Take(16), uuid.UUID{})
	} else {
		p.twice.inTopic(d.String(p.flexible), uuid.UUID{})
	}
	for range d.ArrayLen(p.flexible, 5) {
		p.twice.add(d.Int32())
		d.Bytes(p.flexible)
		if p.flexible {
			d.SkipTags()
		}
		if d.Bad() {
			return
		}
	}
	if p.flexible {
		d.SkipTags()
	}
}

// run reads a valid request, appends, and writes the answer.
func (p *produceWork) run(d *wire.Decoder, w *wire.Response) {
	if p.version >= 3 {
		p.named = d.String(p.flexible) != nil
	}
	p.acks = d.Int16()
	p.timeout = time.Duration(d.Int32()) * time.Millisecond
	topics := d.ArrayLen(p.flexible, 2)
	w.Buf = wire.AppendArrayLen(w.Buf, topics, p.flexible)
	for t := range topics {
		p.readTopic(d)
		w.Buf = p.topic.appendTo(w.Buf, p)
		partitions := d.ArrayLen(p.flexible, 5)
		w.Buf = wire.AppendArrayLen(w.Buf, partitions, p.flexible)
		for at := range partitions {
			rest := *d
			i, set := p.readSet(d)
			if p.ahead == nil && p.isCold(i) {
				p.appendAhead(rest, partitions-at, topics-t-1)
			}
			p.partition(i, set, w)
			p.place++
		}
		if p.flexible {
			d.SkipTags()
			w.Buf = append(w.Buf, 0)
		}
	}
	if p.version >= 1 {
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, 0) // throttle time
	}
	if p.flexible {
		w.Buf = p.s.appendNodeEndpoints(w.Buf, p.leader, p.listener)
	}
}

func (p *produceWork) readTopic(d *wire.Decoder) {
	t := &p.topic
	if p.version >= 13 {
		t.name, t.id = nil, uuid.UUID(d.Take(16))
		t.hosted = p.s.Replicas.TopicByID(t.id)
		return
	}
	t.name = d.String(p.flexible)
	t.hosted = p.s.Replicas.Topic(t.name)
}

func (t *produceTopic) appendTo(b []byte, p *produceWork) []byte {
	if p.version >= 13 {
		return append(b, t.id[:]...)
	}
	return wire.AppendString(b, t.name, p.flexible)
}

// readSet reads the number of a partition and its record set.
func (p *produceWork) readSet(d *wire.Decoder) (i int32, set []byte) {
	i, set = d.Int32(), d.Bytes(p.flexible)
	if p.flexible {
		d.SkipTags()
	}
	return i, set
}

// partition appends one record set and writes the partition's part of the answer.
func (p *produceWork) partition(i int32, set []byte, w *wire.Response) {
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(i))
	mark := w.Mark()
	info, replicated, err := p.appendOnce(i, set)
	if p.topic.hosted != nil {
		countProduced(&p.topic.hosted.Stats, len(set), info, err)
	}
	if err != nil {
		p.failed = err
		p.writeError(w, i, err)
		return
	}
	if info.Converted {
		p.conversions++
	}
	w.Buf = append(w.Buf, 0, 0)
	w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(info.FirstOffset))
	if p.version >= 2 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(info.LogAppendTime))
	}
	if p.version >= 5 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(info.LogStartOffset))
	}
	switch {
	case p.flexible:
		w.Buf = append(w.Buf, 1, 0, 0) // no record errors, no message, no tags
	case p.version >= 8:
		w.Buf = append(w.Buf, 0, 0, 0, 0, 0xff, 0xff)
	}
	p.maybeWait(mark, replicated, info)
}

// maybeWait notes what the acknowledgement of an append has to wait for.
func (p *produceWork) maybeWait(mark int, partition *replica.Partition, info commitlog.AppendInfo) {
	wait := produceWait{mark: mark, p: partition}
	if p.acks != 0 {
		wait.flushTo = info.FlushTo
	}
	if p.acks == -1 {
		if done, err := partition.Committed(info.LastOffset + 1); !done || err != nil {
			wait.required = info.LastOffset + 1
		}
	}
	if wait.flushTo > 0 || wait.required > 0 {
		p.waits = append(p.waits, wait)
	}
}

// appendOnce appends a record set, unless that was done ahead.
func (p *produceWork) appendOnce(i int32, set []byte) (commitlog.AppendInfo, *replica.Partition, error) {
	if p.place < len(p.ahead) && p.ahead[p.place].done {
		r := &p.ahead[p.place]
		return r.info, r.partition, r.err
	}
	return p.append(&p.topic, i, set, p.place == 0)
}

// append appends a record set, if the time of the request allows; the first one always.
func (p *produceWork) append(t *produceTopic, i int32, set []byte, first bool) (info commitlog.AppendInfo, partition *replica.Partition, err error) {
	if p.acks < -1 || p.acks > 1 {
		return info, nil, kerr.InvalidRequiredAcks
	}
	partition, err = p.find(t, i)
	if err != nil {
		return info, nil, err
	}
	if topic.IsInternal(partition.ID().Topic) && !p.internal {
		return info, nil, errInternalTopic
	}
	if err := p.checkSet(set, partition); err != nil {
		return info, nil, err
	}
	if !first && p.isLate() {
		return info, nil, errNotBegun
	}
	info, err = partition.Append(set, replica.AppendOptions{
		Origin: record.Client, AllInSync: p.acks == -1, LeaderEpoch: replica.NoEpoch,
	})
	return info, partition, err
}

// isLate reports whether the client does not wait for the answer any more. Kafka appends all the
// same; but then the client sends again what is not acknowledged, and the next request is late as well.
func (p *produceWork) isLate() bool {
	return p.timeout > 0 && p.acks != 0 && p.received.Elapsed() > p.timeout
}

func (p *produceWork) find(t *produceTopic, i int32) (*replica.Partition, error) {
	if t.hosted != nil {
		if partition := t.hosted.Partition(i); partition != nil {
			return partition, nil
		}
	}
	if p.version >= 13 {
		return nil, p.s.Replicas.MissingID(t.id, i)
	}
	return nil, p.s.Replicas.Missing(t.name, i)
}

// Refusals of record sets for what the request's version allows.
var (
	errNotBegun      = refuse(kerr.RequestTimedOut, "the time-out of the request had passed before the records were appended")
	errInternalTopic = refuse(kerr.InvalidTopicException, "the topic is the broker's own")
	errNoBatch       = refuse(kerr.InvalidRecord, "a record set holds exactly one batch, this one is empty")
	errManyBatches   = refuse(kerr.InvalidRecord, "a record set holds exactly one batch, this one has more")
	errOldFormat     = refuse(kerr.InvalidRecord, "Produce takes batches of message format v2 only, from version 3 on")
	errZstdTooOld    = refuse(kerr.UnsupportedCompressionType, "zstd needs version 7 of Produce or later")
	errTransactional = refuse(kerr.InvalidTxnState, "no transaction is open for this batch")
	errNoTransaction = refuse(kerr.TransactionalIDAuthorizationFailed, "a transactional batch in a request without a transactional id")
)

// checkSet looks at what a record set must be for the version of the request. The rest is
// the log's business.
func (p *produceWork) checkSet(set []byte, partition *replica.Partition) error {
	if len(set) == 0 {
		return errNoBatch
	}
	batch, err := record.First(set)
	switch {
	case err != nil:
		return err
	case p.version < 7 && batch.Codec() == record.Zstd:
		return errZstdTooOld
	case batch.Magic() == 2 && batch.IsTransactional() && !p.named:
		return errNoTransaction
	case batch.Magic() == 2 && batch.IsTransactional() && formatOf(partition) == 2:
		return errTransactional // until there is a transaction coordinator
	case p.version < 3:
		return nil
	case batch.Magic() != 2:
		return errOldFormat
	case batch.Size() != len(set):
		return errManyBatches
	}
	return nil
}

// formatOf returns the message format of a partition's log.
func formatOf(p *replica.Partition) int8 {
	log, err := p.Log()
	if err != nil {
		return 2 // appending says what is wrong
	}
	return log.Config().MessageFormat
}

// code is code for a partition of this request: clients before version 4 do not know
// KAFKA_STORAGE_ERROR.
func (p *produceWork) code(err error) int16 {
	c := code(err)
	if c == kerr.KafkaStorageError.Code && p.version <= 3 {
		return kerr.NotLeaderForPartition.Code
	}
	return c
}

// writeError writes the part of a partition that failed, from the error code on.
func (p *produceWork) writeError(w *wire.Response, i int32, err error) {
	c := p.code(err)
	p.stats().countError(c)
	w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(c))
	w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // base offset
	if p.version >= 2 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // append time
	}
	if p.version >= 5 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // log start
	}
	if p.version >= 8 {
		p.writeRecordErrors(w, err)
	}
	switch {
	case !p.flexible:
	case p.version >= 10 && errors.Is(err, replica.ErrNotLeaderOrFollower):
		p.writeLeader(w, i)
	default:
		w.Buf = append(w.Buf, 0)
	}
}

func (p *produceWork) stats() *requestStats { return p.s.apis[kmsg.Produce].stats }

// countProduced counts what became of the record set of one partition.
func countProduced(stats *replica.TopicStats, size int, info commitlog.AppendInfo, err error) {
	stats.Add(replica.ProduceRequests, 1)
	if info.Converted {
		stats.Add(replica.ProduceConversions, 1)
	}
	if err == nil {
		return
	}
	stats.Add(replica.FailedProduceRequests, 1)
	switch {
	case errors.Is(err, record.ErrTooLarge), errors.Is(err, commitlog.ErrRecordListTooLarge):
		stats.Add(replica.BytesRejected, size)
	case errors.Is(err, errOldFormat):
		stats.Add(replica.InvalidMagic, 1)
	case errors.Is(err, record.ErrCorrupt), errors.Is(err, record.ErrShort):
		stats.Add(replica.InvalidCRC, 1)
	case errors.Is(err, record.ErrInvalidRecord), errors.Is(err, commitlog.ErrOutOfOrderSequence):
		stats.Add(replica.InvalidOffsetOrSequence, 1)
	}
}

// writeRecordErrors writes which records are wrong, and the message.
func (p *produceWork) writeRecordErrors(w *wire.Response, err error) {
	var records []record.RecordError
	var invalid *record.InvalidRecordError
	if errors.As(err, &invalid) {
		records = invalid.Records
	}
	w.Buf = wire.AppendArrayLen(w.Buf, len(records), p.flexible)
	for i := range records {
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(records[i].Index))
		w.Buf = wire.AppendNullableString(w.Buf, &records[i].Message, p.flexible)
		if p.flexible {
			w.Buf = append(w.Buf, 0)
		}
	}
	w.Buf = wire.AppendNullableString(w.Buf, message(err), p.flexible)
}

// writeLeader writes the tags of a partition that another broker leads.
func (p *produceWork) writeLeader(w *wire.Response, i int32) {
	leader, epoch := p.s.leaderOf(p.topic.name, p.topic.id, i)
	if leader < 0 {
		w.Buf = append(w.Buf, 0)
		return
	}
	p.leader = append(p.leader, leader)
	w.Buf = append(w.Buf, 1) // one tag
	w.Buf = appendLeaderTag(w.Buf, 0, leader, epoch)
}

// Finish waits for the disk and for other replicas, and changes the answer of partitions
// for which that failed. The records stay in the log in every case.
func (p *produceWork) Finish(ctx context.Context, w *wire.Response) error {
	defer p.release()
	deadline := p.s.Now().Add(p.timeout)
	for i := range p.waits {
		if err := p.waits[i].wait(ctx, deadline); err != nil {
			c := p.code(err)
			p.stats().countError(c)
			answer := w.At(p.waits[i].mark)
			binary.BigEndian.PutUint16(answer, uint16(c))
			binary.BigEndian.PutUint64(answer[2:], 1<<64-1)
		}
	}
	p.stats().times.observe(p.received.Elapsed(), p.worked)
	return nil
}

func (wait *produceWait) wait(ctx context.Context, deadline time.Time) error {
	if wait.flushTo > 0 {
		log, err := wait.p.Log()
		if err != nil {
			return err
		}
		if err := log.FlushTo(wait.flushTo); err != nil {
			return err
		}
	}
	if wait.required > 0 {
		return wait.p.AwaitCommitted(ctx, wait.required, deadline)
	}
	return nil
}
