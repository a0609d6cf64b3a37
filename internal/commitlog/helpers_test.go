package commitlog

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

var (
	testTopicID = uuid.UUID{1, 2, 3}
	testTime    = time.UnixMilli(1_700_000_000_000)
)

// testOptions are those of a small log in /data/t-0, at a time that stands still.
func testOptions(fs vfs.FS) Options {
	c := DefaultConfig()
	c.IndexIntervalBytes = 200
	return Options{
		FS:        fs,
		Dir:       "/data/t-0",
		Partition: topic.Partition{Topic: "t"},
		TopicID:   testTopicID,
		Config:    c,
		Now:       func() time.Time { return testTime },
		Logger:    slog.New(slog.DiscardHandler),
	}
}

// inBackground makes tasks wait until a test runs them.
type inBackground struct{ tasks []func() }

func (b *inBackground) add(task func()) { b.tasks = append(b.tasks, task) }

func (b *inBackground) run() {
	tasks := b.tasks
	b.tasks = nil
	for _, task := range tasks {
		task()
	}
}

func openLog(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.background.Wait()
		if l.Failed() == nil {
			mustCheck(t, l)
		}
	})
	return l
}

func mustCheck(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A spec describes a batch.
type spec struct {
	records   int
	timestamp int64
	size      int // of each value
	producer  *record.Producer
	txn       bool
	codec     record.Codec
	tag       string
}

func (s spec) build(t testing.TB) []byte {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{Codec: s.codec, Producer: s.producer, Transactional: s.txn})
	if s.timestamp == 0 {
		s.timestamp = testTime.UnixMilli()
	}
	for i := range max(1, s.records) {
		value := append([]byte(fmt.Sprintf("%s%d", s.tag, i)), make([]byte, s.size)...)
		must(t, b.Append(record.Record{Offset: int64(i), Timestamp: s.timestamp, Key: []byte("k"), Value: value}))
	}
	return b.Build()
}

func marker(id int64, epoch int16, abort bool, coordinatorEpoch int32) []byte {
	m := record.EndTxn{Type: record.ControlCommit, ProducerID: id, ProducerEpoch: epoch, CoordinatorEpoch: coordinatorEpoch,
		Timestamp: testTime.UnixMilli()}
	if abort {
		m.Type = record.ControlAbort
	}
	return record.EndTxnMarker(m)
}

// mustAppend appends as a leader of epoch 0 and moves the high watermark along.
func mustAppend(t testing.TB, l *Log, set []byte) AppendInfo {
	t.Helper()
	info, err := l.AppendAsLeader(set, 0, AppendOptions{})
	must(t, err)
	l.SetHighWatermark(l.Offsets().End)
	return info
}

func mustMark(t testing.TB, l *Log, set []byte) AppendInfo {
	t.Helper()
	info, err := l.AppendAsLeader(set, 0, AppendOptions{Origin: record.Coordinator})
	must(t, err)
	l.SetHighWatermark(l.Offsets().End)
	return info
}

// readAll returns the values of all records in [start, limit of isolation).
func readAll(t testing.TB, l *Log, start int64, isolation Isolation) (values []string, end int64) {
	t.Helper()
	end = start
	for {
		r, err := l.Read(end, 1<<20, isolation, true)
		must(t, err)
		b := contents(t, r)
		if len(b) == 0 {
			return values, end
		}
		for batch, err := range record.Batches(b) {
			must(t, err)
			for rec, err := range batch.Records() {
				must(t, err)
				if rec.Offset >= start && !batch.IsControl() {
					values = append(values, fmt.Sprintf("%d:%s", rec.Offset, bytes.TrimRight(rec.Value, "\x00")))
				}
			}
			end = batch.NextOffset()
		}
	}
}

func contents(t testing.TB, r ReadResult) []byte {
	t.Helper()
	defer r.Slice.Release()
	b := make([]byte, r.Slice.Size())
	if _, err := r.Slice.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}
