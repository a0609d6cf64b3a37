package commitlog

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Ten thousand crash points: go test ./internal/commitlog -run Crash -crashes 10000, or with
// GREGOR_CRASH_POINTS=10000.
// A failure prints its seed: -crashseed SEED repeats that run.
var (
	crashes   = flag.Int("crashes", 400, "crash points of TestCrash")
	crashSeed = flag.Uint64("crashseed", 0, "seed of the first run of TestCrash, 0 for a random one")
)

// TestCrash runs random operations on a log, stops the world at a random operation of the
// file system, and opens what that leaves: whatever was flushed must be there, and nothing
// else than the beginning of what was written. It goes on with the reopened log, up to the
// next crash.
func TestCrash(t *testing.T) {
	if n, err := strconv.Atoi(os.Getenv("GREGOR_CRASH_POINTS")); err == nil {
		*crashes = n
	}
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for done := 0; done < *crashes && !t.Failed(); seed++ {
		w := newCrashWorld(t, seed)
		for range 20 {
			w.live()
			w.crashAndOpen()
			done++
			if t.Failed() {
				t.Fatal(w.lastOps())
			}
		}
	}
}

var errCrashed = errors.New("the machine has crashed")

// A crashWorld is a log, its file system, and what a client may expect of it.
type crashWorld struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	fs   *vfs.Mem
	log  *Log

	config   Config
	ops      []string
	later    inBackground // deletions and syncs that wait
	now      time.Time
	survivor *vfs.Mem // set at the crash

	// What was written and not truncated, as it must lie in the file.
	batches []record.Batch
	end     int64
	epoch   int32
	taken   []int64        // base offsets of those that a crash took
	markers []record.Batch // of these
	pending record.Batch   // an append under way at the crash
	floor   int64          // a truncation under way may have cut the log down to here, or -1
	target  int64          // and may have begun it again at this offset, or -1

	flushed  int64 // everything below was acknowledged as flushed
	logStart int64
	clean    bool

	// epochsFrom is the latest log start there was: it may have reached the epoch file
	// only, and after a crash the cache knows nothing of what lies below.
	epochsFrom int64

	// The checkpoint files of the log directory.
	recoveryPoint, logStartPoint, highWatermark int64

	lost []checkpoint.Loss // what was in quarantine after the last start

	sequences map[int64]int32 // next one, by producer
	open      map[int64]bool  // producers with an open transaction
}

func newCrashWorld(t *testing.T, seed uint64) *crashWorld {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &crashWorld{t: t, seed: seed, rng: rng, fs: vfs.NewMem(), now: testTime, floor: -1, target: -1, sequences: map[int64]int32{}, open: map[int64]bool{}}
	c := DefaultConfig()
	c.SegmentBytes = 700 + rng.IntN(2000)
	c.IndexIntervalBytes = rng.IntN(400)
	c.RetentionMs = -1
	c.RetentionBytes = int64(2*c.SegmentBytes + rng.IntN(4000))
	if rng.IntN(3) == 0 {
		c.FlushMessages = int64(1 + rng.IntN(5))
	}
	c.Preallocate = rng.IntN(4) == 0
	w.config = c
	must(t, vfs.MkdirAll(w.fs, "/data/t-0", 0o755))
	w.openLog()
	return w
}

func (w *crashWorld) openLog() {
	l, err := Open(w.options())
	if err != nil {
		w.t.Fatalf("open: %v\n%s", err, w.lastOps())
	}
	w.log = l
}

func (w *crashWorld) options() Options {
	o := testOptions(w.fs)
	o.Config = w.config
	o.RecoveryPoint, o.LogStartOffset, o.HighWatermark, o.Clean = w.recoveryPoint, w.logStartPoint, w.highWatermark, w.clean
	o.Background = w.later.add
	o.DeleteLater = func(_ time.Duration, remove func()) { w.later.add(remove) }
	o.Now = func() time.Time { return w.now }
	return o
}

func (w *crashWorld) note(format string, args ...any) {
	w.ops = append(w.ops, fmt.Sprintf(format, args...))
}

func (w *crashWorld) lastOps() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "seed %d, config %+v, last operations:\n", w.seed, w.config)
	for _, op := range w.ops[max(0, len(w.ops)-40):] {
		fmt.Fprintln(&b, " ", op)
	}
	return b.String()
}

// live does random operations until the file system crashes.
func (w *crashWorld) live() {
	w.clean = false
	w.crashIn(1 + w.rng.IntN(120))
	for w.survivor == nil {
		w.step()
	}
}

// crashIn makes the file system crash at the n-th change from now.
func (w *crashWorld) crashIn(countdown int) {
	w.survivor = nil
	w.fs.SetHook(func(op vfs.Op) error {
		if w.survivor != nil {
			return errCrashed
		}
		if !op.Kind.Changes() {
			return nil
		}
		if countdown--; countdown > 0 {
			return nil
		}
		w.note("CRASH at %v", op)
		w.survivor = w.fs.CrashClone(w.rng)
		return errCrashed
	})
}

// did fails the test for an error that is not the crash's, and reports success.
func (w *crashWorld) did(err error) bool {
	if err != nil && w.survivor == nil {
		w.t.Fatalf("%v\n%s", err, w.lastOps())
	}
	return err == nil
}

func (w *crashWorld) step() {
	w.now = w.now.Add(time.Millisecond)
	switch n := w.rng.IntN(100); {
	case n < 40:
		w.append(w.plain())
	case n < 55:
		w.appendIdempotent(int64(1+w.rng.IntN(3)), false)
	case n < 65:
		w.appendIdempotent(int64(11+w.rng.IntN(3)), true)
	case n < 71:
		w.endTransaction()
	case n < 75:
		w.replicate()
	case n < 79:
		w.note("flush")
		if w.did(w.log.Flush()) {
			w.flushed = w.end
		}
	case n < 82:
		w.flushTo(w.rng.Int64N(w.end + 1))
	case n < 85:
		w.note("roll at %d", w.end)
		w.did(w.log.Roll())
	case n < 88:
		w.truncate()
	case n < 89:
		w.restart()
	case n < 92:
		w.retain()
	case n < 94:
		w.incrementLogStart()
	case n < 96:
		w.checkpoint()
	case n < 99:
		w.note("background")
		w.later.run()
	default:
		w.stop()
	}
}

func (w *crashWorld) plain() []byte {
	return spec{records: 1 + w.rng.IntN(4), size: w.rng.IntN(100), timestamp: w.now.UnixMilli(), tag: fmt.Sprint(w.rng.Uint32())}.build(w.t)
}

func (w *crashWorld) appendIdempotent(id int64, txn bool) {
	n := 1 + w.rng.IntN(3)
	set := spec{records: n, timestamp: w.now.UnixMilli(), tag: fmt.Sprint(w.rng.Uint32()), txn: txn,
		producer: &record.Producer{ID: id, BaseSequence: w.sequences[id]}}.build(w.t)
	if w.append(set) {
		w.sequences[id] += int32(n)
		w.open[id] = txn
	}
}

func (w *crashWorld) endTransaction() {
	for id := int64(11); id < 14; id++ {
		if w.open[id] {
			set := marker(id, 0, w.rng.IntN(2) == 0, 0)
			if w.appendFrom(set, record.Coordinator) {
				w.open[id] = false
			}
			return
		}
	}
}

func (w *crashWorld) append(set []byte) bool { return w.appendFrom(set, record.Client) }

func (w *crashWorld) appendFrom(set []byte, origin record.Origin) bool {
	w.pending = record.Batch(slices.Clone(set))
	w.pending.SetBaseOffset(w.end)
	w.pending.SetLeaderEpoch(w.epoch)
	w.note("append [%d,%d] producer %d", w.end, w.pending.LastOffset(), w.pending.ProducerID())
	info, err := w.log.AppendAsLeader(set, w.epoch, AppendOptions{Origin: origin})
	if !w.did(err) {
		return false
	}
	w.appended(info)
	if info.FlushTo > 0 {
		w.flushTo(info.FlushTo)
	}
	return w.survivor == nil
}

// replicate appends what another leader wrote, with a gap in front now and then.
func (w *crashWorld) replicate() {
	set := record.Batch(w.plain())
	set.SetBaseOffset(w.end + int64(w.rng.IntN(2)*w.rng.IntN(50)))
	set.SetLeaderEpoch(w.epoch)
	w.pending = set
	w.note("replicate [%d,%d]", set.BaseOffset(), set.LastOffset())
	if info, err := w.log.AppendAsFollower(slices.Clone(set), w.epoch); w.did(err) {
		w.appended(info)
	}
}

func (w *crashWorld) appended(info AppendInfo) {
	if info.FirstOffset != w.pending.BaseOffset() {
		w.t.Fatalf("append got offset %d, want %d\n%s", info.FirstOffset, w.pending.BaseOffset(), w.lastOps())
	}
	w.batches = append(w.batches, w.pending)
	w.end = w.pending.NextOffset()
	w.pending = nil
	if w.rng.IntN(4) > 0 {
		w.log.SetHighWatermark(w.end)
	}
}

func (w *crashWorld) flushTo(offset int64) {
	w.note("flush to %d", offset)
	if w.did(w.log.FlushTo(offset)) {
		w.flushed = max(w.flushed, offset)
	}
}

// truncate cuts at any offset, also inside a batch, and begins a new epoch.
func (w *crashWorld) truncate() {
	start := w.log.Offsets().LogStart
	w.cut(start+w.rng.Int64N(w.end-start+1), w.log.TruncateTo)
}

func (w *crashWorld) restart() { w.cut(w.end+w.rng.Int64N(20), w.log.TruncateFullyAndStartAt) }

func (w *crashWorld) cut(offset int64, truncate func(int64) error) {
	fully := offset >= w.end
	w.note("truncate to %d", offset)
	w.floor, w.target = offset, offset
	if fully {
		w.floor = 0
	}
	w.log.PrepareTruncation(w.floor)
	w.checkpoint()
	if !w.did(truncate(offset)) {
		return
	}
	w.batches = slices.DeleteFunc(w.batches, func(b record.Batch) bool { return fully && offset > w.end || b.LastOffset() >= offset })
	w.end, w.floor, w.target = offset, -1, -1
	w.lost = w.lostBelow(offset)
	w.flushed = min(w.flushed, offset)
	w.logStart = w.log.Offsets().LogStart
	w.checkpoint()
	w.learnProducers()
	w.epoch++
	w.log.EnterEpoch(w.epoch)
}

// learnProducers asks the log where producers are, as the loss of records may have set
// them back. Check compares what the log says with its records.
func (w *crashWorld) learnProducers() {
	clear(w.sequences)
	clear(w.open)
	for _, p := range w.log.Producers() {
		w.sequences[p.ProducerID] = p.LastSequence + 1
		w.open[p.ProducerID] = p.TxnStartOffset >= 0
	}
}

func (w *crashWorld) retain() {
	w.note("retention")
	_, err := w.log.DeleteOldSegments(w.now)
	w.logStart = w.log.Offsets().LogStart
	if w.did(err) {
		w.checkpoint()
	}
}

func (w *crashWorld) incrementLogStart() {
	o := w.log.Offsets()
	offset := o.LogStart + w.rng.Int64N(o.HighWatermark-o.LogStart+1)
	w.note("log start %d", offset)
	if w.did(w.log.IncrementLogStart(offset)) {
		w.logStart = w.log.Offsets().LogStart
	}
}

func (w *crashWorld) checkpoint() {
	if w.survivor == nil {
		w.storePoints()
		w.note("checkpoint: recovery point %d, log start %d, high watermark %d", w.recoveryPoint, w.logStartPoint, w.highWatermark)
	}
}

func (w *crashWorld) storePoints() {
	o := w.log.Offsets()
	w.recoveryPoint, w.logStartPoint, w.highWatermark = w.log.RecoveryPoint(), o.LogStart, min(o.HighWatermark, w.log.DataEnd())
}

// stop closes the log and opens it again; a crash before the end makes the stop unclean.
func (w *crashWorld) stop() {
	w.note("close")
	if !w.did(w.log.Close()) {
		return
	}
	w.flushed = w.end
	w.storePoints()
	if w.rng.IntN(2) == 0 {
		w.note("CRASH after a clean stop")
		w.clean = true
		w.survivor = w.fs.CrashClone(w.rng)
		return
	}
	w.clean = true
	w.later.tasks = nil
	l, err := Open(w.options())
	if w.did(err) {
		w.log, w.end = l, l.Offsets().End // a gap at the end is forgotten
		w.flushed = w.end
		w.recoveryPoint = min(w.recoveryPoint, l.RecoveryPoint()) // as Open demands
	}
	w.clean = false
}

// crashAndOpen opens what the crash left and compares.
func (w *crashWorld) crashAndOpen() {
	w.log.Abandon() // what the process had is gone, caches too
	w.fs = w.survivor
	w.later.tasks = nil
	for w.rng.IntN(3) == 0 { // another crash, during the load
		w.crashIn(1 + w.rng.IntN(20))
		if l, err := Open(w.options()); err == nil {
			l.Abandon()
			w.note("no crash during the load")
			w.survivor = w.fs.CrashClone(w.rng)
		}
		w.fs, w.clean = w.survivor, false
	}
	w.openLog()
	l := w.log
	o := l.Offsets()
	w.note("opened: clean %v, [%d,%d) %v %v", w.clean, o.LogStart, o.End, l.Segments(), l.Quarantine())
	w.recoveryPoint = min(w.recoveryPoint, l.RecoveryPoint()) // as Open demands
	l.SetHighWatermark(o.End)
	must(w.t, l.Scrub(nil))
	mustCheck(w.t, l)

	if o.LogStart < w.logStartPoint || o.LogStart > max(w.logStart, w.logStartPoint, w.target) {
		w.t.Errorf("log start %d, checkpoint %d, before the crash %d", o.LogStart, w.logStartPoint, w.logStart)
	}
	w.checkEnd(o)
	w.checkLost(o)
	got := w.stored()
	w.compare(got, o)
	if w.t.Failed() {
		return
	}
	w.checkEpochs(got)
	for _, b := range w.written() {
		if !slices.ContainsFunc(got, func(g record.Batch) bool { return g.BaseOffset() == b.BaseOffset() }) {
			w.taken = append(w.taken, b.BaseOffset())
			if b.IsControl() {
				w.markers = append(w.markers, b)
			}
		}
	}
	w.checkCommitted(got, o.LogStart)

	w.batches, w.end, w.pending, w.floor, w.target = got, o.End, nil, -1, -1
	w.flushed = min(w.flushed, o.End)
	w.logStart = o.LogStart
	w.learnProducers()
	w.retry()
	w.epoch++
	l.EnterEpoch(w.epoch)
}

// written returns what may be in the files: also an append that a crash tore.
func (w *crashWorld) written() []record.Batch {
	if w.pending == nil {
		return w.batches
	}
	return append(slices.Clip(w.batches), w.pending)
}

// checkEnd holds the end against the checkpoints, and against what was written.
func (w *crashWorld) checkEnd(o *Offsets) {
	least, most := max(w.recoveryPoint, w.highWatermark, w.logStartPoint), max(w.end, w.target)
	if w.pending != nil {
		most = max(most, w.pending.NextOffset())
	}
	if o.End < least && w.floor < 0 || o.End > most {
		w.t.Errorf("log end %d, want %d to %d", o.End, least, most)
	}
}

// checkLost looks whether what was in quarantine is there still, and notes what is now.
func (w *crashWorld) checkLost(o *Offsets) {
	end := o.End
	if w.floor >= 0 {
		end = min(end, w.floor)
	}
	for _, l := range w.lostBelow(end) {
		for offset := max(l.First, o.LogStart); offset < l.End; offset++ {
			if !w.log.isQuarantined(offset) {
				w.t.Errorf("offset %d was in quarantine before, now there is %v", offset, w.log.Quarantine())
				break
			}
		}
	}
	w.lost = nil
	for _, q := range w.log.Quarantine() {
		w.lost = append(w.lost, checkpoint.Loss{First: q.First, End: q.End})
	}
}

func (w *crashWorld) lostBelow(end int64) (list []checkpoint.Loss) {
	for _, l := range w.lost {
		list = append(list, checkpoint.Loss{First: l.First, End: min(l.End, end)})
	}
	return list
}

// stored returns the batches in the files, also those below the log start.
func (w *crashWorld) stored() (list []record.Batch) {
	for _, s := range w.log.Offsets().segments {
		for b, err := range s.Batches(0, s.Size()) {
			must(w.t, err)
			list = append(list, slices.Clone(b.Batch))
		}
	}
	return list
}

// compare checks that got is a run of what was written, from the log start or before on,
// that has at least what was flushed.
func (w *crashWorld) compare(got []record.Batch, o *Offsets) {
	written := w.written()
	flushed := w.flushed
	if w.floor >= 0 {
		flushed = min(flushed, w.floor)
	}
	i := 0
	if len(got) > 0 {
		i = slices.IndexFunc(written, func(b record.Batch) bool { return b.BaseOffset() == got[0].BaseOffset() })
		if i < 0 {
			w.t.Errorf("first batch has offset %d: never written", got[0].BaseOffset())
			return
		}
	} else {
		for i < len(written) && written[i].LastOffset() < o.LogStart {
			i++
		}
	}
	lost := func(b record.Batch) {
		if b.NextOffset() <= flushed && b.LastOffset() >= o.LogStart {
			w.t.Errorf("batch [%d,%d] was flushed (up to %d) and is lost; log [%d,%d), quarantine %v", b.BaseOffset(), b.LastOffset(), flushed, o.LogStart, o.End, w.log.Quarantine())
		}
	}
	for j := range i {
		lost(written[j])
		if last := written[j].LastOffset(); last >= o.LogStart && !w.log.isQuarantined(last) {
			w.t.Errorf("batch at %d is missing at the start; log start %d", written[j].BaseOffset(), o.LogStart)
		}
	}
	for _, b := range got {
		// What the disk lost in front of what it has is in quarantine.
		for i < len(written) && written[i].LastOffset() < b.BaseOffset() {
			lost(written[i])
			if offset := written[i].BaseOffset(); !w.log.isQuarantined(offset) {
				w.t.Errorf("batch at %d is missing, the one at %d is there", offset, b.BaseOffset())
			}
			i++
		}
		if i == len(written) || !bytes.Equal(b, written[i]) {
			w.t.Errorf("batch at %d is not what was written there: % x, want % x", b.BaseOffset(), b[:min(len(b), 61)], written[min(i, len(written)-1)][:61])
			return
		}
		i++
	}
	for ; i < len(written); i++ {
		lost(written[i])
	}
}

func (w *crashWorld) checkEpochs(got []record.Batch) {
	w.epochsFrom = max(w.epochsFrom, w.logStart)
	for _, b := range got {
		if offset := b.BaseOffset(); offset >= w.epochsFrom && w.log.EpochForOffset(offset) != b.LeaderEpoch() {
			w.t.Errorf("batch at %d has epoch %d, the cache says %d", offset, b.LeaderEpoch(), w.log.EpochForOffset(offset))
		}
	}
}

// checkCommitted reads as a read_committed consumer does and compares with what the
// markers say.
func (w *crashWorld) checkCommitted(got []record.Batch, logStart int64) {
	want := committed(got, logStart, w.log.Offsets().LastStable)
	var have []int64
	for next := logStart; ; {
		r, err := w.log.Read(next, 1+w.rng.IntN(600), ReadCommitted, segment.WholeFirst)
		if corrupt, ok := errors.AsType[*segment.CorruptError](err); ok && corrupt.End > next {
			// Where offsets are lost, the marker may be one of them.
			if i := slices.Index(want, corrupt.Offset); i >= 0 && errors.Is(err, errUndecided) && w.lossBehind(corrupt.Offset) {
				want = slices.Delete(want, i, i+1)
			}
			next = corrupt.End
			continue
		}
		must(w.t, err)
		b := contents(w.t, r)
		if len(b) == 0 {
			break
		}
		for batch, err := range record.Batches(b) {
			must(w.t, err)
			next = batch.NextOffset()
			skip := batch.IsControl() || batch.IsTransactional() && slices.ContainsFunc(r.Aborted, func(a segment.AbortedTxn) bool {
				return a.ProducerID == batch.ProducerID() && a.FirstOffset <= batch.BaseOffset() && batch.BaseOffset() < a.LastOffset
			})
			if i := slices.Index(want, batch.BaseOffset()); i >= 0 && skip && w.lossBehind(want[i]) {
				want = slices.Delete(want, i, i+1) // the index has it, from before the crash
			}
			if !skip && batch.LastOffset() >= logStart {
				have = append(have, batch.BaseOffset())
			}
		}
	}
	have = slices.Compact(have)
	// A marker in quarantine may be known by what is left of it.
	truth := slices.Clone(got)
	for _, m := range w.markers {
		if w.log.isQuarantined(m.BaseOffset()) {
			truth = append(truth, m)
		}
	}
	slices.SortStableFunc(truth, func(a, b record.Batch) int { return cmp.Compare(a.BaseOffset(), b.BaseOffset()) })
	known := committed(truth, logStart, math.MaxInt64)
	have = slices.DeleteFunc(have, func(offset int64) bool {
		return !slices.Contains(want, offset) && slices.Contains(known, offset) && w.lossBehind(offset)
	})
	if !slices.Equal(have, want) {
		for _, b := range got {
			if b.IsTransactional() {
				w.note("stored: [%d,%d] producer %d control %v %+v", b.BaseOffset(), b.LastOffset(), b.ProducerID(), b.IsControl(), parseEndTxn(b))
			}
		}
		for _, s := range w.log.Offsets().segments {
			list, _, err := s.Aborted(0, 1<<60)
			w.note("segment %d aborted %v %v", s.BaseOffset(), list, err)
		}
		w.t.Errorf("read_committed sees %v, want %v", have, want)
	}
}

// lossBehind reports whether a crash took something that was written behind an offset.
func (w *crashWorld) lossBehind(offset int64) bool {
	return slices.ContainsFunc(w.taken, func(taken int64) bool { return taken > offset })
}

// committed returns the base offsets of batches that a read_committed consumer has to see.
func committed(list []record.Batch, logStart, limit int64) (offsets []int64) {
	for i, b := range list {
		if b.IsControl() || b.LastOffset() < logStart || b.NextOffset() > limit {
			continue
		}
		if b.IsTransactional() {
			end := slices.IndexFunc(list[i:], func(m record.Batch) bool { return m.IsControl() && m.ProducerID() == b.ProducerID() })
			if end < 0 || parseEndTxn(list[i+end]).abort {
				continue
			}
		}
		offsets = append(offsets, b.BaseOffset())
	}
	return offsets
}

// retry sends the last batch of each producer again, as a client does that got no answer. Where one
// behind it is in quarantine, what is left of that is known, and a snapshot has only one.
func (w *crashWorld) retry() {
	last := map[int64]record.Batch{}
	for _, b := range w.batches {
		if b.ProducerID() >= 0 && !b.IsControl() {
			last[b.ProducerID()] = b
		}
	}
	for id, b := range last {
		if b.BaseOffset() < w.log.Offsets().LogStart || b.LastSequence()+1 != w.sequences[id] {
			continue
		}
		again := slices.Clone(b)
		again.SetBaseOffset(0)
		info, err := w.log.AppendAsLeader(again, w.epoch, AppendOptions{})
		if err != nil || !info.Duplicate || info.FirstOffset != b.BaseOffset() {
			w.t.Errorf("retry of producer %d at %d: %+v, %v", id, b.BaseOffset(), info, err)
		}
	}
}

// isQuarantined reports whether an offset is in a damaged stretch.
func (l *Log) isQuarantined(offset int64) bool {
	for _, q := range l.Quarantine() {
		if offset >= q.First && offset < q.End {
			return true
		}
	}
	return false
}
