package broker

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A replay passes by what is damaged, at the beginning, in the middle and at the end, and counts it.
func TestReplayOfDamage(t *testing.T) {
	const perBatch, batches = 3, 6
	f := func(clean bool, skipped int64, damaged ...int64) {
		t.Helper()
		o := commitlog.Options{
			FS: vfs.NewMem(), Dir: "/data/__consumer_offsets-0", Partition: topic.Partition{Topic: topic.ConsumerOffsets},
			Config: commitlog.DefaultConfig(), Logger: slog.New(slog.DiscardHandler),
			Background: func(task func()) { task() },
		}
		l := mustOpen(t, o)
		var want []int64
		for i := range int64(batches) {
			records := make([]record.Record, perBatch)
			if _, err := l.AppendAsLeader(batchOf(t, record.BuilderOptions{}, records...), 0, commitlog.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(damaged, i) {
				want = append(want, i*perBatch)
			}
		}
		path := l.Offsets().CleanSegments()[0].Path(segment.LogFile)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, i := range damaged {
			breakBatch(t, o.FS, path, int(i), batches)
		}
		o.Clean, o.RecoveryPoint = clean, perBatch*batches
		l = mustOpen(t, o)
		var got []int64
		n, err := replayLog(t.Context(), l, 1, func(b record.Batch) error {
			got = append(got, b.BaseOffset())
			return nil
		})
		if err != nil || n != skipped || !slices.Equal(got, want) {
			t.Errorf("clean %v, damaged %v: replayed %v, skipped %d, %v, want %v and %d", clean, damaged, got, n, err, want, skipped)
		}
		stop := errors.New("stop")
		if _, err := replayLog(t.Context(), l, 1, func(record.Batch) error { return stop }); len(want) > 0 && !errors.Is(err, stop) {
			t.Errorf("damaged %v: the error of visit became %v", damaged, err)
		}
	}
	for _, clean := range []bool{true, false} {
		f(clean, 0)
		f(clean, 3, 0)
		f(clean, 3, 2)
		f(clean, 6, 2, 3)
		f(clean, 6, 1, 4)
		f(clean, 3, 5)
		f(clean, 18, 0, 1, 2, 3, 4, 5)
	}
}

func mustOpen(t *testing.T, o commitlog.Options) *commitlog.Log {
	t.Helper()
	l, err := commitlog.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// breakBatch turns a byte round in the records of one of several batches of one size.
func breakBatch(t *testing.T, fsys vfs.FS, path string, i, count int) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	at := size/int64(count)*int64(i) + record.HeaderSize
	b := make([]byte, 1)
	if err == nil {
		_, err = f.ReadAt(b, at)
	}
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
