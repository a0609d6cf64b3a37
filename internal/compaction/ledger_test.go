package compaction

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A ledger is a compacted log in memory, and a clock that tests move.
type ledger struct {
	t      tester
	fs     *vfs.Mem
	dir    string
	config commitlog.Config
	log    *commitlog.Log
	now    time.Time

	cleaned   int64   // the checkpoint
	options   Options // of the next cleaning
	sequences map[int64]int32

	// tasks are what the log wants done in the background. They are run behind each step,
	// unless lazy is set.
	tasks []func()
	lazy  bool
}

const ledgerDelay = 1000 // delete.retention.ms

func newLedger(t tester, change ...func(*commitlog.Config)) *ledger {
	t.Helper()
	c := commitlog.DefaultConfig()
	c.Compact, c.Delete, c.DeleteRetentionMs, c.RetentionMs = true, false, ledgerDelay, -1
	for _, f := range change {
		f(&c)
	}
	g := &ledger{t: t, fs: vfs.NewMem(), dir: "/data/t-0", config: c, now: time.UnixMilli(1_700_000_000_000), sequences: map[int64]int32{}}
	g.options = Options{MapBytes: 1 << 20, BufferBytes: 4 << 10, Now: func() time.Time { return g.now }}
	g.open(false)
	return g
}

// open opens what the file system has.
func (g *ledger) open(clean bool) {
	g.t.Helper()
	l, err := commitlog.Open(commitlog.Options{
		FS: g.fs, Dir: g.dir, Partition: topic.Partition{Topic: "t"}, Config: g.config, Clean: clean,
		Now: func() time.Time { return g.now }, Logger: slog.New(slog.DiscardHandler),
		Background:  func(task func()) { g.tasks = append(g.tasks, task) },
		DeleteLater: func(_ time.Duration, remove func()) { g.tasks = append(g.tasks, remove) },
	})
	must(g.t, err)
	g.log = l
	l.SetHighWatermark(l.Offsets().End)
}

// background does what waits.
func (g *ledger) background() {
	for !g.lazy && len(g.tasks) > 0 {
		task := g.tasks[0]
		g.tasks = g.tasks[1:]
		task()
	}
}

// reopen stops and starts.
func (g *ledger) reopen() {
	g.t.Helper()
	g.background()
	must(g.t, g.log.Close())
	g.open(true)
}

// kind says what kind of batch to append.
type kind struct {
	producer int64 // 0: none
	epoch    int16
	txn      bool
	codec    record.Codec
	header   string // version header of each record: "name=8 bytes"
	time     int64  // of the first record, the clock's if 0
}

// put appends a batch. Records are "key=value"; without "=" they are tombstones, and without
// a key they have none.
func (g *ledger) put(k kind, records ...string) commitlog.AppendInfo {
	g.t.Helper()
	if slices.ContainsFunc(records, func(s string) bool { return strings.HasPrefix(s, "=") }) {
		before := g.config // of when it was no compacted topic
		before.Compact = false
		g.log.SetConfig(before)
		defer g.log.SetConfig(g.config)
	}
	info, err := g.log.AppendAsLeader(g.batch(k, records...), 0, commitlog.AppendOptions{})
	must(g.t, err)
	g.log.SetHighWatermark(g.log.Offsets().End)
	g.background()
	if k.producer != 0 {
		g.sequences[k.producer] += int32(len(records))
	}
	return info
}

func (g *ledger) batch(k kind, records ...string) []byte {
	g.t.Helper()
	o := record.BuilderOptions{Codec: k.codec, Transactional: k.txn}
	if k.producer != 0 {
		o.Producer = &record.Producer{ID: k.producer, Epoch: k.epoch, BaseSequence: g.sequences[k.producer]}
	}
	b := record.NewBuilder(o)
	for i, s := range records {
		r := record.Record{Offset: int64(i), Timestamp: cmp.Or(k.time, g.now.UnixMilli()) + int64(i)}
		key, value, ok := strings.Cut(s, "=")
		if key != "" {
			r.Key = []byte(key)
		}
		if ok {
			r.Value = []byte(value)
		}
		if k.header != "" {
			name, version, _ := strings.Cut(k.header, "=")
			r.Headers = []record.Header{{Key: name, Value: []byte(version)}}
		}
		must(g.t, b.Append(r))
	}
	return b.Build()
}

// end appends a transaction marker.
func (g *ledger) end(producer int64, epoch int16, t record.ControlType) {
	g.t.Helper()
	m := record.EndTxnMarker(record.EndTxn{Type: t, ProducerID: producer, ProducerEpoch: epoch, Timestamp: g.now.UnixMilli()})
	_, err := g.log.AppendAsLeader(m, 0, commitlog.AppendOptions{Origin: record.Coordinator})
	must(g.t, err)
	g.log.SetHighWatermark(g.log.Offsets().End)
}

// roll closes the active segment.
func (g *ledger) roll() {
	g.t.Helper()
	must(g.t, g.log.Roll())
	g.background()
}

// plan is what a cleaning may do now.
func (g *ledger) plan() Plan {
	o := g.log.Offsets()
	segments := o.CleanSegments()
	p := Plan{FirstDirty: max(g.cleaned, o.LogStart), FirstUncleanable: segments[len(segments)-1].BaseOffset()}
	for _, s := range segments {
		if o.LastStable < s.Next {
			p.FirstUncleanable = min(p.FirstUncleanable, s.BaseOffset())
		}
	}
	return p
}

// clean does a round.
func (g *ledger) clean() Result {
	g.t.Helper()
	r, err := g.tryClean(context.Background())
	must(g.t, err)
	must(g.t, g.log.Check())
	return r
}

func (g *ledger) tryClean(ctx context.Context) (Result, error) {
	p := g.plan()
	if p.FirstDirty >= p.FirstUncleanable {
		return Result{EndOffset: p.FirstDirty}, nil
	}
	r, err := New(g.options).Clean(ctx, g.log, p)
	g.background()
	if err == nil {
		if r.EndOffset <= p.FirstDirty || r.EndOffset > p.FirstUncleanable {
			g.t.Errorf("cleaning of [%d,%d) ended at %d", p.FirstDirty, p.FirstUncleanable, r.EndOffset)
		}
		g.cleaned = r.EndOffset
	}
	return r, err
}

// again makes everything dirty.
func (g *ledger) again() Result {
	g.t.Helper()
	g.cleaned = 0
	return g.clean()
}

// A seen is a record that a consumer got.
type seen struct {
	offset     int64
	key, value string
	tombstone  bool
}

func (s seen) String() string {
	if s.tombstone {
		return fmt.Sprintf("%d:%s", s.offset, s.key)
	}
	return fmt.Sprintf("%d:%s=%s", s.offset, s.key, s.value)
}

// consume reads all records from an offset on as a client does, which leaves aborted ones out
// if it asks for committed ones.
func consume(t tester, l *commitlog.Log, from int64, isolation commitlog.Isolation) (list []seen) {
	t.Helper()
	for next := from; ; {
		r, err := l.Read(next, 1<<20, isolation, segment.WholeFirst)
		must(t, err)
		b := make([]byte, r.Slice.Size())
		if len(b) == 0 {
			r.Slice.Release()
			return list
		}
		if _, err := r.Slice.ReadAt(b, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		r.Slice.Release()
		list = append(list, consumeSet(t, b, next, r.Aborted)...)
		last := next
		for batch := range record.Batches(b) {
			next = batch.NextOffset()
		}
		if next <= last {
			t.Fatalf("read at %d got no further", last)
		}
	}
}

func consumeSet(t tester, set []byte, from int64, aborted []segment.AbortedTxn) (list []seen) {
	t.Helper()
	slices.SortFunc(aborted, func(a, b segment.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	under := map[int64]bool{}
	for b, err := range record.Batches(set) {
		must(t, err)
		must(t, b.Verify())
		for len(aborted) > 0 && aborted[0].FirstOffset <= b.LastOffset() {
			under[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		if b.IsControl() {
			if kind, ok := b.ControlType(); ok && kind == record.ControlAbort {
				delete(under, b.ProducerID())
			}
			continue
		}
		if b.IsTransactional() && under[b.ProducerID()] {
			continue
		}
		for r, err := range b.Records() {
			must(t, err)
			if r.Offset >= from {
				list = append(list, seen{r.Offset, string(r.Key), string(bytes.Clone(r.Value)), r.Value == nil})
			}
		}
	}
	return list
}

// records lists what a consumer of everything sees.
func (g *ledger) records() string {
	g.t.Helper()
	return join(consume(g.t, g.log, g.log.Offsets().LogStart, commitlog.ReadUncommitted))
}

func join(list []seen) string {
	s := make([]string, len(list))
	for i, r := range list {
		s[i] = r.String()
	}
	return strings.Join(s, " ")
}

func (g *ledger) wantRecords(want string) {
	g.t.Helper()
	if got := g.records(); got != want {
		g.t.Errorf("records\n%s\nwant\n%s", got, want)
	}
}

// batches lists what is in the files: offsets, the number of records, and c for a marker, h
// for a delete horizon.
func (g *ledger) batches() string {
	g.t.Helper()
	var list []string
	for _, s := range g.log.Offsets().CleanSegments() {
		for l, err := range s.Batches(0, s.Size()) {
			must(g.t, err)
			b := l.Batch
			text := fmt.Sprintf("%d-%d:%d", b.BaseOffset(), b.LastOffset(), b.Count())
			if b.IsControl() {
				text += "c"
			}
			if _, ok := b.DeleteHorizon(); ok {
				text += "h"
			}
			list = append(list, text)
		}
		list = append(list, "|")
	}
	return strings.TrimSuffix(strings.Join(list, " "), " |")
}

func (g *ledger) wantBatches(want string) {
	g.t.Helper()
	if got := g.batches(); got != want {
		g.t.Errorf("batches\n%s\nwant\n%s", got, want)
	}
}
