package logdir

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

var errCrashed = errors.New("crashed")

// TestCrash does random things to two log directories, with a crash at a random operation
// of the file system, then starts again on what survived, and goes on, twice. Nothing
// flushed may be lost, no offset reused, every log must pass Check, and a marker must
// mean what it says. GREGOR_CRASH_POINTS sets the number of crashes, GREGOR_CRASH_SEED the
// first seed.
func TestCrash(t *testing.T) {
	points := intFromEnv(t, "GREGOR_CRASH_POINTS", 400)
	if testing.Short() {
		points = 50
	}
	seed := uint64(intFromEnv(t, "GREGOR_CRASH_SEED", 1))
	seen := 0
	for ; seen < points && !t.Failed(); seed++ {
		w := newWorld(t, seed)
		for range 3 {
			if w.live() {
				seen++
			}
			if t.Failed() {
				t.Fatalf("seed %d, crash %d at %s; history:\n%s", seed, w.crashes, w.crashedAt, w.history)
			}
		}
	}
	t.Logf("%d crashes", seen)
}

func intFromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// A world is a file system, the broker's directories on it, and what must be there.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	fsys   *vfs.Mem
	logs   map[topic.Partition]*crashLog
	nextID byte
	value  uint64 // of the next record

	phase   phase // of the manager
	crashes int
	history []byte

	// crash is the crash to come. Operations of several goroutines meet there.
	crash struct {
		sync.Mutex
		left  int // operations until it happens
		clone *vfs.Mem
	}
	crashedAt string
}

type phase int

const (
	stopped phase = iota // by Close, without an error
	starting
	running
	stopping
)

// A crashLog is what must be there of a partition.
type crashLog struct {
	id      uuid.UUID
	created bool // Create has returned
	deleted bool // Delete was called
	flushed int64
	start   int64          // the highest log start that was asked for
	values  []uint64       // of the records by offset, those of an append that failed included
	lost    map[int64]bool // offsets in quarantine
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{
		t:    t,
		rng:  rand.New(rand.NewPCG(seed, 7)),
		fsys: vfs.NewMem(),
		logs: make(map[topic.Partition]*crashLog),
	}
}

func (w *world) note(format string, args ...any) {
	w.history = append(fmt.Appendf(w.history, format, args...), '\n')
}

// live starts, works, and stops, with a crash somewhere, or none. It reports a crash, and
// leaves what survived it as the file system.
func (w *world) live() (crashed bool) {
	w.arm(1 + w.rng.IntN(400))
	if m := w.start(); m != nil {
		w.work(m)
		w.stop(m)
	}
	w.fsys.SetHook(nil)
	w.crash.Lock()
	defer w.crash.Unlock()
	if w.crash.clone == nil {
		return false
	}
	w.note("crash at %s", w.crashedAt)
	w.checkMarker(w.crash.clone)
	w.fsys, w.crash.clone = w.crash.clone, nil
	w.crashes++
	return true
}

// arm prepares the crash: a clone is taken before one of the changes to come, which fails
// then, as all do after it.
func (w *world) arm(left int) {
	w.crash.left = left
	seed := w.rng.Uint64()
	w.fsys.SetHook(func(op vfs.Op) error {
		w.crash.Lock()
		defer w.crash.Unlock()
		if w.crash.clone != nil {
			return errCrashed
		}
		if !op.Kind.Changes() {
			return nil
		}
		if w.crash.left--; w.crash.left > 0 {
			return nil
		}
		w.crashedAt = op.String()
		w.crash.clone = w.fsys.CrashClone(rand.New(rand.NewPCG(seed, 11)))
		return errCrashed
	})
}

func (w *world) crashed() bool {
	w.crash.Lock()
	defer w.crash.Unlock()
	return w.crash.clone != nil
}

// unexpected reports an error that no crash explains.
func (w *world) unexpected(what string, err error) bool {
	w.t.Helper()
	if err == nil {
		return false
	}
	if !w.crashed() {
		w.t.Errorf("%s: %v", what, err)
	}
	return true
}

func (w *world) start() *Manager {
	w.phase = starting
	c := testConfig(w.fsys, "/a", "/b")
	c.OnDirFailure = func(dir string, _ uuid.UUID, err error) { w.unexpected(dir, err) }
	m, err := Open(c)
	if w.unexpected("open", err) {
		return nil
	}
	err = m.Load(context.Background(), LoadOptions{
		LogConfig: func(string) commitlog.Config { return crashConfig() },
		TopicID:   func(name string) uuid.UUID { return w.logs[topic.Partition{Topic: name}].id },
	})
	if w.unexpected("load", err) {
		w.stop(m)
		return nil
	}
	if !w.crashed() {
		w.phase = running
		w.checkAll(m)
	}
	return m
}

func crashConfig() commitlog.Config {
	c := commitlog.DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes = 600, 100
	c.RetentionBytes = 1500
	return c
}

// problem reports what no crash explains.
func (w *world) problem(format string, args ...any) {
	w.t.Helper()
	if !w.crashed() {
		w.t.Errorf(format, args...)
	}
}

// checkAll compares the logs with what must be there, and takes over what is. Tasks of the
// logs run meanwhile, and may meet the crash.
func (w *world) checkAll(m *Manager) {
	for _, d := range m.dirs {
		d.mu.Lock()
		if len(d.mu.parked) > 0 || d.mu.err != nil {
			w.problem("%s: left out %v, failure %v", d.path, d.mu.parked, d.mu.err)
		}
		d.mu.Unlock()
	}
	for p, want := range w.logs {
		l := m.Log(p)
		switch {
		case w.crashed():
			return
		case l == nil && want.flushed > 0 && !want.deleted:
			w.problem("%v is gone", p)
		case l == nil:
			delete(w.logs, p)
		default:
			w.checkLog(l, want)
			want.created, want.deleted = true, false
		}
	}
	for p := range m.Logs() {
		if w.logs[p] == nil {
			w.problem("%v is there: it was deleted, or never created", p)
		}
	}
}

func (w *world) checkLog(l *commitlog.Log, want *crashLog) {
	p, o := l.Partition(), l.Offsets()
	w.note("%v: start %d high watermark %d end %d, flushed %d appended %d", p, o.LogStart, o.HighWatermark, o.End, want.flushed, len(want.values))
	if err := errors.Join(l.Scrub(nil), l.Check()); err != nil {
		w.problem("%v: %v", p, err)
	}
	if o.End < want.flushed || o.End > int64(len(want.values)) {
		w.problem("%v: log end %d, want %d to %d", p, o.End, want.flushed, len(want.values))
		return
	}
	if id := l.TopicID(); id != want.id {
		w.problem("%v: topic id %v, want %v", p, id, want.id)
	}
	if o.LogStart > want.start {
		w.problem("%v: log start %d, want at most %d", p, o.LogStart, want.start)
	}
	want.values = want.values[:o.End]
	w.checkRecords(l, want)
}

func (w *world) checkRecords(l *commitlog.Log, want *crashLog) {
	o := l.Offsets()
	next := o.LogStart
	for next < o.End {
		r, err := l.Read(next, 1, commitlog.ReadLogEnd, segment.WholeFirst)
		if corrupt, ok := errors.AsType[*segment.CorruptError](err); ok && corrupt.End > next && (want.lost[next] || next >= want.flushed) {
			for ; next < corrupt.End; next++ { // in front of what a crash has left
				want.lost[next] = true
			}
			continue
		}
		if err != nil {
			w.problem("%v: read %d: %v", l.Partition(), next, err)
			return
		}
		bytes := make([]byte, r.Slice.Size())
		_, err = r.Slice.ReadAt(bytes, 0)
		r.Slice.Release()
		if err != nil {
			w.problem("%v: read %d: %v", l.Partition(), next, err)
			return
		}
		b, err := record.First(bytes)
		if err != nil {
			w.problem("%v: read %d: %v", l.Partition(), next, err)
			return
		}
		for r, err := range b.Records() {
			if err != nil || r.Offset >= o.LogStart && binary.BigEndian.Uint64(r.Value) != want.values[r.Offset] {
				w.problem("%v: offset %d: got %x, %v, want %x", l.Partition(), r.Offset, r.Value, err, want.values[r.Offset])
				return
			}
		}
		next = b.NextOffset()
	}
}

// checkMarker looks for markers in what a crash left. While the broker runs there is none,
// and where there is one all is flushed.
func (w *world) checkMarker(clone *vfs.Mem) {
	for _, dir := range []string{"/a", "/b"} {
		if !hasMarker(w.t, clone, dir) {
			continue
		}
		if w.phase == running {
			w.t.Errorf("%s has a marker while the broker runs", dir)
		}
		for p, l := range w.logs {
			if exists(w.t, clone, dir+"/"+p.String()) && !l.deleted {
				l.flushed = int64(len(l.values))
			}
		}
	}
}

// work does random things until the crash, or for a while.
func (w *world) work(m *Manager) {
	for range w.rng.IntN(120) {
		p := topic.Partition{Topic: "t" + strconv.Itoa(w.rng.IntN(5))}
		l, want := m.Log(p), w.logs[p]
		if w.crashed() || w.t.Failed() {
			return // logs may be gone from m
		}
		if l == nil {
			w.create(m, p)
			continue
		}
		switch w.rng.IntN(20) {
		case 0:
			w.note("delete %v", p)
			want.deleted = true
			if !w.unexpected("delete", m.Delete(p)) {
				delete(w.logs, p)
			}
		case 1, 2, 3:
			w.note("flush %v", p)
			if !w.unexpected("flush", l.Flush()) {
				want.flushed = int64(len(want.values))
			}
		case 4:
			w.note("checkpoints")
			for k := range checkpointKinds {
				m.checkpointAll(k)
			}
		case 5:
			o := l.Offsets()
			start := o.LogStart + w.rng.Int64N(o.HighWatermark-o.LogStart+1)
			w.note("log start %v %d", p, start)
			want.start = max(want.start, start)
			w.unexpected("log start", l.IncrementLogStart(start))
		case 6:
			w.note("retention")
			for p, l := range m.Logs() {
				w.logs[p].start = max(w.logs[p].start, l.Offsets().HighWatermark)
			}
			m.retain(time.UnixMilli(recordTime))
		case 7:
			w.note("remove what was deleted")
			m.deletions.removeDue(time.Now().Add(time.Hour))
		default:
			w.append(l, want)
		}
	}
}

func (w *world) create(m *Manager, p topic.Partition) {
	w.note("create %v", p)
	w.nextID++
	l := &crashLog{id: uuid.UUID{0: 1, 15: w.nextID}, lost: map[int64]bool{}}
	w.logs[p] = l
	_, err := m.Create(p, l.id, crashConfig(), uuid.Zero, true)
	l.created = !w.unexpected("create", err)
}

func (w *world) append(l *commitlog.Log, want *crashLog) {
	count := 1 + w.rng.IntN(4)
	w.note("append %v %d at %d", l.Partition(), count, len(want.values))
	b := record.NewBuilder(record.BuilderOptions{})
	for i := range count {
		value := make([]byte, 8+w.rng.IntN(60))
		binary.BigEndian.PutUint64(value, w.value)
		want.values = append(want.values, w.value)
		w.value++
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: recordTime, Value: value}); err != nil {
			w.t.Fatal(err)
		}
	}
	info, err := l.AppendAsLeader(b.Build(), int32(w.crashes), commitlog.AppendOptions{})
	if !w.unexpected("append", err) {
		l.SetHighWatermark(info.LastOffset + 1 - w.rng.Int64N(2))
	}
}

// stop closes the manager. After a crash that only ends its goroutines.
func (w *world) stop(m *Manager) {
	if !w.crashed() {
		w.phase = stopping
		w.note("close")
	}
	if w.unexpected("close", m.Close(context.Background())) || w.crashed() {
		return
	}
	w.phase = stopped
	for p, l := range w.logs {
		l.flushed = int64(len(l.values))
		if dirs := []string{"/a/" + p.String(), "/b/" + p.String()}; !slices.ContainsFunc(dirs, func(dir string) bool { return exists(w.t, w.fsys, dir) }) {
			w.t.Errorf("%v is gone after close", p)
		}
	}
	for _, dir := range []string{"/a", "/b"} {
		if !hasMarker(w.t, w.fsys, dir) {
			w.t.Errorf("%s has no marker after a clean stop", dir)
		}
	}
}

// A crash leaves fewer records than were deleted, the log goes on at its log start, and a second crash
// comes at any operation after that: the offsets stay used. (Seeds 20476 and 40514 of TestCrash: what
// said where the log began went before its first segment was on disk.)
func TestCrashBelowLogStart(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 3)
	must(t, l.Flush())
	for range 5 {
		mustAppend(t, l, 1)
	}
	must(t, l.IncrementLogStart(8))
	for k := range checkpointKinds {
		m.checkpointAll(k)
	}
	first := fsys.CrashClone(nil)
	must(t, m.Close(context.Background()))
	for point, seen := 1, true; seen; point++ {
		for seed := range uint64(4) {
			fsys := first.CrashClone(nil)
			seen = false
			ops := 0
			var second *vfs.Mem
			fsys.SetHook(func(op vfs.Op) error {
				if ops++; ops == point {
					second = fsys.CrashClone(rand.New(rand.NewPCG(seed, uint64(point))))
				}
				return nil
			})
			m := mustLoad(t, testConfig(fsys, "/a"))
			if end := m.Log(orders0).Offsets().End; end != 8 {
				t.Fatalf("after the first crash: log end %d, want 8", end)
			}
			for k := range checkpointKinds {
				m.checkpointAll(k)
			}
			mustCreate(t, m, orders1)
			fsys.SetHook(nil)
			must(t, m.Close(context.Background()))
			if second == nil {
				continue
			}
			seen = true
			m = mustLoad(t, testConfig(second, "/a"))
			if end := m.Log(orders0).Offsets().End; end != 8 {
				t.Fatalf("after a second crash, at operation %d: log end %d, want 8", point, end)
			}
			must(t, m.Close(context.Background()))
		}
	}
}
