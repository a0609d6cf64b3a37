package logdir

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

var errDisk = errors.New("disk on fire")

func TestCleanShutdown(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			a, b := root+"/a", root+"/b"
			m := mustLoad(t, testConfig(fsys, a, b))
			for i, p := range []topic.Partition{orders0, orders1, orders2} {
				mustAppend(t, mustCreate(t, m, p), 10*(i+1))
			}
			m.Log(orders1).SetHighWatermark(15)
			if err := m.Log(orders2).IncrementLogStart(5); err != nil {
				t.Fatal(err)
			}
			m.SetBrokerEpoch(77)
			mustClose(t, m)

			for _, dir := range []string{a, b} {
				if got := readText(t, fsys, dir+"/"+checkpoint.CleanShutdown); got != `{"version":0,"brokerEpoch":77}` {
					t.Errorf("%s: marker %q", dir, got)
				}
			}
			f := func(dir string, k checkpointKind, want string) {
				t.Helper()
				if got := checkpointText(t, fsys, dir, k); got != want {
					t.Errorf("%s/%s: got %q, want %q", dir, checkpointNames[k], got, want)
				}
			}
			f(a, recoveryPoints, "2, orders 0 10, orders 2 30")
			f(b, recoveryPoints, "1, orders 1 20")
			f(a, highWatermarks, "2, orders 0 10, orders 2 30")
			f(b, highWatermarks, "1, orders 1 15")
			f(a, logStarts, "1, orders 2 5")
			f(b, logStarts, "0")

			m = mustLoad(t, testConfig(fsys, a, b))
			if hasMarker(t, fsys, a) || hasMarker(t, fsys, b) {
				t.Error("a marker is there after Load")
			}
			wantState(t, m, orders0, [3]int64{0, 10, 10})
			wantState(t, m, orders1, [3]int64{0, 15, 20})
			wantState(t, m, orders2, [3]int64{5, 30, 30})
			if got, ok := m.HighWatermark(orders1); got != 15 || !ok {
				t.Errorf("high watermark at start: got %d, %v, want 15", got, ok)
			}
			if m.PreviousBrokerEpoch() != 77 {
				t.Errorf("previous broker epoch: got %d, want 77", m.PreviousBrokerEpoch())
			}
			if id := m.Log(orders0).TopicID(); id != ordersID {
				t.Errorf("topic id: got %v, want %v", id, ordersID)
			}
			mustClose(t, m)
		})
	}
}

// Without the marker, logs are checked from the recovery point on, and a second crash
// before any flush finds the same recovery point.
func TestUncleanShutdown(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 10)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	m.checkpointAll(recoveryPoints)
	m.checkpointAll(highWatermarks)
	mustAppend(t, l, 5)

	crashed := fsys.CrashClone(nil)
	m2 := mustLoad(t, testConfig(crashed, "/a"))
	wantState(t, m2, orders0, [3]int64{0, 10, 10})
	if rp := m2.Log(orders0).RecoveryPoint(); rp != 10 {
		t.Errorf("recovery point: got %d, want 10", rp)
	}
	if m2.PreviousBrokerEpoch() != -1 {
		t.Errorf("previous broker epoch: got %d, want -1", m2.PreviousBrokerEpoch())
	}
	mustClose(t, m2)
	if !hasMarker(t, crashed, "/a") {
		t.Error("no marker after recovery and a clean stop")
	}
}

// A log forgets a gap at its end. No checkpoint ever said that there is something in it.
func TestLoadForgetsGapAtTheEnd(t *testing.T) {
	f := func(name string, stop func(*vfs.Mem, *Manager) *vfs.Mem) {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			m := mustLoad(t, testConfig(fsys, "/a"))
			l := mustCreate(t, m, orders0)
			mustAppend(t, l, 10)
			late := record.Batch(batch(t, 1))
			late.SetBaseOffset(100)
			if _, err := l.AppendAsFollower(late, 0); err != nil {
				t.Fatal(err)
			}
			l.SetHighWatermark(101)
			if err := errors.Join(m.TruncateTo(orders0, 60), l.Flush()); err != nil {
				t.Fatal(err)
			}
			m.checkpointAll(recoveryPoints)
			if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "1, orders 0 10" {
				t.Errorf("recovery point before the stop: %q", got)
			}
			fsys = stop(fsys, m)
			m = mustLoad(t, testConfig(fsys, "/a"))
			if end := m.Log(orders0).Offsets().End; end != 10 {
				t.Errorf("log end %d, want 10", end)
			}
			if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "1, orders 0 10" {
				t.Errorf("recovery point after the start: %q", got)
			}
			mustClose(t, m)
		})
	}
	f("clean", func(fsys *vfs.Mem, m *Manager) *vfs.Mem {
		mustClose(t, m)
		return fsys
	})
	f("crash", func(fsys *vfs.Mem, _ *Manager) *vfs.Mem { return fsys.CrashClone(nil) })
}

func keepIf(keep bool) Decision {
	if keep {
		return Decision{}
	}
	return Decision{Fate: PutAside}
}

func TestLoadSorts(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 1)
	mustAppend(t, mustCreate(t, m, orders1), 2)
	mustClose(t, m)
	const id = ".0123456789abcdef0123456789abcdef"
	for _, name := range []string{
		"lost+found", "foo", "a-0" + id + "-delete", "b-0" + id + "-stray", "c-0" + id + "-future", "__cluster_metadata-0", "remote-log-index-cache",
	} {
		mustMkdir(t, fsys, "/a/"+name)
	}
	mustWrite(t, fsys, "/a/.DS_Store", "x")
	mustWrite(t, fsys, "/a/d-0", "a file")
	mustWrite(t, fsys, "/a/"+checkpoint.RecoveryPoints, "0\n4\norders 0 1\norders 1 2\nc 0 7\ngone 0 9\n")

	m = mustOpen(t, testConfig(fsys, "/a"))
	err := m.Load(context.Background(), LoadOptions{Fate: func(at FoundPartition) Decision {
		if at.TopicID != ordersID || at.IDErr != nil {
			t.Errorf("%v: got topic id %v, %v, want %v", at.Partition, at.TopicID, at.IDErr, ordersID)
		}
		return keepIf(at.Partition == orders0)
	}, Belongs: func(p topic.Partition) bool { return p == orders0 }})
	if err != nil {
		t.Fatal(err)
	}
	wantLogs(t, m, orders0)
	want := []string{
		".DS_Store", ".lock", "__cluster_metadata-0", "a-0.ID-delete", "b-0.ID-stray", "c-0" + id + "-future", "d-0", "foo",
		"log-start-offset-checkpoint", "lost+found", "meta.properties", "orders-0", "orders-1.ID-stray",
		"recovery-point-offset-checkpoint", "remote-log-index-cache", "replication-offset-checkpoint",
	}
	got := names(t, fsys, "/a")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("directory\n got %v\nwant %v", got, want)
	}
	if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "2, c 0 7, orders 0 1" {
		t.Errorf("recovery points: got %q, want those of the log and of the future one", got)
	}
	m.deletions.removeDue(m.cfg.Now().Add(m.cfg.FileDeleteDelay))
	if slices.Contains(names(t, fsys, "/a"), "a-0.ID-delete") {
		t.Error("the deleted directory is still there")
	}
	mustClose(t, m)
	if !hasMarker(t, fsys, "/a") {
		t.Error("no marker, although the directory was clean")
	}
}

func TestLoadDuplicate(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b"))
	mustCreate(t, m, orders0)
	mustClose(t, m)
	mustMkdir(t, fsys, "/b/orders-0")
	m = mustOpen(t, testConfig(fsys, "/a", "/b"))
	err := m.Load(context.Background(), LoadOptions{})
	logtest.WantError(t, err, ErrDuplicate, "orders-0", "/a/orders-0", "/b/orders-0")
	mustClose(t, m)
	if !hasMarker(t, fsys, "/a") || !hasMarker(t, fsys, "/b") {
		t.Error("nothing was touched, but a marker is gone")
	}
}

// A log whose partition.metadata makes no sense is served under the id that the cluster's
// metadata have for its topic, and the file is written again.
func TestLoadDamagedMetadata(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustAppend(t, mustCreate(t, m, orders1), 20)
	mustClose(t, m)
	path := "/a/orders-1/" + checkpoint.PartitionMetadataFile
	mustWrite(t, fsys, path, "version: x")
	if err := fsys.Remove("/a/" + checkpoint.CleanState); err != nil { // with it the start opens no file of the log
		t.Fatal(err)
	}

	m = mustOpen(t, testConfig(fsys, "/a"))
	if err := m.Load(t.Context(), LoadOptions{TopicID: func(string) uuid.UUID { return ordersID }}); err != nil {
		t.Fatal(err)
	}
	wantLogs(t, m, orders0, orders1)
	mustAppend(t, m.Log(orders1), 1)
	mustClose(t, m)
	if got, err := checkpoint.ReadPartitionMetadata(fsys, path); err != nil || got.TopicID != ordersID {
		t.Errorf("partition.metadata says %v, %v, want %v", got.TopicID, err, ordersID)
	}
	if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "2, orders 0 10, orders 1 21" {
		t.Errorf("recovery points: got %q", got)
	}
}

// A log whose bytes make no sense is left out, named, and left as it is; it is not created anew, and
// the rest is served.
func TestLoadLeavesOutWhatMakesNoSense(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	m := mustLoad(t, c)
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustAppend(t, mustCreate(t, m, orders1), 20)
	mustClose(t, m)
	// A crash when a compacted segment was to take the place of others, which are gone.
	const swap = "/a/orders-1/00000000000000000000.log.swap"
	if err := fsys.Remove("/a/orders-1/00000000000000000000.log"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, fsys, swap, strings.Repeat("garbage ", 100))
	if err := fsys.Remove("/a/" + checkpoint.CleanState); err != nil {
		t.Fatal(err)
	}
	before := names(t, fsys, "/a/orders-1")

	text := logged(&c)
	for range 2 {
		m = mustLoad(t, c)
		wantLogs(t, m, orders0)
		if _, err := m.Create(orders1, ordersID, commitlog.DefaultConfig(), uuid.Zero, false); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("created: got %v, want damage", err)
		}
		mustAppend(t, m.Log(orders0), 1)
		mustClose(t, m)
		if after := names(t, fsys, "/a/orders-1"); !slices.Equal(after, before) {
			t.Errorf("got files %v, want %v", after, before)
		}
	}
	if !strings.Contains(text.String(), "dir=/a/orders-1") || !strings.Contains(text.String(), swap) {
		t.Errorf("log and file are not named:\n%s", text)
	}
	if got := checkpointText(t, fsys, "/a", recoveryPoints); got != "2, orders 0 12, orders 1 20" {
		t.Errorf("recovery points: got %q, want what they were for the one left out", got)
	}
}

// Interrupted loading leaves what is not loaded as it was found.
func TestLoadInterrupted(t *testing.T) {
	fsys := vfs.NewMem()
	c := testConfig(fsys, "/a")
	c.RecoveryThreads = 1
	m := mustLoad(t, c)
	for _, p := range []topic.Partition{orders0, orders1, orders2} {
		mustAppend(t, mustCreate(t, m, p), 10)
	}
	mustClose(t, m)
	before := checkpointText(t, fsys, "/a", recoveryPoints)

	load := func(fsys vfs.FS) {
		t.Helper()
		c.FS = fsys
		m := mustOpen(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		err := m.Load(ctx, LoadOptions{LogConfig: func(string) commitlog.Config {
			cancel()
			return commitlog.DefaultConfig()
		}})
		logtest.WantError(t, err, context.Canceled)
		if n := len(m.places.entries()); n > 1 { // the check of the first one may have ended as well
			t.Errorf("%d logs loaded, want 1 at most", n)
		}
		mustClose(t, m)
		if got := checkpointText(t, fsys, "/a", recoveryPoints); got != before {
			t.Errorf("recovery points: got %q, want %q", got, before)
		}
	}
	load(fsys)
	if !hasMarker(t, fsys, "/a") {
		t.Error("no marker, although the directory was clean")
	}
	if _, _, err := checkpoint.TakeCleanShutdown(fsys, "/a/"+checkpoint.CleanShutdown, "/a"); err != nil {
		t.Fatal(err)
	}
	load(fsys)
	if hasMarker(t, fsys, "/a") {
		t.Error("marker, although logs were not recovered")
	}
}

// Kafka before 2.8 wrote no topic id; the cluster's metadata has one (KAFKA-16814).
func TestLoadWithoutTopicID(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustCreate(t, m, orders0)
	mustClose(t, m)
	if err := fsys.Remove("/a/orders-0/" + checkpoint.PartitionMetadataFile); err != nil {
		t.Fatal(err)
	}
	m = mustOpen(t, testConfig(fsys, "/a"))
	err := m.Load(context.Background(), LoadOptions{
		Fate:    func(at FoundPartition) Decision { return keepIf(at.TopicID.IsZero() || at.TopicID == ordersID) },
		TopicID: func(string) uuid.UUID { return ordersID },
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, m)
	got, err := checkpoint.ReadPartitionMetadata(fsys, "/a/orders-0/"+checkpoint.PartitionMetadataFile)
	if err != nil || got.TopicID != ordersID {
		t.Errorf("got %v, %v, want %v", got, err, ordersID)
	}
}

// Checkpoints that make no sense count as empty.
func TestLoadBadCheckpoints(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustClose(t, m)
	for _, name := range checkpointNames {
		mustWrite(t, fsys, "/a/"+name, "0\nx\n")
	}
	if _, _, err := checkpoint.TakeCleanShutdown(fsys, "/a/"+checkpoint.CleanShutdown, "/a"); err != nil {
		t.Fatal(err)
	}
	m = mustLoad(t, testConfig(fsys, "/a"))
	wantState(t, m, orders0, [3]int64{0, 0, 10})
	mustClose(t, m)
}

// One byte of the header of a checkpoint hides no entry: records that were deleted stay so.
func TestLoadCheckpointWithAnotherHeader(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	l := mustCreate(t, m, orders0)
	mustAppend(t, l, 10)
	l.SetHighWatermark(10)
	must(t, l.IncrementLogStart(7))
	mustClose(t, m)
	for i := range len("0\n1\n") {
		damaged := fsys.CrashClone(nil)
		logtest.Flip(t, damaged, "/a/"+checkpoint.LogStartOffsets, int64(i))
		m = mustLoad(t, testConfig(damaged, "/a"))
		wantState(t, m, orders0, [3]int64{7, 10, 10})
		mustClose(t, m)
	}
}
