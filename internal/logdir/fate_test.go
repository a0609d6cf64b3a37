package logdir

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// fated loads with the given fates; other partitions are kept.
func fated(t *testing.T, fsys vfs.FS, fates map[topic.Partition]Decision) *Manager {
	t.Helper()
	m := mustOpen(t, testConfig(fsys, "/a"))
	if err := m.Load(context.Background(), LoadOptions{Fate: func(at FoundPartition) Decision { return fates[at.Partition] }}); err != nil {
		t.Fatal(err)
	}
	return m
}

// Open asks the judge before it writes anything, with everything that there is.
func TestJudge(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustAppend(t, mustCreate(t, m, orders1), 10)
	mustClose(t, m)
	mustWrite(t, fsys, "/a/orders-1/partition.metadata", "version: 0\ntopic_id: x")
	mustMkdir(t, fsys, "/a/orders-2")
	no := errors.New("not yours")
	check := func(remembered bool) {
		t.Helper()
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind.Changes() && op.Name != "/a/.lock" {
				t.Errorf("before the verdict: %v", op)
			}
			return nil
		})
		c := testConfig(fsys, "/a")
		c.Judge = func(e Evidence) error {
			if len(e.Dirs) != 1 || e.NodeID != 1 || !e.ClusterKnown || e.Dirs[0].Meta.Version != 1 || len(e.Dirs[0].Partitions) != 3 {
				t.Fatalf("evidence %+v", e)
			}
			list := e.Dirs[0].Partitions
			if list[0].TopicID != ordersID || list[0].IDErr != nil {
				t.Errorf("%+v", list[0])
			}
			if damaged := errors.Is(list[1].IDErr, checkpoint.ErrCorrupt); damaged == remembered {
				t.Errorf("%+v", list[1])
			}
			if !list[2].TopicID.IsZero() || !errors.Is(list[2].IDErr, fs.ErrNotExist) {
				t.Errorf("%+v", list[2])
			}
			return no
		}
		_, err := Open(c)
		fsys.SetHook(nil)
		logtest.WantError(t, err, no)
	}
	check(true) // the damage shows when the log is loaded
	if err := fsys.Remove("/a/" + checkpoint.CleanState); err != nil {
		t.Fatal(err)
	}
	check(false)
}

// What is left alone stays as it is, is in the way of a new log of the name, keeps its entries in the
// checkpoints, and is listed as long as it is.
func TestLeaveAlone(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustAppend(t, mustCreate(t, m, orders1), 20)
	mustClose(t, m)
	alone := map[topic.Partition]Decision{orders1: {Fate: LeaveAlone, Reason: "who knows"}}
	accepted := func() map[topic.Partition]bool {
		t.Helper()
		found := make(map[topic.Partition]bool)
		c := testConfig(fsys, "/a")
		c.Judge = func(e Evidence) error {
			for _, at := range e.Dirs[0].Partitions {
				if at.Accepted {
					found[at.Partition] = true
				}
			}
			return nil
		}
		mustClose(t, mustOpen(t, c))
		return found
	}
	for range 2 {
		m = fated(t, fsys, alone)
		wantLogs(t, m, orders0)
		_, err := m.Create(orders1, ordersID, m.Log(orders0).Config(), uuid.Zero, true)
		logtest.WantError(t, err, ErrLeftAlone, "who knows")
		mustClose(t, m)
		if got := checkpointText(t, fsys, "/a", highWatermarks); got != "2, orders 0 10, orders 1 20" {
			t.Errorf("high watermarks %q", got)
		}
		if got := accepted(); !maps.Equal(got, map[topic.Partition]bool{orders1: true}) {
			t.Errorf("listed: %v", got)
		}
	}
	m = fated(t, fsys, nil)
	wantState(t, m, orders1, [3]int64{0, 20, 20})
	mustClose(t, m)
	if got := accepted(); len(got) != 0 {
		t.Errorf("listed when nothing is left alone: %v", got)
	}
}

// A log that was left alone in a directory that was not stopped cleanly is checked when it is loaded,
// although the directory was stopped cleanly since.
func TestLeftAloneUnclean(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustAppend(t, mustCreate(t, m, orders1), 20)
	m.checkpointAll(recoveryPoints)
	mustClose(t, m)
	if err := fsys.Remove("/a/" + checkpoint.CleanShutdown); err != nil {
		t.Fatal(err)
	}
	alone := map[topic.Partition]Decision{orders1: {Fate: LeaveAlone, Reason: "who knows"}}
	for range 2 {
		mustClose(t, fated(t, fsys, alone))
		if !hasMarker(t, fsys, "/a") {
			t.Error("no marker: a log that is left alone keeps the others from being clean")
		}
	}
	m = mustOpen(t, testConfig(fsys, "/a"))
	d := m.dirs[0]
	if err := m.Load(context.Background(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if !d.isClean(orders0) || d.isClean(orders1) {
		t.Errorf("clean: orders-0 %v, orders-1 %v, want only the first", d.isClean(orders0), d.isClean(orders1))
	}
	wantState(t, m, orders1, [3]int64{0, 20, 20})
	mustClose(t, m)
}

// When the list of logs that were left alone is damaged, those that are not in it any more are checked,
// and the list is written anew.
func TestLeftAloneDamaged(t *testing.T) {
	for _, line := range []string{"orders 1 1x", "ordes 1 1 1", "orders 1 7"} {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a"))
		mustAppend(t, mustCreate(t, m, orders0), 10)
		mustAppend(t, mustCreate(t, m, orders1), 20)
		mustClose(t, m)
		mustWrite(t, fsys, "/a/"+checkpoint.LeftAlone, "0\n1\n"+line+"\n")
		m = mustOpen(t, testConfig(fsys, "/a"))
		d := m.dirs[0]
		if err := m.Load(context.Background(), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		if d.isClean(orders1) {
			t.Errorf("%q: a log that was left alone may be unclean, and counts as clean", line)
		}
		wantState(t, m, orders1, [3]int64{0, 20, 20})
		mustClose(t, m)
		if _, err := fsys.Stat("/a/" + checkpoint.LeftAlone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: the damaged list is there still: %v", line, err)
		}
	}
}

// A healed partition has the right id on disk and in its log.
func TestHeal(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a"))
	mustAppend(t, mustCreate(t, m, orders0), 10)
	mustClose(t, m)
	mustWrite(t, fsys, "/a/orders-0/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABB")
	m = mustOpen(t, testConfig(fsys, "/a"))
	var asked []FoundPartition
	err := m.Load(context.Background(), LoadOptions{Fate: func(at FoundPartition) Decision {
		asked = append(asked, at)
		if at.TopicID == ordersID {
			return Decision{}
		}
		return Decision{Fate: Heal, TopicID: ordersID}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[0].Changed || !asked[1].Changed {
		t.Errorf("asked about %+v", asked)
	}
	wantState(t, m, orders0, [3]int64{0, 10, 10})
	got, err := checkpoint.ReadPartitionMetadata(fsys, "/a/orders-0/"+checkpoint.PartitionMetadataFile)
	if err != nil || got.TopicID != ordersID || m.Log(orders0).TopicID() != ordersID {
		t.Errorf("got %v, %v", got, err)
	}
	mustClose(t, m)
}
