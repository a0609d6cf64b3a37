package logdir

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func fillLog(t *testing.T, m *Manager, name string, batches int) *commitlog.Log {
	t.Helper()
	c := commitlog.DefaultConfig()
	c.SegmentBytes = 2000
	l, err := m.Create(topic.Partition{Topic: name}, uuid.New(), c, uuid.Zero, true)
	if err != nil {
		t.Fatal(err)
	}
	for range batches {
		b := record.NewBuilder(record.BuilderOptions{})
		if err := b.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: make([]byte, 430)}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.AppendAsLeader(b.Build(), 0, commitlog.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.SetHighWatermark(l.Offsets().End)
	return l
}

// A scrub finds a bit that has turned round under the broker, at the pace it is given.
func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		cfg := DefaultConfig()
		cfg.FS, cfg.Dirs = mem, []string{"/a"}
		cfg.ScrubInterval, cfg.ScrubBytesPerSecond = 10*time.Minute, 1000
		m, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Load(t.Context(), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		l := fillLog(t, m, "t", 12)
		f, err := mem.OpenFile("/a/t-0/00000000000000000004.log", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{1}, 600); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if r, err := l.Read(5, 100, commitlog.ReadUncommitted, true); err != nil {
			t.Errorf("before: got %v", err)
		} else {
			r.Slice.Release()
		}
		m.Start(context.Background())
		time.Sleep(9 * time.Minute)
		if m.Scrubber().Last() != nil {
			t.Error("a scrub before its time")
		}
		time.Sleep(2 * time.Minute)
		r := m.Scrubber().Last()
		if r == nil || r.Logs != 1 || len(r.Damage) != 1 || r.Damage[0].First != 5 || r.Damage[0].End != 6 || r.Damage[0].Segment != 4 {
			t.Fatalf("got %+v", r)
		}
		if got, want := m.Scrubber().Progress(), (ScrubProgress{Logs: int64(r.Logs), LogsDone: int64(r.Logs), Bytes: r.Bytes}); got != want {
			t.Errorf("progress at the end: got %+v, want %+v", got, want)
		}
		if took := r.Ended.Sub(r.Started); took < 2*time.Second || took > 6*time.Second || r.Bytes < 3000 {
			t.Errorf("%d bytes in %v, want 1000 per second", r.Bytes, took)
		}
		if _, err := l.Read(5, 100, commitlog.ReadUncommitted, true); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("after: got %v", err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// roomFS has as much room as a test says.
type roomFS struct {
	vfs.FS
	free int64
}

func (r *roomFS) Space(string) (total, free int64, err error) { return 10_000, r.free, nil }

// The reserve stops appends, a full disk does not take the directory offline.
func TestDiskReserve(t *testing.T) {
	mem := vfs.NewMem()
	room := &roomFS{FS: mem, free: 1000}
	cfg := DefaultConfig()
	cfg.FS, cfg.Dirs, cfg.DiskReserve = room, []string{"/a"}, 400
	m, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(t.Context(), LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	l := fillLog(t, m, "t", 1)
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	for free, full := range map[int64]bool{1000: false, 399: true, 400: false, 0: true} {
		room.free = free
		m.space().check()
		_, err := l.AppendAsFollower(nil, 0)
		if errors.Is(err, commitlog.ErrStorage) != full {
			t.Errorf("%d bytes free: got %v, want refused %v", free, err, full)
		}
		if got, want := m.Spaces(), (Space{"/a", 10_000, free, 400, full}); len(got) != 1 || got[0] != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate {
			return syscall.ENOSPC
		}
		return nil
	})
	for k := range checkpointKinds {
		m.checkpointAll(k)
	}
	if d := m.Dirs()[0]; !d.Online {
		t.Errorf("checkpoints on a full disk: directory offline: %v", d.Err)
	}
	mem.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return io.ErrClosedPipe
		}
		return nil
	})
	m.checkpointAll(recoveryPoints)
	mem.SetHook(nil)
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if d := m.Dirs()[0]; d.Online {
		t.Error("another error does not take the directory offline")
	}
}
