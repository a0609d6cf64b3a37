package compaction

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
	"pgregory.net/rapid"
)

// A history is what was appended to a log, the model beside it.
type history struct {
	rt *rapid.T
	*ledger
	all     []event
	open    map[int64]int // number of the open transaction of a producer
	outcome map[int]record.ControlType
	last    int // number of the last transaction
}

// An event is a record that was appended.
type event struct {
	seen
	txn int // 0: none
}

var modelProducers = []int64{1, 2, 3}

func drawHistory(t *rapid.T) *history {
	h := &history{rt: t, open: map[int64]int{}, outcome: map[int]record.ControlType{}}
	segmentBytes := rapid.SampledFrom([]int{300, 1000, 1 << 20}).Draw(t, "segment.bytes")
	h.ledger = newLedger(t, func(c *commitlog.Config) {
		c.SegmentBytes, c.IndexIntervalBytes = segmentBytes, 100
	})
	return h
}

// step does something to the log.
func (h *history) step() {
	switch rapid.SampledFrom([]string{"plain", "plain", "producer", "txn", "txn", "txn", "end", "end", "roll", "time", "clean", "clean", "crash", "reopen"}).Draw(h.rt, "step") {
	case "plain":
		h.append(kind{codec: h.codec()})
	case "producer":
		if p := h.producer(); h.open[p] == 0 {
			h.append(kind{producer: p, codec: h.codec()})
		}
	case "txn":
		p := h.producer()
		if h.open[p] == 0 {
			h.last++
			h.open[p] = h.last
		}
		h.append(kind{producer: p, txn: true, codec: h.codec()})
	case "end":
		h.endTxn(h.producer())
	case "roll":
		h.roll()
	case "time":
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 2*ledgerDelay).Draw(h.rt, "ms")) * time.Millisecond)
	case "clean":
		h.drawOptions()
		h.clean()
		h.check()
	case "crash":
		h.crash()
	case "reopen":
		h.reopen()
		h.check()
	}
}

func (h *history) producer() int64 { return rapid.SampledFrom(modelProducers).Draw(h.rt, "producer") }

func (h *history) codec() record.Codec {
	return rapid.SampledFrom([]record.Codec{record.None, record.None, record.Snappy, record.Zstd}).Draw(h.rt, "codec")
}

func (h *history) append(k kind) {
	records := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "a=", "b=", "c=", "d=", "e=", "f=", "g=", "h="}), 1, 5).Draw(h.rt, "records")
	for i, r := range records {
		if len(r) > 1 {
			records[i] = fmt.Sprintf("%s%d", r, len(h.all)+i)
		}
	}
	info := h.put(k, records...)
	for i, s := range records {
		e := event{seen: seen{offset: info.FirstOffset + int64(i), key: s[:1], tombstone: len(s) == 1}}
		if !e.tombstone {
			e.value = s[2:]
		}
		if k.txn {
			e.txn = h.open[k.producer]
		}
		h.all = append(h.all, e)
	}
}

func (h *history) endTxn(producer int64) {
	if h.open[producer] == 0 {
		return
	}
	t := rapid.SampledFrom([]record.ControlType{record.ControlAbort, record.ControlCommit}).Draw(h.rt, "type")
	h.end(producer, 0, t)
	h.outcome[h.open[producer]] = t
	h.open[producer] = 0
}

func (h *history) drawOptions() {
	h.options.MapBytes = int64(rapid.IntRange(2, 12).Draw(h.rt, "slots")) * slotSize
	h.options.BufferBytes = rapid.SampledFrom([]int{1, 4 << 10}).Draw(h.rt, "buffer")
	h.cleaned = rapid.SampledFrom([]int64{h.cleaned, h.cleaned, 0}).Draw(h.rt, "first dirty")
}

// crash cleans and loses power in the middle: at an operation of the file system that is picked
// at random. What was appended before is on the disk.
func (h *history) crash() {
	must(h.t, h.log.Flush())
	h.drawOptions()
	at := rapid.IntRange(0, 60).Draw(h.rt, "crash at")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(h.rt, "seed"), 0))
	var left *vfs.Mem
	end := h.log.Offsets().End
	h.fs.SetHook(func(op vfs.Op) error {
		if op.Kind.Changes() {
			if at--; at < 0 && left == nil {
				left = h.fs.CrashClone(rng)
			}
		}
		return nil
	})
	_, err := h.tryClean(h.rt.Context())
	must(h.t, err)
	h.fs.SetHook(nil)
	if left == nil {
		left = h.fs.CrashClone(rng)
	}
	must(h.t, h.log.Close())
	h.fs = left
	h.cleaned = 0 // the checkpoint is from before
	h.ledger.open(false)
	if got := h.log.Offsets().End; got != end {
		h.t.Fatalf("log end %d after a crash, want %d", got, end)
	}
	h.check()
}

// check compares what consumers see with what must be there.
func (h *history) check() {
	o := h.log.Offsets()
	uncommitted := consume(h.t, h.log, 0, commitlog.ReadUncommitted)
	h.subset(uncommitted, func(e event) bool { return true })
	committed := consume(h.t, h.log, 0, commitlog.ReadCommitted)
	h.subset(committed, func(e event) bool { return h.isCommitted(e) })
	h.latest(committed, o.LastStable)
	for _, s := range uncommitted {
		if e, _ := h.find(s.offset); s.offset < h.cleaned && h.outcome[e.txn] == record.ControlAbort && e.txn > 0 {
			h.t.Fatalf("%v of an aborted transaction below %d, which is clean", s, h.cleaned)
		}
	}
	h.checkProducers()
}

func (h *history) isCommitted(e event) bool {
	return e.txn == 0 || h.outcome[e.txn] == record.ControlCommit && h.ended(e.txn)
}

func (h *history) ended(txn int) bool { _, ok := h.outcome[txn]; return ok }

func (h *history) find(offset int64) (event, bool) {
	i, ok := slices.BinarySearchFunc(h.all, offset, func(e event, offset int64) int { return int(e.offset - offset) })
	if !ok {
		return event{}, false
	}
	return h.all[i], true
}

// subset checks that what was read is a part of what was appended, in its order.
func (h *history) subset(list []seen, may func(event) bool) {
	last := int64(-1)
	for _, s := range list {
		e, ok := h.find(s.offset)
		if !ok || e.seen != s || !may(e) {
			h.t.Fatalf("read %v, appended %v", s, e)
		}
		if s.offset <= last {
			h.t.Fatalf("read %v behind offset %d", s, last)
		}
		last = s.offset
	}
}

// latest checks that the last committed value of each key is there, and that where its tombstone
// has gone, all that was before is gone too.
func (h *history) latest(list []seen, stable int64) {
	want := map[string]event{}
	for _, e := range h.all {
		if e.offset < stable && h.isCommitted(e) {
			want[e.key] = e
		}
	}
	got := map[string]seen{}
	for _, s := range list {
		got[s.key] = s
	}
	for key, e := range want {
		s, ok := got[key]
		if ok && s == e.seen || !ok && e.tombstone {
			continue
		}
		h.t.Fatalf("last record of %s is %v (%v), want %v", key, s, ok, e.seen)
	}
}

// checkProducers compares the producers with those that have appended: a retry must be known
// after any number of cleanings and starts.
func (h *history) checkProducers() {
	got := map[int64]int32{}
	for _, p := range h.log.Producers() {
		got[p.ProducerID] = p.LastSequence
	}
	for p, next := range h.sequences {
		if next > 0 && got[p] != next-1 {
			h.t.Fatalf("producer %d: last sequence %d, want %d", p, got[p], next-1)
		}
	}
}

// TestModel cleans random histories any number of times, with maps that have room for a few
// keys, crashes and restarts in between, and checks what consumers see.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			h.step()
		}
		h.finish()
	})
}

// finish ends all transactions and cleans to the end: then only the last record of each key is
// left, and some that are kept for reasons of their own.
func (h *history) finish() {
	for _, p := range modelProducers {
		h.endTxn(p)
	}
	h.append(kind{})
	h.roll()
	for h.plan().FirstDirty < h.plan().FirstUncleanable {
		h.clean()
	}
	h.check()
	h.reopen()
	h.check()
	want := map[string]int64{}
	for _, e := range h.all {
		if h.isCommitted(e) {
			want[e.key] = e.offset
		}
	}
	for _, s := range consume(h.t, h.log, 0, commitlog.ReadUncommitted) {
		if s.offset != want[s.key] {
			h.t.Fatalf("%v is left, %d is the last offset of its key", s, want[s.key])
		}
	}
	if err := h.log.Check(); err != nil {
		h.t.Fatal(err)
	}
	must(h.t, errors.Join(h.log.Close()))
}
