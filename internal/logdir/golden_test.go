package logdir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// kafkaDir is a log directory of Kafka's in a file system.
type kafkaDir struct {
	golden.Dir
	fsys   vfs.FS
	path   string
	topics map[string]golden.Topic
}

func unpackKafka(t testing.TB, fsys vfs.FS, root string, d golden.Dir) *kafkaDir {
	t.Helper()
	golden.Unpack(t, fsys, root, d.Set)
	return &kafkaDir{d, fsys, filepath.Join(root, d.Name), golden.Topics(t, d.Set)}
}

var kraft = golden.Dir{Set: "kafka-4.4.0-kraft", Name: "data", Clean: true, Expected: true}

// stop makes the directory one that was stopped cleanly, or not.
func (k *kafkaDir) stop(t testing.TB, clean bool) {
	t.Helper()
	marker := filepath.Join(k.path, checkpoint.CleanShutdown)
	var err error
	if clean {
		err = checkpoint.WriteCleanShutdown(k.fsys, marker, 1)
	} else {
		_, _, err = checkpoint.TakeCleanShutdown(k.fsys, marker, k.path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (k *kafkaDir) remove(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := k.fsys.Remove(filepath.Join(k.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// load loads the directory as the broker that wrote it, with the topics' own settings.
func (k *kafkaDir) load(t testing.TB) *Manager {
	t.Helper()
	c := Config{FS: k.fsys, Dirs: []string{k.path}, NodeID: -1, RecoveryThreads: 2, ProducerIDExpiration: math.MaxInt64}
	if k.Set == "compaction-4.4.0" { // which took the batches of expired producers
		c.ProducerIDExpiration = 24 * time.Hour
		c.Now = func() time.Time { return time.UnixMilli(1_796_020_000_000) }
	}
	m := mustOpen(t, c)
	err := m.Load(context.Background(), LoadOptions{
		LogConfig: func(name string) commitlog.Config { return LogConfig(config.Default().Topic(k.topics[name].Configs)) },
		Fate: func(at FoundPartition) Decision {
			want := k.topics[at.Partition.Topic].TopicID
			return keepIf(at.TopicID.IsZero() || want == "" || at.TopicID.String() == want)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantOffsets compares the start and the ends of all logs with what Kafka's clients were told.
func (k *kafkaDir) wantOffsets(t testing.TB, m *Manager) {
	t.Helper()
	partitions := k.Offsets(t)
	for _, want := range partitions {
		l := m.Log(want.ID())
		if l == nil {
			t.Errorf("%v is not loaded", want.ID())
			continue
		}
		o := l.Offsets()
		got := [4]int64{o.LogStart, o.LastStable, o.HighWatermark, o.End}
		if want := [4]int64{want.LogStart, want.LastStable, want.HighWatermark, want.HighWatermark}; got != want {
			t.Errorf("%v: start, last stable, high watermark, end: got %v, want %v", l.Partition(), got, want)
		}
	}
	if n := len(m.places.entries()); n != len(partitions) || n == 0 {
		t.Errorf("%d logs loaded, want %d", n, len(partitions))
	}
}

// wantServed compares what all logs serve, by offset and by time, with what Kafka's clients got.
// With its checkpoint lost, a log may start before where Kafka's started.
func (k *kafkaDir) wantServed(t testing.TB, m *Manager, startsLost bool) {
	t.Helper()
	records, uncommitted := k.Records(t), k.Uncommitted(t)
	for _, want := range k.Offsets(t) {
		id := want.ID()
		l := m.Log(id)
		if l == nil {
			t.Errorf("%v is not loaded", id)
			continue
		}
		l.SetHighWatermark(l.Offsets().End)
		if k.Set == "kafka-4.4.0-torn" && id == tornTxn {
			wantQuarantine(t, l, records[id])
			continue
		}
		o := l.Offsets()
		if o.End != want.HighWatermark || o.LastStable != want.LastStable || o.LogStart > want.LogStart || o.LogStart < want.LogStart && !startsLost {
			t.Errorf("%v: got [%d,%d), last stable %d, want [%d,%d), %d", id, o.LogStart, o.End, o.LastStable, want.LogStart, want.HighWatermark, want.LastStable)
			continue
		}
		var committed []golden.Record
		for _, r := range records[id] {
			if !uncommitted[id][r.Offset] {
				committed = append(committed, r)
			}
		}
		wantRecords(t, l, want.LogStart, commitlog.ReadUncommitted, records[id])
		wantRecords(t, l, want.LogStart, commitlog.ReadCommitted, committed)
		if o.LogStart == want.LogStart {
			wantAnswers(t, l, &want)
		}
	}
}

// tornTxn has a bad checksum in its last segment, at offset 379. Kafka cuts what is behind it.
var tornTxn = topic.Partition{Topic: "load-txn"}

// wantQuarantine checks that a bad batch costs its own offsets only.
func wantQuarantine(t testing.TB, l *commitlog.Log, want []golden.Record) {
	t.Helper()
	if end := l.Offsets().End; end != 382 {
		t.Errorf("%v: got end %d, want 382", l.Partition(), end)
	}
	if _, err := l.Read(379, 10_000, commitlog.ReadUncommitted, segment.WholeFirst); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("%v: got %v, want damage at 379", l.Partition(), err)
	}
	list, end := consumeTo(t, l, 0, 379, commitlog.ReadUncommitted)
	if end != 379 || !reflect.DeepEqual(list, want) {
		t.Errorf("%v: got %d records up to %d, want %d up to 379", l.Partition(), len(list), end, len(want))
	}
	if list := consume(t, l, 380, commitlog.ReadUncommitted); len(list) != 2 || list[0].Offset != 380 || list[1].Offset != 381 {
		t.Errorf("%v: got %v behind the damage, want 380 and 381", l.Partition(), list)
	}
}

func wantRecords(t testing.TB, l *commitlog.Log, start int64, isolation commitlog.Isolation, want []golden.Record) {
	t.Helper()
	got := consume(t, l, start, isolation)
	if len(got) != len(want) {
		t.Errorf("%v: isolation %d: got %d records, want %d", l.Partition(), isolation, len(got), len(want))
		return
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%v: isolation %d: offset %d: (-want +got)\n%s", l.Partition(), isolation, want[i].Offset, cmp.Diff(want[i], got[i]))
			return
		}
	}
}

// consume reads a log as a consumer does, from an offset to the end.
func consume(t testing.TB, l *commitlog.Log, from int64, isolation commitlog.Isolation) []golden.Record {
	t.Helper()
	list, _ := consumeTo(t, l, from, math.MaxInt64, isolation)
	return list
}

// consumeTo reads up to an offset at most, and returns how far it came.
func consumeTo(t testing.TB, l *commitlog.Log, from, to int64, isolation commitlog.Isolation) (list []golden.Record, end int64) {
	t.Helper()
	for from < to {
		r, err := l.Read(from, 10_000, isolation, segment.WholeFirst)
		if err != nil {
			t.Fatal(err)
		}
		set := make([]byte, r.Slice.Size())
		_, err = r.Slice.ReadAt(set, 0)
		r.Slice.Release()
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		before := from
		for b := range record.Batches(set) {
			if err := b.Verify(); err != nil {
				t.Fatalf("%v: %v", l.Partition(), err)
			}
			if !b.IsControl() && !isAborted(b, r.Aborted) {
				list = appendRecords(t, list, l.Partition(), b, from)
			}
			from = max(from, b.NextOffset())
		}
		if from == before {
			break
		}
	}
	return list, from
}

// isAborted reports whether a batch is of an aborted transaction.
func isAborted(b record.Batch, list []segment.AbortedTxn) bool {
	for _, a := range list {
		if b.Magic() == 2 && b.IsTransactional() && b.ProducerID() == a.ProducerID && b.BaseOffset() >= a.FirstOffset && b.BaseOffset() < a.LastOffset {
			return true
		}
	}
	return false
}

func appendRecords(t testing.TB, list []golden.Record, p topic.Partition, b record.Batch, from int64) []golden.Record {
	t.Helper()
	var epoch *int32
	if e := b.LeaderEpoch(); b.Magic() == 2 && e >= 0 {
		epoch = &e
	}
	for r, err := range b.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset < from {
			continue
		}
		g := golden.Record{Topic: p.Topic, Partition: p.Partition, Offset: r.Offset, Timestamp: r.Timestamp, TimestampType: r.TimestampType.String(),
			LeaderEpoch: epoch, Key: cloned(r.Key), Value: cloned(r.Value), Headers: []golden.Header{}}
		for _, h := range r.Headers {
			g.Headers = append(g.Headers, golden.Header{Name: h.Key, Value: cloned(h.Value)})
		}
		list = append(list, g)
	}
	return list
}

// cloned keeps the difference between null and empty.
func cloned(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// wantAnswers compares lookups by time with Kafka's answers. Where those name no record, the log is
// read: an empty segment in front may hide them from Kafka, and 1.1.1 finds none in mixed formats.
func wantAnswers(t testing.TB, l *commitlog.Log, want *golden.Offsets) {
	t.Helper()
	f := func(timestamp int64, want golden.Answer) {
		t.Helper()
		got, ok, err := l.Lookup(commitlog.LookupRequest{Timestamp: timestamp})
		if err != nil {
			t.Fatal(err)
		}
		answer := golden.Answer{Query: want.Query, Offset: -1, Timestamp: -1}
		if ok {
			answer.Offset, answer.Timestamp = got.Offset, got.Timestamp
			if got.LeaderEpoch >= 0 {
				answer.LeaderEpoch = &got.LeaderEpoch
			}
		}
		if timestamp == commitlog.EarliestLocal { // it may be the one of Kafka's last start
			want.LeaderEpoch = nil
		}
		if want.LeaderEpoch == nil { // old releases answer none
			answer.LeaderEpoch = nil
		}
		if !reflect.DeepEqual(answer, want) {
			t.Errorf("%v: lookup(%d): (-want +got)\n%s", l.Partition(), timestamp, cmp.Diff(want, answer))
		}
	}
	if a := want.MaxTimestamp; a != nil {
		if a.Timestamp < 0 {
			a.Offset = -1 // Kafka may name a record that has no timestamp
		}
		f(commitlog.MaxTimestamp, *a)
	}
	if want.EarliestLocal != nil {
		f(commitlog.EarliestLocal, *want.EarliestLocal)
	}
	for _, q := range want.ByTimestamp {
		if q.Offset < 0 {
			q = firstAtOrAfter(t, l, q.Query)
		}
		f(q.Query, q)
	}
}

// firstAtOrAfter finds the answer to a lookup by reading the log. Control records count.
func firstAtOrAfter(t testing.TB, l *commitlog.Log, timestamp int64) golden.Answer {
	t.Helper()
	o := l.Offsets()
	for from := o.LogStart; from < o.End; {
		r, err := l.Read(from, 10_000, commitlog.ReadLogEnd, segment.WholeFirst)
		if err != nil {
			t.Fatal(err)
		}
		set := make([]byte, r.Slice.Size())
		_, err = r.Slice.ReadAt(set, 0)
		r.Slice.Release()
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for b := range record.Batches(set) {
			for _, r := range appendRecords(t, nil, l.Partition(), b, from) {
				if r.Timestamp >= timestamp {
					return golden.Answer{Query: timestamp, Offset: r.Offset, Timestamp: r.Timestamp, LeaderEpoch: r.LeaderEpoch}
				}
			}
			from = max(from, b.NextOffset())
		}
	}
	return golden.Answer{Query: timestamp, Offset: -1, Timestamp: -1}
}

// contents reads the files that hold records.
func contents(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, partition := range names(t, fsys, dir) {
		if kind, _ := classify(partition); kind != liveDir {
			continue
		}
		for _, name := range names(t, fsys, filepath.Join(dir, partition)) {
			if strings.HasSuffix(name, ".log") {
				files[partition+"/"+name] = readText(t, fsys, filepath.Join(dir, partition, name))
			}
		}
	}
	return files
}

// Every directory of Kafka's serves, as it is and as after a crash, the records that Kafka's
// clients read from it, by offset and by time. gregor changes no record file of it.
func TestGolden(t *testing.T) {
	for _, d := range golden.Dirs() {
		f := func(name string, clean bool, lost ...string) {
			t.Run(d.String()+"/"+name, func(t *testing.T) {
				k := unpackKafka(t, vfs.NewMem(), "/", d)
				k.stop(t, clean)
				k.remove(t, lost...)
				before := contents(t, k.fsys, k.path)
				m := k.load(t)
				if d.Expected {
					k.wantServed(t, m, len(lost) > 0)
				}
				mustClose(t, m)
				if diff := cmp.Diff(before, contents(t, k.fsys, k.path)); diff != "" && d.Set != "kafka-4.4.0-torn" {
					t.Errorf("files changed (-before +after)\n%s", diff)
				}

				m = k.load(t)
				if d.Expected {
					k.wantServed(t, m, len(lost) > 0)
				}
				mustClose(t, m)
			})
		}
		f("crash", false)
		if raceDetector {
			continue // with it this takes minutes, and the others have no other goroutines
		}
		if d.Clean {
			f("clean", true)
		}
		f("no checkpoints", false, checkpointNames[:]...)
	}
}

// A directory of Kafka's opens after its clean stop, stops cleanly, and is then as it was:
// checkpoints and identity too.
func TestGoldenIsLeftAsItWas(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS} {
		t.Run(name, func(t *testing.T) {
			k := unpackKafka(t, fsys, t.TempDir(), kraft)
			before, identity := contents(t, fsys, k.path), mustMeta(t, fsys, k.path)
			checkpoints := readCheckpoints(t, fsys, k.path)
			for range 2 {
				m := k.load(t)
				k.wantOffsets(t, m)
				mustClose(t, m)
			}
			if d := cmp.Diff(before, contents(t, fsys, k.path)); d != "" {
				t.Errorf("files changed (-before +after)\n%s", d)
			}
			if d := cmp.Diff(checkpoints, readCheckpoints(t, fsys, k.path)); d != "" {
				t.Errorf("checkpoints (-Kafka +gregor)\n%s", d)
			}
			if got := mustMeta(t, fsys, k.path); got != identity {
				t.Errorf("meta.properties: got %+v, want %+v", got, identity)
			}
		})
	}
}

func readCheckpoints(t *testing.T, fsys vfs.FS, dir string) (read offsets) {
	t.Helper()
	for k, name := range checkpointNames {
		var err error
		if read[k], err = checkpoint.ReadOffsets(fsys, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return read
}

// Recovery points beyond the end are no harm.
func TestGoldenRecoveryPointsBeyondTheEnd(t *testing.T) {
	k := unpackKafka(t, vfs.NewMem(), "/", kraft)
	k.stop(t, false)
	path := filepath.Join(k.path, checkpoint.RecoveryPoints)
	points, err := checkpoint.ReadOffsets(k.fsys, path)
	for p := range points {
		points[p] += 1000
	}
	if err := errors.Join(err, checkpoint.WriteOffsets(k.fsys, path, points)); err != nil {
		t.Fatal(err)
	}
	m := k.load(t)
	k.wantOffsets(t, m)
	mustClose(t, m)
}

// A partition of Kafka's goes on where Kafka stopped.
func TestGoldenAppend(t *testing.T) {
	for _, d := range golden.Dirs() {
		t.Run(d.String(), func(t *testing.T) {
			k := unpackKafka(t, vfs.NewMem(), "/", d)
			k.stop(t, d.Clean)
			m := k.load(t)
			ends := map[topic.Partition]int64{}
			for p, l := range m.Logs() {
				l.SetHighWatermark(l.Offsets().End)
				ends[p] = l.Offsets().End
				l.EnterEpoch(100)
				_, err := l.AppendAsLeader(keyedBatch(t, l.Config().MessageFormat), 100, commitlog.AppendOptions{Origin: record.Coordinator})
				if err != nil {
					t.Fatalf("%v: %v", p, err)
				}
			}
			mustClose(t, m)
			m = k.load(t)
			for p, l := range m.Logs() {
				if got := l.Offsets().End; got != ends[p]+1 {
					t.Errorf("%v: got end %d, want %d", p, got, ends[p]+1)
				}
				if err := l.Scrub(nil); err != nil { // or the damage in the torn set is new to Check
					t.Error(err)
				}
			}
			mustClose(t, m)
		})
	}
}

// keyedBatch is a record that a compacted topic takes too.
func keyedBatch(t testing.TB, magic int8) []byte {
	t.Helper()
	r := record.Record{Timestamp: recordTime, Key: []byte("key"), Value: []byte("value")}
	if magic == 2 {
		return logtest.Batch(t, record.BuilderOptions{}, r)
	}
	b, err := record.NewSetBuilder(record.SetOptions{Magic: magic})
	if err == nil {
		err = b.Append(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Build()
}
