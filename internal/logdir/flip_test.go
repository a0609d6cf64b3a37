package logdir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// TestFlip turns one bit round in a closed data directory, in a file of any kind, after a clean
// stop and after one that left neither marker nor recovery points. Whatever it was: no panic,
// the logs end where they ended, or behind that if a high watermark says so, all records outside of the touched batch are served by offset
// and by time, and a damaged .log file is named. Ten thousand: GREGOR_FLIPS=10000.
func TestFlip(t *testing.T) {
	flips := 400
	if n, err := strconv.Atoi(os.Getenv("GREGOR_FLIPS")); err == nil {
		flips = n
	}
	w := newFlipWorld(t)
	seed := rand.Uint64()
	for i := range flips {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		w.round(rng)
		if t.Failed() {
			t.Fatalf("seed %d, flip %d: %s", seed, i, w.last)
		}
	}
}

// A flipWorld is a closed directory and what is in it.
type flipWorld struct {
	t     *testing.T
	image *vfs.Mem
	files []string // paths of those that are not empty
	logs  map[topic.Partition][]flipBatch
	last  string // what the last round did
}

// A flipBatch is a batch and where it lies.
type flipBatch struct {
	path       string
	start, end int64
	batch      record.Batch
}

func newFlipWorld(t *testing.T) *flipWorld {
	w := &flipWorld{t: t, image: vfs.NewMem(), logs: map[topic.Partition][]flipBatch{}}
	m := mustOpenFlip(t, w.image, slog.New(slog.DiscardHandler))
	c := commitlog.DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes = 3000, 300
	for i, name := range []string{"plain", "txn"} {
		p := topic.Partition{Topic: name}
		l, err := m.Create(p, uuid.New(), c, uuid.Zero, true)
		if err != nil {
			t.Fatal(err)
		}
		for n := range int32(60) {
			if n == 30 {
				l.EnterEpoch(1)
			}
			w.append(l, n, i == 1)
		}
		l.SetHighWatermark(l.Offsets().End)
		must(t, l.IncrementLogStart(4))
	}
	mustClose(t, m)
	w.walk("/d", func(path string, size int64) {
		f, err := w.image.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		must(t, errors.Join(f.Sync(), f.Close(), w.image.SyncDir(filepath.Dir(path))))
		if size > 0 && filepath.Base(path) != "meta.properties" {
			w.files = append(w.files, path)
		}
	})
	for p := range w.logs {
		w.locate(p)
	}
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustOpenFlip opens the directory /d of a file system.
func mustOpenFlip(t *testing.T, fsys vfs.FS, logger *slog.Logger) *Manager {
	t.Helper()
	m, err := Open(Config{FS: fsys, Dirs: []string{"/d"}, Logger: logger, RecoveryThreads: 1})
	must(t, err)
	must(t, m.Load(context.Background(), LoadOptions{LogConfig: func(string) commitlog.Config {
		c := commitlog.DefaultConfig()
		c.SegmentBytes, c.IndexIntervalBytes = 3000, 300
		return c
	}}))
	return m
}

// append adds a batch with three records; of three in a row, in a log with transactions, the
// last two are one that is aborted.
func (w *flipWorld) append(l *commitlog.Log, n int32, txn bool) {
	o := record.BuilderOptions{Transactional: txn && n%3 > 0}
	if o.Transactional { // an id for each transaction
		o.Producer = &record.Producer{ID: int64(1000 + n/3), BaseSequence: 3 * (n%3 - 1)}
	}
	b := record.NewBuilder(o)
	for i := range int64(3) {
		value := binary.BigEndian.AppendUint64(nil, uint64(l.Offsets().End+i))
		must(w.t, b.Append(record.Record{Offset: i, Timestamp: recordTime + l.Offsets().End + i, Value: append(value, make([]byte, n)...)}))
	}
	set := b.Build()
	_, err := l.AppendAsLeader(set, l.LatestEpoch(), commitlog.AppendOptions{})
	must(w.t, err)
	w.logs[l.Partition()] = append(w.logs[l.Partition()], flipBatch{batch: bytes.Clone(set)})
	if txn && n%3 == 2 {
		marker := record.EndTxnMarker(record.EndTxn{Type: record.ControlAbort, ProducerID: int64(1000 + n/3), Timestamp: recordTime + l.Offsets().End})
		_, err := l.AppendAsLeader(marker, l.LatestEpoch(), commitlog.AppendOptions{Origin: record.Coordinator})
		must(w.t, err)
		w.logs[l.Partition()] = append(w.logs[l.Partition()], flipBatch{batch: bytes.Clone(marker)})
	}
}

func (w *flipWorld) walk(dir string, visit func(path string, size int64)) {
	entries, err := w.image.ReadDir(dir)
	must(w.t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			w.walk(path, visit)
			continue
		}
		info, err := e.Info()
		must(w.t, err)
		visit(path, info.Size())
	}
}

// locate finds where the batches of a log lie.
func (w *flipWorld) locate(p topic.Partition) {
	i := 0
	w.walk("/d/"+p.String(), func(path string, size int64) {
		if !strings.HasSuffix(path, ".log") {
			return
		}
		for at := int64(0); at < size; i++ {
			b := &w.logs[p][i]
			b.path, b.start, b.end = path, at, at+int64(b.batch.Size())
			at = b.end
		}
	})
	if i != len(w.logs[p]) {
		w.t.Fatalf("%v: %d batches are in files, want %d", p, i, len(w.logs[p]))
	}
}

func (w *flipWorld) round(rng *rand.Rand) {
	mem := w.image.CrashClone(nil)
	clean := rng.IntN(2) == 0
	if !clean {
		must(w.t, mem.Remove("/d/"+checkpoint.CleanShutdown))
		must(w.t, mem.Remove("/d/"+checkpoint.RecoveryPoints))
	}
	path := w.files[rng.IntN(len(w.files))]
	if base := filepath.Base(path); !clean && (base == checkpoint.CleanShutdown || base == checkpoint.RecoveryPoints) {
		return
	}
	bit := flipIn(w.t, mem, path, rng)
	w.last = "clean " + strconv.FormatBool(clean) + ", " + path + " byte " + strconv.FormatInt(bit/8, 10) + " bit " + strconv.FormatInt(bit%8, 10)
	var report strings.Builder
	m := mustOpenFlip(w.t, mem, slog.New(slog.NewTextHandler(&report, nil)))
	for p, batches := range w.logs {
		l := m.Log(p)
		if l == nil {
			w.t.Errorf("%v is not there; report:\n%s", p, report.String())
			return
		}
		w.check(l, batches, path, bit/8, clean, &report)
	}
	must(w.t, m.Close(context.Background()))
}

func flipIn(t *testing.T, fsys vfs.FS, path string, rng *rand.Rand) (bit int64) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	modified, err := f.ModTime()
	must(t, err)
	size, err := f.Size()
	must(t, err)
	bit = rng.Int64N(size * 8)
	var b [1]byte
	_, err = f.ReadAt(b[:], bit/8)
	must(t, err)
	b[0] ^= 1 << (bit % 8)
	_, err = f.WriteAt(b[:], bit/8)
	must(t, errors.Join(err, f.Close(), fsys.SetModTime(path, modified)))
	return bit
}

func (w *flipWorld) check(l *commitlog.Log, batches []flipBatch, path string, position int64, clean bool, report *strings.Builder) {
	touched := -1
	for i, b := range batches {
		if b.path == path && position >= b.start && position < b.end {
			touched = i
		}
	}
	last := batches[len(batches)-1].batch
	o := l.Offsets()
	end := last.NextOffset()
	if touched == len(batches)-1 && !clean && position < batches[touched].start+8 {
		return // nothing tells where a last batch belongs: the checksum leaves the base offset out
	}
	if filepath.Base(path) == checkpoint.HighWatermarks && !clean {
		end = max(end, o.End) // consumers may have seen what a crash has lost
	}
	if o.End != end {
		w.t.Errorf("%v: log end %d, want %d; report:\n%s", l.Partition(), o.End, end, report)
		return
	}
	if filepath.Base(path) == checkpoint.LogStartOffsets {
		return // it may hide records, as it is there to do
	}
	got := served(w.t, l)
	for i, b := range batches {
		for offset := max(4, b.batch.BaseOffset()); offset < b.batch.NextOffset() && !b.batch.IsControl(); offset++ {
			if value, ok := got[offset]; i != touched && (!ok || value != offset) || ok && value != offset {
				w.t.Errorf("%v: offset %d: got %d, %v; report:\n%s", l.Partition(), offset, value, ok, report)
				return
			}
		}
	}
	for i, b := range batches {
		if i == touched || b.batch.IsControl() || b.batch.BaseOffset() < 4 || i%5 > 0 {
			continue
		}
		want := b.batch.BaseOffset() + 1
		t, ok, err := l.Lookup(commitlog.LookupRequest{Timestamp: recordTime + want, Isolation: commitlog.ReadLogEnd})
		if !ok || err != nil || t.Offset != want {
			w.t.Errorf("%v: by time: got %+v, %v, %v, want %d; report:\n%s", l.Partition(), t, ok, err, want, report)
			return
		}
	}
	must(w.t, l.Scrub(nil))
	if err := l.Check(); err != nil && (touched >= 0 || !strings.Contains(err.Error(), path)) {
		w.t.Errorf("%v: %v; report:\n%s", l.Partition(), err, report)
	}
	// The leader epoch is outside of the checksum.
	if header := position - batches[max(touched, 0)].start; touched >= 0 && (header < 12 || header >= 16) && !strings.Contains(report.String(), path) {
		w.t.Errorf("%v: nothing is said of %s:\n%s", l.Partition(), path, report)
	}
}

// served reads a log as a client does that goes on behind what it is refused, and returns the
// values by offset.
func served(t *testing.T, l *commitlog.Log) map[int64]int64 {
	t.Helper()
	got := map[int64]int64{}
	end := l.Offsets().End
	for next := l.Offsets().LogStart; next < end; {
		r, err := l.Read(next, 700, commitlog.ReadLogEnd, true)
		if errors.Is(err, record.ErrCorrupt) {
			next++
			continue
		}
		must(t, err)
		b := make([]byte, r.Slice.Size())
		if len(b) == 0 {
			t.Errorf("nothing at %d", next)
			return got
		}
		_, err = r.Slice.ReadAt(b, 0)
		must(t, err)
		r.Slice.Release()
		for batch, err := range record.Batches(b) {
			if err != nil {
				break // cut by the limit
			}
			if err := batch.Verify(); err != nil {
				t.Errorf("a broken batch is served at %d: %v", next, err)
				return got
			}
			for rec, err := range batch.Records() {
				must(t, err)
				if !batch.IsControl() {
					got[rec.Offset] = int64(binary.BigEndian.Uint64(rec.Value))
				}
			}
			next = batch.NextOffset()
		}
	}
	return got
}
