package cleaner

import (
	"bytes"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A shelf is a few logs and the directory of each: what a Manager needs of a log manager.
type shelf struct {
	t  testing.TB
	fs *vfs.Mem

	mu     sync.Mutex
	logs   map[topic.Partition]placed
	failed map[string]error
}

type placed struct {
	log *commitlog.Log
	dir string
}

func newShelf(t testing.TB) *shelf {
	return &shelf{t: t, fs: vfs.NewMem(), logs: make(map[topic.Partition]placed), failed: make(map[string]error)}
}

func (s *shelf) Placed() iter.Seq2[*commitlog.Log, string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []placed
	for _, p := range s.logs {
		list = append(list, p)
	}
	return func(yield func(*commitlog.Log, string) bool) {
		for _, p := range list {
			if !yield(p.log, p.dir) {
				return
			}
		}
	}
}

func (s *shelf) Place(p topic.Partition) (*commitlog.Log, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[p].log, s.logs[p].dir
}

func (s *shelf) FailSoon(dir string, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[dir] = cause
}

func (s *shelf) failure(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed[dir]
}

// compacted is a topic that is cleaned as soon as anything is dirty.
func compacted() commitlog.Config {
	c := commitlog.DefaultConfig()
	c.Compact, c.Delete, c.MinCleanableRatio = true, false, 0
	return c
}

// compactedOnRequest is a topic that is cleaned when somebody asks for it.
func compactedOnRequest() commitlog.Config {
	c := compacted()
	c.MinCleanableRatio = 1
	return c
}

// add opens a log in a directory. It is closed, after a check, with the test.
func (s *shelf) add(dir string, p topic.Partition, c commitlog.Config) *commitlog.Log {
	s.t.Helper()
	must(s.t, vfs.MkdirAll(s.fs, dir, 0o755))
	l, err := commitlog.Open(commitlog.Options{
		FS: s.fs, Dir: dir + "/" + p.String(), Partition: p, TopicID: uuid.UUID{0: 1}, Config: c, Clean: true,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	must(s.t, err)
	s.mu.Lock()
	s.logs[p] = placed{l, dir}
	s.mu.Unlock()
	s.t.Cleanup(func() {
		if l.Failed() == nil {
			must(s.t, l.Check())
			must(s.t, l.Close())
		}
	})
	return l
}

func (s *shelf) remove(p topic.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, p)
}

// append appends a record, now, in a batch of its own; "" is no value.
func (s *shelf) append(l *commitlog.Log, key, value string) {
	s.t.Helper()
	r := record.Record{Timestamp: time.Now().UnixMilli(), Key: []byte(key)}
	if value != "" {
		r.Value = []byte(value)
	}
	s.appendBatch(l, record.BuilderOptions{}, r)
}

func (s *shelf) appendBatch(l *commitlog.Log, o record.BuilderOptions, r record.Record) {
	s.t.Helper()
	b := record.NewBuilder(o)
	must(s.t, b.Append(r))
	info, err := l.AppendAsLeader(b.Build(), 0, commitlog.AppendOptions{Origin: record.Client})
	must(s.t, err)
	l.SetHighWatermark(info.LastOffset + 1)
}

// fill appends a segment: rounds over so many keys, values of 100 bytes.
func (s *shelf) fill(l *commitlog.Log, keys, rounds int) {
	s.t.Helper()
	for round := range rounds {
		for k := range keys {
			s.append(l, fmt.Sprintf("k%d", k), fmt.Sprintf("%d-%d-%s", l.Offsets().End, round, strings.Repeat("x", 90)))
		}
	}
	must(s.t, l.Roll())
}

// read returns offset:key=value of every record, up to the beginning of the value's filling.
func read(t testing.TB, l *commitlog.Log) (list []string) {
	t.Helper()
	for offset := l.Offsets().LogStart; ; {
		r, err := l.Read(offset, 1<<20, commitlog.ReadUncommitted, true)
		must(t, err)
		set := make([]byte, r.Slice.Size())
		if len(set) > 0 {
			_, err = r.Slice.ReadAt(set, 0)
			must(t, err)
		}
		r.Slice.Release()
		if len(set) == 0 {
			return list
		}
		for b, err := range record.Batches(set) {
			must(t, err)
			for r, err := range b.Records() {
				must(t, err)
				value, _, _ := bytes.Cut(r.Value, []byte("x"))
				list = append(list, fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, value))
			}
			offset = b.NextOffset()
		}
	}
}

func keyCount(t testing.TB, l *commitlog.Log) int { return len(read(t, l)) }

// testManagerConfig has one thread and Kafka's defaults.
func testManagerConfig() Config {
	return Config{
		Enabled: true, Threads: 1, DedupeBytes: 4 << 20, LoadFactor: 0.9, BufferBytes: 512 << 10, MaxMessageBytes: 1 << 20,
		BytesPerSecond: math.MaxFloat64, Backoff: 15 * time.Second,
	}
}

// withoutThreads is a configuration in which nothing is cleaned that nobody asks for.
func withoutThreads() Config {
	c := testManagerConfig()
	c.Threads = 0
	return c
}

// slow is a configuration in which a cleaning takes a long time.
func slow() Config {
	c := testManagerConfig()
	c.BytesPerSecond = 1000
	return c
}

// slowCleaning has a log of 10 keys in 100 records that a thread is cleaning, for a long time.
func slowCleaning(t testing.TB) (*shelf, *commitlog.Log, *Manager) {
	t.Helper()
	s := newShelf(t)
	l := s.add("/a", orders0, compacted())
	s.fill(l, 10, 10)
	m := s.start(slow())
	synctest.Wait()
	if got := m.states.name(orders0); got != "cleaning" {
		t.Fatalf("state %s", got)
	}
	return s, l, m
}

// start starts a Manager, which is closed with the test.
func (s *shelf) start(c Config) *Manager {
	s.t.Helper()
	m := NewManager(ManagerOptions{FS: s.fs, Config: c})
	m.Start(s)
	s.t.Cleanup(m.Close)
	return m
}
