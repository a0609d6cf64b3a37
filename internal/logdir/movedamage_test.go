package logdir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A moved partition answers as it did before, whatever is damaged in it: the same records, the same
// offsets in quarantine, the same transactions undecided, the same producers and epochs. It stays so
// after a clean stop. GREGOR_MOVES sets the number of damaged directories, GREGOR_MOVE_SEED the first seed.
func TestMoveDamaged(t *testing.T) {
	image := newMoveImage(t)
	first := intFromEnv(t, "GREGOR_MOVE_SEED", 1)
	for seed := first; seed < first+intFromEnv(t, "GREGOR_MOVES", 150) && !t.Failed(); seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		damaged := image.CrashClone(nil)
		done := damage(t, damaged, rng)
		if rng.IntN(2) == 0 {
			must(t, errors.Join(damaged.Remove("/a/"+checkpoint.CleanShutdown), damaged.SyncDir("/a")))
			done += ", unclean"
		}
		t.Run(fmt.Sprintf("seed %d: %s", seed, done), func(t *testing.T) { moveDamaged(t, damaged) })
	}
}

func moveDamaged(t *testing.T, fsys *vfs.Mem) {
	other := fsys.CrashClone(nil)
	m := openMoves(t, other)
	want := viewOf(t, m.Log(orders0))
	must(t, m.Close(context.Background()))
	m = openMoves(t, other)
	wantLater := viewOf(t, m.Log(orders0))
	must(t, m.Close(context.Background()))

	m = openMoves(t, fsys)
	mustMove(t, m, orders0, "/b")
	wantView(t, "moved", m.Log(orders0), want)
	must(t, m.Close(context.Background()))

	m = openMoves(t, fsys)
	wantView(t, "after a clean stop", m.Log(orders0), wantLater)
	must(t, m.Close(context.Background()))
}

// A crash at any operation of the move of a damaged partition costs nothing that was not lost before,
// and the next start goes on with the move.
func TestMoveDamagedCrash(t *testing.T) {
	image := newMoveImage(t).CrashClone(nil)
	dir := "/a/orders-0/"
	must(t, errors.Join(image.Remove(dir+"00000000000000000096.log"), image.SyncDir(dir)))
	m := openMoves(t, image.CrashClone(nil))
	want := readersView(t, m.Log(orders0), commitlog.ReadLogEnd)
	if n := strings.Count(strings.Join(want, "\n"), "corrupt"); n < 20 {
		t.Fatalf("%d offsets are damaged", n)
	}
	step := 3
	if intFromEnv(t, "GREGOR_CRASH_POINTS", 0) > 0 {
		step = 1
	}
	for point := 1; ; point += step {
		fsys := image.CrashClone(nil)
		m := openMoves(t, fsys)
		var mu sync.Mutex // a roll is synced beside the move
		ops := 0
		var crashed *vfs.Mem
		var at vfs.Op
		fsys.SetHook(func(op vfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if ops++; ops == point {
				at, crashed = op, fsys.CrashClone(rand.New(rand.NewPCG(uint64(point), 9)))
			}
			return nil
		})
		mustMove(t, m, orders0, "/b")
		fsys.SetHook(nil)
		must(t, m.Close(context.Background()))
		if crashed == nil {
			return
		}
		m = openMoves(t, crashed)
		for _, when := range []string{"found", "moved"} {
			if got := readersView(t, m.Log(orders0), commitlog.ReadLogEnd); !slices.Equal(got, want) {
				t.Fatalf("crash %d at %v: %s:\n%v\nwant\n%v", point, at, when, got, want)
			}
			finishMove(t, m, orders0)
			if dirOf(m, orders0) == "/a" {
				mustMove(t, m, orders0, "/b")
			}
		}
		must(t, m.Close(context.Background()))
	}
}

func moveConfig() commitlog.Config {
	c := commitlog.DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes = 900, 150
	return c
}

func openMoves(t *testing.T, fsys vfs.FS) *Manager {
	t.Helper()
	c := testConfig(fsys, "/a", "/b")
	c.Logger = slog.New(slog.DiscardHandler)
	m := mustOpen(t, c)
	must(t, m.Load(context.Background(), LoadOptions{LogConfig: func(string) commitlog.Config { return moveConfig() }}))
	return m
}

// newMoveImage makes a directory with a log of transactions of three producers, and records between,
// in three leader epochs, which was stopped cleanly. The last transaction is open.
func newMoveImage(t *testing.T) *vfs.Mem {
	fsys := vfs.NewMem()
	m := openMoves(t, fsys)
	l, err := m.Create(orders0, ordersID, moveConfig(), uuid.Zero, true)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	sequence, open := map[int64]int32{}, map[int64]bool{}
	for n := range 90 {
		l.EnterEpoch(int32(n / 30))
		id := int64(rng.IntN(4))
		switch {
		case id == 0:
			mustAppend(t, l, 2)
			continue
		case open[id] && rng.IntN(2) == 0 && n < 85:
			open[id] = false
			m := record.EndTxn{Type: record.ControlCommit, ProducerID: id, Timestamp: recordTime}
			if rng.IntN(2) == 0 {
				m.Type = record.ControlAbort
			}
			_, err = l.AppendAsLeader(record.EndTxnMarker(m), int32(n/30), commitlog.AppendOptions{Origin: record.Coordinator})
		default:
			open[id] = true
			b := record.NewBuilder(record.BuilderOptions{Transactional: true, Producer: &record.Producer{ID: id, BaseSequence: sequence[id]}})
			for i := range int64(2) {
				must(t, b.Append(record.Record{Offset: i, Timestamp: recordTime, Value: fmt.Append(nil, n)}))
			}
			sequence[id] += 2
			_, err = l.AppendAsLeader(b.Build(), int32(n/30), commitlog.AppendOptions{Origin: record.Client})
		}
		must(t, err)
		l.SetHighWatermark(l.Offsets().End)
	}
	must(t, l.IncrementLogStart(3))
	mustClose(t, m)
	return fsys
}

// damage does one or two things to the files of a partition, and tells what.
func damage(t *testing.T, fsys *vfs.Mem, rng *rand.Rand) string {
	var done []string
	for range 1 + rng.IntN(2) {
		files := slices.DeleteFunc(names(t, fsys, "/a/orders-0"), func(name string) bool { return name == checkpoint.PartitionMetadataFile })
		path := "/a/orders-0/" + files[rng.IntN(len(files))]
		f, err := fsys.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		at := rng.Int64N(size + 1)
		switch kind := rng.IntN(8); {
		case kind == 0:
			must(t, fsys.Remove(path))
			done = append(done, "removed "+path)
		case kind == 1:
			if strings.HasSuffix(path, ".log") && isBetween(t, fsys, path, at) {
				at++ // else nothing but the offsets tells of it, as of what compaction removes
			}
			must(t, f.Truncate(at))
			done = append(done, fmt.Sprintf("cut %s at %d", path, at))
		case kind == 2:
			_, err = f.WriteAt(make([]byte, min(size-at, 1+rng.Int64N(200))), at)
			done = append(done, fmt.Sprintf("zeros in %s at %d", path, at))
		case size > 0:
			bit := flipIn(t, fsys, path, rng)
			done = append(done, fmt.Sprintf("flip in %s at %d", path, bit/8))
		}
		must(t, errors.Join(err, f.Sync(), f.Close(), fsys.SyncDir("/a/orders-0")))
	}
	return strings.Join(done, ", ")
}

// isBetween reports whether a position is that of a batch.
func isBetween(t *testing.T, fsys vfs.FS, path string, position int64) bool {
	at := int64(0)
	for b := range record.Batches([]byte(readText(t, fsys, path))) {
		if at == position {
			return true
		}
		at += int64(b.Size())
	}
	return false
}

// viewOf is all that can be seen of a log.
func viewOf(t *testing.T, l *commitlog.Log) []string {
	t.Helper()
	o := l.Offsets()
	l.SetHighWatermark(o.End)
	must(t, l.Scrub(nil))
	list := append(readersView(t, l, commitlog.ReadLogEnd), readersView(t, l, commitlog.ReadCommitted)...)
	undecided, err := l.UndecidedTxns()
	must(t, err)
	o = l.Offsets()
	list = append(list, fmt.Sprint("offsets ", o.LogStart, o.HighWatermark, o.LastStable, o.End), fmt.Sprint("producers ", l.Producers()))
	for _, u := range undecided {
		list = append(list, fmt.Sprint("undecided ", u))
	}
	for epoch := range int32(4) {
		e, end := l.EpochEndOffset(epoch)
		list = append(list, fmt.Sprintf("epoch %d: %d ends at %d", epoch, e, end))
	}
	return list
}

// readersView is what a reader gets who goes on behind what it is refused.
func readersView(t *testing.T, l *commitlog.Log, isolation commitlog.Isolation) (list []string) {
	t.Helper()
	for at := l.Offsets().LogStart; ; {
		r, err := l.Read(at, 1, isolation, segment.WholeFirst)
		if c, ok := errors.AsType[*segment.CorruptError](err); ok && c.End > at {
			for ; at < c.End; at++ {
				list = append(list, fmt.Sprintf("%v %d: corrupt", isolation, at))
			}
			continue
		}
		must(t, err)
		b := make([]byte, r.Slice.Size())
		if len(b) == 0 {
			return list
		}
		_, err = r.Slice.ReadAt(b, 0)
		r.Slice.Release()
		must(t, err)
		batch, err := record.First(b)
		must(t, err)
		must(t, batch.Verify())
		if isolation != commitlog.ReadCommitted || !batch.IsControl() && !isAborted(batch, r.Aborted) {
			for r, err := range batch.Records() {
				must(t, err)
				list = append(list, fmt.Sprintf("%v %d: %x %x", isolation, r.Offset, r.Key, r.Value))
			}
		}
		at = batch.NextOffset()
	}
}

func wantView(t *testing.T, when string, l *commitlog.Log, want []string) {
	t.Helper()
	got := viewOf(t, l)
	missing := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
	more := slices.DeleteFunc(slices.Clone(got), func(s string) bool {
		// Where an index is damaged as well, what snapshots of the first log knew may be undecided now.
		careful := strings.HasPrefix(s, "undecided") || strings.HasPrefix(s, fmt.Sprint(commitlog.ReadCommitted)) && strings.HasSuffix(s, "corrupt")
		return slices.Contains(want, s) || careful
	})
	if len(missing)+len(more) > 0 {
		t.Errorf("%s: got\n%s\nwant\n%s", when, strings.Join(more, "\n"), strings.Join(missing, "\n"))
	}
	if err := l.Check(); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}
