package faultdir

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A writer makes what gregor itself leaves in two log directories.
type writer struct {
	t    *testing.T
	fs   *vfs.Mem
	dirs []string
	now  int64 // of the next record: near the present, so that producers live
	made int   // records

	epoch int32 // leader epoch
}

var ownTopics = map[string]golden.Topic{
	"compacted": {Configs: map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1000"}},
	"appended":  {Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}},
}

var ownCounts = map[string]int32{
	"plain": 3, "codecs": 1, "sequences": 2, "transactions": 3, "open": 1, "compacted": 2, "deleted": 2, "appended": 1, "idle": 4, "once": 2,
}

// ownSubjects are directories of gregor: stopped cleanly, and killed while it ran.
func ownSubjects(t *testing.T) []*Subject {
	t.Helper()
	w := &writer{t: t, dirs: []string{"data-a", "data-b"}, now: time.Now().Add(-time.Hour).UnixMilli()}
	tree := created(t, w.dirs, ownCounts, ownTopics, 0)
	w.fs = w.mem(tree)
	w.fill(1)
	_, older := w.serve(1)
	w.fs = w.mem(older)
	w.epoch = 1
	w.fill(2)
	killed, clean := w.serve(2)
	was := func(name string) ([]byte, bool) {
		f, ok := older.Files[name]
		return f.Data, ok
	}
	return []*Subject{
		{Name: "gregor clean", Dirs: w.dirs, Tree: clean, Older: was},
		{Name: "gregor killed", Dirs: w.dirs, Tree: killed, Older: was},
	}
}

func (w *writer) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) mem(tree *Tree) *vfs.Mem {
	w.t.Helper()
	m, err := tree.Mem()
	w.must(err)
	return m
}

// log opens the log of a partition, with small segments.
func (w *writer) log(name string, partition int32) *commitlog.Log {
	w.t.Helper()
	p := topic.Partition{Topic: name, Partition: partition}
	c := commitlog.DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes, c.RetentionMs = 3000, 300, -1
	for _, dir := range w.dirs {
		if _, err := w.fs.Stat(path.Join(dir, p.String())); err == nil {
			l, err := commitlog.Open(commitlog.Options{FS: w.fs, Dir: path.Join(dir, p.String()), Partition: p, Config: c, Clean: true})
			w.must(err)
			return l
		}
	}
	w.t.Fatalf("no directory of %v", p)
	return nil
}

// batch builds a batch of n records.
func (w *writer) batch(o record.BuilderOptions, n int) []byte {
	w.t.Helper()
	b := record.NewBuilder(o)
	for i := range n {
		w.made++
		r := record.Record{Offset: int64(i), Timestamp: w.now, Key: fmt.Appendf(nil, "key %d", w.made%7)}
		r.Value = fmt.Appendf(nil, "value %d %s", w.made, strings.Repeat("x", w.made*37%90))
		if w.made%5 == 0 {
			r.Headers = []record.Header{{Key: "h", Value: []byte("header")}, {Key: "null"}}
		}
		if w.made%11 == 0 {
			r.Value = nil
		}
		w.must(b.Append(r))
		w.now += 37
	}
	return b.Build()
}

// fill appends to the closed logs what clients can bring, and coordinators.
func (w *writer) fill(phase int) {
	w.t.Helper()
	for p := range int32(3) {
		w.plain(w.log("plain", p), record.None, 12)
	}
	codecs := w.log("codecs", 0)
	for _, c := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		w.appendTo(codecs, w.batch(record.BuilderOptions{Codec: c}, 15), record.Client)
	}
	w.must(codecs.Close())
	w.plain(w.log("deleted", 0), record.None, 20)
	w.plain(w.log("deleted", 1), record.None, 3)
	w.plain(w.log("appended", 0), record.LZ4, 10)
	for p := range int32(2) {
		w.sequences(w.log("sequences", p), phase)
		w.plain(w.log("compacted", p), record.None, 15)
	}
	for p := range int32(3) {
		w.transactions(w.log("transactions", p), phase, false)
	}
	w.transactions(w.log("open", 0), phase, phase == 2)
	if phase == 1 {
		w.plain(w.log("once", 0), record.None, 1)
	}
}

func (w *writer) appendTo(l *commitlog.Log, set []byte, origin record.Origin) {
	w.t.Helper()
	_, err := l.AppendAsLeader(set, w.epoch, commitlog.AppendOptions{Origin: origin})
	w.must(err)
	l.SetHighWatermark(l.Offsets().End)
}

func (w *writer) plain(l *commitlog.Log, c record.Codec, batches int) {
	w.t.Helper()
	for i := range batches {
		w.appendTo(l, w.batch(record.BuilderOptions{Codec: c}, 1+i%4), record.Client)
	}
	w.must(l.Close())
}

// sequences is what three idempotent producers write in turn.
func (w *writer) sequences(l *commitlog.Log, phase int) {
	w.t.Helper()
	for i := range 18 {
		id := int64(i%3) + 1000
		o := record.BuilderOptions{Producer: &record.Producer{ID: id, BaseSequence: int32((phase-1)*12 + i/3*2)}}
		w.appendTo(l, w.batch(o, 2), record.Client)
	}
	w.must(l.Close())
}

// transactions are those of three producers, one after the other and at once, some of them aborted.
func (w *writer) transactions(l *commitlog.Log, phase int, leaveOpen bool) {
	w.t.Helper()
	sequence := map[int64]int32{}
	write := func(id int64, n int) {
		o := record.BuilderOptions{Transactional: true, Producer: &record.Producer{ID: id, Epoch: int16(phase), BaseSequence: sequence[id]}}
		w.appendTo(l, w.batch(o, n), record.Client)
		sequence[id] += int32(n)
	}
	end := func(id int64, how record.ControlType) {
		w.appendTo(l, record.EndTxnMarker(record.EndTxn{Type: how, ProducerID: id, ProducerEpoch: int16(phase), Timestamp: w.now}), record.Coordinator)
	}
	for range 5 {
		write(2000, 2)
		write(2001, 3)
		w.appendTo(l, w.batch(record.BuilderOptions{}, 1), record.Client)
		end(2001, record.ControlAbort)
		write(2002, 1)
		write(2000, 1)
		end(2000, record.ControlCommit)
		end(2002, record.ControlAbort)
		write(2001, 2)
		end(2001, record.ControlCommit)
	}
	if leaveOpen {
		write(2002, 2)
		w.appendTo(l, w.batch(record.BuilderOptions{}, 2), record.Client)
	}
	w.must(l.Close())
}

// serve runs a broker on what there is: groups commit, records are deleted, logs compacted, a little
// is written. It returns what a kill would leave and what the stop leaves.
func (w *writer) serve(phase int) (killed, clean *Tree) {
	w.t.Helper()
	b, err := start(w.fs, w.dirs, []string{
		"log.cleaner.enable=true", "log.cleaner.backoff.ms=10", "offsets.topic.num.partitions=3", "log.segment.delete.delay.ms=0",
		"replica.high.watermark.checkpoint.interval.ms=50", "log.flush.start.offset.checkpoint.interval.ms=50", "log.initial.task.delay.ms=0",
	}, limit)
	w.must(err)
	c, err := b.connect(limit)
	w.must(err)
	defer c.close()
	for group := range 6 {
		w.commit(c, fmt.Sprintf("group %d", group), int64(phase*10+group))
	}
	w.deleteRecords(c, "deleted", 0, int64(10*phase))
	w.deleteRecords(c, "deleted", 1, -1)
	if phase == 2 {
		w.await("a compaction", func() bool {
			tree, err := b.tree()
			w.must(err)
			for name, f := range tree.Files {
				if strings.Contains(name, "compacted-") && offsetIn(name) == 0 && kindOf(name) == LogFile {
					return len(spansOf(f.Data, 0)) < 8
				}
			}
			return false
		})
	}
	r, err := b.read(nil)
	w.must(err)
	for id := range r.Partitions {
		if id.Topic == "idle" {
			delete(r.Partitions, id)
		}
	}
	_, err = b.append(r)
	w.must(err)
	if phase == 2 { // the checkpoint of log starts is there
		w.await("checkpoints", func() bool {
			for _, dir := range w.dirs {
				data, err := vfs.ReadFile(w.fs, path.Join(dir, string(LogStarts)), fileSizeMax)
				w.must(err)
				if strings.Contains(string(data), "deleted 0 20") {
					return true
				}
			}
			return false
		})
	}
	killed, err = b.tree()
	w.must(err)
	w.must(b.stop(limit))
	clean, err = b.tree()
	w.must(err)
	return killed, clean
}

func (w *writer) await(what string, happened func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(limit); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("in vain: " + what)
		}
	}
}

// commit commits offsets of a group without members, when there is a coordinator.
func (w *writer) commit(c *client, group string, offset int64) {
	w.t.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{group}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "plain", Partitions: []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: 0, Offset: offset, LeaderEpoch: -1}, {Partition: 2, Offset: offset + 1, LeaderEpoch: 0, Metadata: kmsg.StringPtr("what is known")},
	}}}
	w.await("a commit", func() bool {
		_, err := ask[*kmsg.FindCoordinatorResponse](c, 4, find)
		w.must(err)
		resp, err := ask[*kmsg.OffsetCommitResponse](c, 8, req)
		w.must(err)
		return resp.Topics[0].Partitions[0].ErrorCode == 0
	})
}

func (w *writer) deleteRecords(c *client, name string, partition int32, before int64) {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 5000
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: before}}}}
	resp, err := ask[*kmsg.DeleteRecordsResponse](c, 2, req)
	w.must(err)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		w.t.Fatal(codeName(code))
	}
}
