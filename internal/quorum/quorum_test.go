package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusterID = "LVQcuMjwTJeYGJVmtzDA1w"

func options(fsys vfs.FS, dir string) Options {
	return Options{FS: fsys, Dir: dir, NodeID: 1, ClusterID: clusterID, Logger: slog.New(slog.DiscardHandler)}
}

func mustOpen(t testing.TB, o Options) *Quorum {
	t.Helper()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, q) })
	return q
}

func mustClose(t testing.TB, q *Quorum) {
	t.Helper()
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// memDir returns a file system in memory with a log directory.
func memDir(t testing.TB) (*vfs.Mem, string) {
	t.Helper()
	fsys := vfs.NewMem()
	if err := errors.Join(vfs.MkdirAll(fsys, "/data", 0o755), fsys.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return fsys, "/data"
}

// topicID is an id made from a number.
func topicID(n int) (id uuid.UUID) {
	id[0], id[14], id[15] = 1, byte(n>>8), byte(n)
	return id
}

// topicRecords creates topic n with one partition.
func topicRecords(n int) []metadata.Record {
	return []metadata.Record{
		&metadata.TopicRecord{Name: fmt.Sprintf("topic-%d", n), TopicID: topicID(n)},
		&metadata.PartitionRecord{TopicID: topicID(n), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1, Directories: []uuid.UUID{uuid.Unassigned}},
	}
}

func mustPropose(t testing.TB, q *Quorum, records ...metadata.Record) *metadata.Image {
	t.Helper()
	img, err := propose(context.Background(), q, records)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// propose commits records and returns the image after them.
func propose(ctx context.Context, q *Quorum, records []metadata.Record) (*metadata.Image, error) {
	for {
		wait, err := q.Propose(ctx, q.Tail(), records)
		if errors.Is(err, ErrStale) {
			continue
		}
		if err == nil {
			err = wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		return q.Image(), nil
	}
}

// stateOf is the encoded records of an image.
func stateOf(img *metadata.Image) (list []string) {
	for r := range img.Records() {
		list = append(list, string(metadata.Append(nil, r, metadata.LevelCurrent)))
	}
	return list
}

// names lists the files of the metadata log with a suffix.
func names(t testing.TB, fsys vfs.FS, dir, suffix string) (list []string) {
	t.Helper()
	entries, err := fsys.ReadDir(logDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			list = append(list, e.Name())
		}
	}
	return list
}

func TestOpenEmpty(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	if img := q.Image(); img.Feature(metadata.MetadataVersion) != metadata.LevelCurrent || img.ClusterID != clusterID || img.Epoch != 1 {
		t.Errorf("image of a new cluster: %+v", img)
	}
	if got := q.NextOffset(); got != 4 { // leader change, begin, feature, end
		t.Errorf("next offset %d, want 4", got)
	}
	mustClose(t, q)
	want := []string{
		"00000000000000000000-0000000000.checkpoint", "00000000000000000000.log", "00000000000000000004.snapshot",
		"leader-epoch-checkpoint", "partition.metadata", "quorum-state",
	}
	if got := names(t, fsys, dir, ""); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	f := func(name, want string) {
		t.Helper()
		got, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), name), 1000)
		if err != nil || string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	// As Apache Kafka 4.4.0 leaves them.
	f("quorum-state", `{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`)
	f("leader-epoch-checkpoint", "0\n1\n1 0\n")
	f("partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
}

func TestReopen(t *testing.T) {
	fsys, dir := memDir(t)
	var state []string
	for n := range 5 {
		q := mustOpen(t, options(fsys, dir))
		if got := stateOf(q.Image()); n > 0 && !slices.Equal(got, state) {
			t.Fatalf("start %d: the image differs from the one before the stop", n)
		}
		img := mustPropose(t, q, topicRecords(n)...)
		if img.Epoch != int32(n)+1 || img.Offset != q.NextOffset()-1 || img.NumTopics() != n+1 {
			t.Errorf("start %d: epoch %d, offset %d of %d, %d topics", n, img.Epoch, img.Offset, q.NextOffset(), img.NumTopics())
		}
		state = stateOf(img)
		mustClose(t, q)
	}
}

func TestProposeRefuses(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	before := q.NextOffset()
	if _, err := propose(context.Background(), q, []metadata.Record{&metadata.RemoveTopicRecord{TopicID: topicID(1)}}); !errors.Is(err, metadata.ErrCorrupt) {
		t.Errorf("a record that does not fit: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := propose(ctx, q, topicRecords(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	if got := q.NextOffset(); got != before || q.Image().NumTopics() != 0 {
		t.Errorf("refused records were written: offset %d, want %d", got, before)
	}
	mustClose(t, q)
	if _, err := propose(context.Background(), q, topicRecords(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestSubscribe(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	mustPropose(t, q, topicRecords(0)...)
	var last *metadata.Image
	calls := 0
	q.Subscribe(func(img *metadata.Image, d *metadata.Delta) {
		if calls == 0 && len(d.ChangedTopics) != 1 || calls > 0 && d.Before != last || d.After != img {
			t.Errorf("call %d: delta %+v", calls, d)
		}
		last = img
		calls++
	})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			img, err := propose(context.Background(), q, topicRecords(n+1))
			if err != nil || img.TopicByID(topicID(n+1)) == nil {
				t.Errorf("topic %d: %v", n+1, err)
			}
		})
	}
	wg.Wait()
	if calls != 21 || last != q.Image() || last.NumTopics() != 21 {
		t.Errorf("%d calls, want 21", calls)
	}
}

// The log does not grow for ever, and what a snapshot replaced is gone.
func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		o := options(fsys, dir)
		o.SnapshotBytes = 4 << 10
		q := mustOpen(t, o)
		for n := 0; n < 400; n++ { // 300 KiB
			mustPropose(t, q, topicRecords(n%20)...)
			mustPropose(t, q, &metadata.RemoveTopicRecord{TopicID: topicID(n % 20)})
		}
		mustPropose(t, q, topicRecords(1)...)
		synctest.Wait() // snapshots are taken in the background
		state, end := stateOf(q.Image()), q.NextOffset()
		mustClose(t, q)
		if got := names(t, fsys, dir, checkpoint.SnapshotSuffix); len(got) > 2 {
			t.Errorf("checkpoints %v, want at most 2", got)
		}
		if got := names(t, fsys, dir, logSuffix); len(got) > 4 {
			t.Errorf("%d segments, want at most 4", len(got))
		}
		if names(t, fsys, dir, logSuffix)[0] == segmentName(0) {
			t.Error("the first segment is still there")
		}
		start, _ := parseSegment(names(t, fsys, dir, logSuffix)[0])
		checkEpochs(t, fsys, dir, checkpoint.EpochEntry{Epoch: 1, StartOffset: start}) // as check wants it
		q = mustOpen(t, o)
		if got := stateOf(q.Image()); !slices.Equal(got, state) {
			t.Error("the image differs after a start from a snapshot")
		}
		if got := q.NextOffset(); got != end+1 {
			t.Errorf("next offset %d, want %d", got, end+1)
		}
	})
}

func TestDamagedSnapshot(t *testing.T) {
	fsys, dir := memDir(t)
	copyIn(t, fsys, dir, "kafka-4.4.0-kraft")
	q := mustOpen(t, options(fsys, dir))
	state := stateOf(q.Image())
	mustClose(t, q)
	path := filepath.Join(logDir(dir), "00000000000000000323-0000000001.checkpoint")
	overwrite(t, fsys, path, 5000, []byte{0xff, 0xff})
	q = mustOpen(t, options(fsys, dir)) // the one before it and the log behind that do
	if !slices.Equal(stateOf(q.Image()), state) {
		t.Error("the image differs")
	}
	mustClose(t, q)
	for _, name := range names(t, fsys, dir, checkpoint.SnapshotSuffix) {
		overwrite(t, fsys, filepath.Join(logDir(dir), name), 90, []byte{0xff, 0xff})
	}
	q = mustOpen(t, options(fsys, dir)) // nor is any needed while the log begins at 0
	if !slices.Equal(stateOf(q.Image()), state) {
		t.Error("the image differs")
	}
}

func TestMissingBeginning(t *testing.T) {
	fsys, dir := memDir(t)
	o := options(fsys, dir)
	q := mustOpen(t, o)
	mustPropose(t, q, topicRecords(1)...)
	mustClose(t, q)
	if err := fsys.Rename(filepath.Join(logDir(dir), segmentName(0)), filepath.Join(logDir(dir), segmentName(9))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func overwrite(t testing.TB, fsys vfs.FS, path string, position int64, b []byte) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, position)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTornTail(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	mustPropose(t, q, topicRecords(1)...)
	state, end := stateOf(q.Image()), q.NextOffset()
	mustClose(t, q)
	path := filepath.Join(logDir(dir), segmentName(0))
	whole, err := vfs.ReadFile(fsys, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range [][]byte{{0}, make([]byte, 5000), whole[:50], append(whole[:70:70], make([]byte, 500)...), []byte(strings.Repeat("\xff", 100))} {
		overwrite(t, fsys, path, int64(len(whole)), tail)
		q := mustOpen(t, options(fsys, dir))
		if got := stateOf(q.Image()); !slices.Equal(got, state) || q.NextOffset() != end+1 {
			t.Errorf("tail of %d bytes: offset %d, want %d", len(tail), q.NextOffset(), end+1)
		}
		mustClose(t, q)
		overwriteFile(t, fsys, path, whole)
	}
}

func overwriteFile(t testing.TB, fsys vfs.FS, path string, b []byte) {
	t.Helper()
	if err := vfs.WriteFileAtomic(fsys, path, b); err != nil {
		t.Fatal(err)
	}
}

// A changed byte with good batches behind it is no torn tail: nothing is cut.
func TestCorruptMiddle(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	for n := range 5 {
		mustPropose(t, q, topicRecords(n)...)
	}
	mustClose(t, q)
	path := filepath.Join(logDir(dir), segmentName(0))
	for _, position := range []int64{8, 11, 30, 80, 150, 300} {
		before, err := vfs.ReadFile(fsys, path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, fsys, path, position, []byte{before[position] ^ 0x55})
		_, err = Open(options(fsys, dir))
		if corrupt := (*CorruptError)(nil); !errors.As(err, &corrupt) || corrupt.Path != path || corrupt.Position > position {
			t.Errorf("byte %d changed: got %v, want a CorruptError for a batch at or before it", position, err)
		}
		if after, _ := vfs.ReadFile(fsys, path, 1<<20); len(after) != len(before) {
			t.Errorf("the file was cut from %d to %d bytes", len(before), len(after))
		}
		overwriteFile(t, fsys, path, before)
	}
}

func TestWriteError(t *testing.T) {
	fsys, dir := memDir(t)
	o := options(fsys, dir)
	failed := make(chan error, 1)
	o.OnFailure = func(err error) { failed <- err }
	q := mustOpen(t, o)
	mustPropose(t, q, topicRecords(1)...)
	state := stateOf(q.Image())
	broken := errors.New("the disk is gone")
	fsys.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, logSuffix) {
			return broken
		}
		return nil
	})
	if _, err := propose(context.Background(), q, topicRecords(2)); !errors.Is(err, broken) {
		t.Errorf("got %v, want the disk's error", err)
	}
	if err := <-failed; !errors.Is(err, broken) {
		t.Errorf("OnFailure got %v", err)
	}
	fsys.SetHook(nil)
	if _, err := propose(context.Background(), q, topicRecords(3)); !errors.Is(err, broken) {
		t.Errorf("after the failure: got %v, want the disk's error", err)
	}
	if !slices.Equal(stateOf(q.Image()), state) {
		t.Error("the image has changed")
	}
	q.Close()
	q = mustOpen(t, o)
	mustPropose(t, q, topicRecords(3)...)
}

// Whatever operation fails, Open returns an error or works.
func TestOpenErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	for fail := range 40 {
		fsys, dir := memDir(t)
		copyIn(t, fsys, dir, "kafka-3.9.1-kraft")
		var n int
		var mu sync.Mutex
		fsys.SetHook(func(vfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if n++; n > fail {
				return broken
			}
			return nil
		})
		q, err := Open(options(fsys, dir))
		if err == nil {
			q.Close() // the files fail too
			continue
		}
		if !errors.Is(err, broken) {
			t.Errorf("operation %d fails: got %v", fail, err)
		}
	}
}

// Idle, a quorum does nothing.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		synctest.Wait()
		end := q.NextOffset()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := q.NextOffset(); got != end {
			t.Errorf("a day of idling moves the log from %d to %d", end, got)
		}
		mustPropose(t, q, topicRecords(1)...)
		mustClose(t, q)
	})
}

func BenchmarkOpen(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			dir := b.TempDir()
			b.StartTimer()
			q, err := Open(options(vfs.OS, dir))
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			mustClose(b, q)
			b.StartTimer()
		}
	})
	for _, topics := range []int{1, 1000} {
		b.Run(fmt.Sprintf("topics=%d", topics), func(b *testing.B) {
			dir := b.TempDir()
			q := mustOpen(b, options(vfs.OS, dir))
			var records []metadata.Record
			for n := range topics {
				records = append(records, topicRecords(n)...)
			}
			mustPropose(b, q, records...)
			mustClose(b, q)
			for b.Loop() {
				q, err := Open(options(vfs.OS, dir))
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				mustClose(b, q)
				b.StartTimer()
			}
		})
	}
}

func BenchmarkPropose(b *testing.B) {
	q := mustOpen(b, options(vfs.OS, b.TempDir()))
	value := "1"
	for b.Loop() {
		mustPropose(b, q, &metadata.ConfigRecord{ResourceType: metadata.ResourceBroker, Name: "k", Value: &value})
	}
	runtime.KeepAlive(q)
}

// TestReadNothingAfterOpen: raft panics when it cannot read an entry that load found, and may
// come to the last ones only after Open.
func TestReadNothingAfterOpen(t *testing.T) {
	fsys, dir := memDir(t)
	for range 3 { // each start writes a batch that begins its term
		mustClose(t, mustOpen(t, options(fsys, dir)))
	}
	q := mustOpen(t, options(fsys, dir))
	fsys.SetHook(func(op vfs.Op) error { return errors.New("the disk is gone") })
	defer fsys.SetHook(nil)
	last, _ := q.log.LastIndex()
	for index := q.caughtUpAt + 1; index < last; index++ {
		if err := q.log.GetLog(index, new(raft.Log)); err != nil {
			t.Errorf("entry %d: %v", index, err)
		}
	}
	if last < q.caughtUpAt+3 {
		t.Errorf("%d entries behind the last command, want 3", last-q.caughtUpAt)
	}
}
