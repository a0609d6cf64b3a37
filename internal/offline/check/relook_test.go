package check

import (
	"bytes"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A watched file system calls a function in front of each opening of a file and each read from
// it: that is where somebody else may come in.
type watched struct {
	offlinetest.ReadOnly
	opening, reading func(path string)
}

func (w watched) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	w.opening(name)
	f, err := w.ReadOnly.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, w.reading}, nil
}

type watchedFile struct {
	vfs.File
	reading func(path string)
}

func (f watchedFile) ReadAt(p []byte, off int64) (int, error) {
	f.reading(f.Name())
	return f.File.ReadAt(p, off)
}

func TestCheckBesideAWriter(t *testing.T) {
	nothing := func(string) {}
	// damage is what a check finds while change runs in front of the first access to log20.
	damage := func(t *testing.T, x *fixture, when string, change func()) string {
		t.Helper()
		x.Remove("../.kafka_cleanshutdown")
		var once sync.Once
		hook := func(path string) {
			if path == x.Path(offlinetest.Log20) {
				once.Do(change)
			}
		}
		w := watched{offlinetest.ReadOnly{FS: x.Mem}, nothing, nothing}
		if when == "opening" {
			w.opening = hook
		} else {
			w.reading = hook
		}
		var b strings.Builder
		for _, f := range mustCheck(t, w, "/data").Findings {
			if f.Severity == Damage || f.File == x.Path(offlinetest.Log20) {
				b.WriteString(f.String() + "\n")
			}
		}
		return b.String()
	}
	f := func(what, when string, begin func(x *fixture), change func(x *fixture), want string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			begin(x)
			got := damage(t, x, when, func() { change(x) })
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	begun := offlinetest.Batch(40, 3, record.BuilderOptions{})
	tear := func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte { return append(b, begun[:len(begun)/2]...) })
	}
	f("a batch half written", "reading", tear, func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte { return append(b, begun[len(begun)/2:]...) })
	}, "")
	f("another half", "reading", tear, func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte {
			return append(append(b, begun[len(begun)/2:]...), offlinetest.Batch(42, 3, record.BuilderOptions{})[:30]...)
		})
	}, "byte 935 (offset 42): batch of 85 bytes is torn") // the writer is dead
	f("torn by a crash", "reading", tear, func(*fixture) {}, "is torn")
	f("retention", "opening", func(*fixture) {}, func(x *fixture) {
		for _, name := range []string{offlinetest.Log0, offlinetest.Index0, offlinetest.Times0} {
			x.Remove(name)
		}
	}, "")
	f("a topic deleted", "opening", func(*fixture) {}, func(x *fixture) {
		if err := vfs.RemoveAll(x.Mem, offlinetest.FixtureDir); err != nil {
			x.T.Fatal(err)
		}
	}, "")
	f("damage all the same", "reading", func(x *fixture) {
		x.Change(offlinetest.Log0, func(b []byte) []byte { b[70] ^= 1; return b })
	}, func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte { return append(b, begun...) })
	}, "byte 0 (offset 0): batch of")
}

// Nothing is found in a log that a broker writes to, rolls and deletes from all the time.
func TestCheckBesideABroker(t *testing.T) {
	dir := t.TempDir()
	config := commitlog.DefaultConfig()
	config.SegmentBytes, config.IndexIntervalBytes = 64<<10, 1<<10
	config.RetentionBytes, config.FileDeleteDelayMs = 256<<10, 0
	l, err := commitlog.Open(commitlog.Options{
		FS: vfs.OS, Dir: filepath.Join(dir, "t-0"), Partition: topic.Partition{Topic: "t"}, TopicID: uuid.New(),
		Config: config, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for i := int32(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			set := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 7, BaseSequence: i}})
			if err := set.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: bytes.Repeat([]byte{byte(i)}, int(i%3000))}); err != nil {
				t.Error(err)
				return
			}
			_, err := l.AppendAsLeader(set.Build(), i/1000, commitlog.AppendOptions{Origin: record.Client})
			if err == nil && i%50 == 0 {
				l.IncrementHighWatermark(l.Offsets().End)
				_, err = l.DeleteOldSegments(time.Now())
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	first := filepath.Join(dir, "t-0", segment.Name(0, segment.LogFile, ""))
	deleted := func() bool {
		_, err := vfs.OS.Stat(first)
		return err != nil
	}
	for checks := 0; checks < 40 || !deleted() && !t.Failed(); checks++ {
		r, err := Dirs(t.Context(), []string{dir}, Options{Wait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		for _, f := range r.Findings {
			if f.Severity == Damage {
				t.Error(f)
			}
		}
	}
	close(stop)
	writer.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := mustCheck(t, vfs.OS, dir); r.Damaged() > 0 {
		t.Error(r.Findings)
	}
}
