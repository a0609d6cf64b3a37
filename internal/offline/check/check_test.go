package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A fixture is one that can be checked.
type fixture struct{ *offlinetest.Fixture }

func newFixture(t *testing.T) *fixture { return &fixture{offlinetest.NewFixture(t)} }

// findings are those that a fixture does not have for want of a metadata log.
func (x *fixture) findings() *Report {
	x.T.Helper()
	r := mustCheck(x.T, offlinetest.ReadOnly{FS: x.Mem}, "/data")
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return strings.HasPrefix(f.Message, "no metadata log") })
	return r
}

// wantFinding checks that the first damage in a file has a text, and that no other file has
// any, besides those named.
func (x *fixture) wantFinding(name, text string, others ...string) {
	x.T.Helper()
	r := mustCheck(x.T, offlinetest.ReadOnly{FS: x.Mem}, "/data")
	found := false
	for _, f := range r.Findings {
		switch {
		case f.Severity == Note:
		case f.File == x.Path(name):
			found = found || strings.Contains(f.Message, text)
		default:
			other := false
			for _, o := range others {
				other = other || f.File == x.Path(o)
			}
			if !other {
				x.T.Errorf("also: %v", f)
			}
		}
	}
	if !found {
		x.T.Errorf("%s: no %q in %v", name, text, r.Findings)
	}
}

func TestCheckRules(t *testing.T) {
	f := func(what string, harm func(x *fixture), name, text string, others ...string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			harm(x)
			x.wantFinding(name, text, others...)
		})
	}
	size := len(offlinetest.Batch(0, 0, record.BuilderOptions{}))
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	set := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	file := func(name string, change func([]byte) []byte) func(x *fixture) {
		return func(x *fixture) { x.Change(name, change) }
	}
	f("torn", file(offlinetest.Log20, cut(3)), offlinetest.Log20, "is torn", "00000000000000000020.index", "../recovery-point-offset-checkpoint")
	f("checksum", file(offlinetest.Log0, set(size+70, 'x')), offlinetest.Log0, "crc ")
	f("length", file(offlinetest.Log0, set(size+11, 1)), offlinetest.Log0, "the next good batch is at byte")
	f("offset", file(offlinetest.Log0, set(size+7, 3)), offlinetest.Log0, "overlap")
	f("far offset", file(offlinetest.Log0, set(size, 0x7f)), offlinetest.Log0, "do not belong")
	f("epoch", file(offlinetest.Log0, set(3*size+15, 9)), offlinetest.Log0, "leader epoch 9, leader-epoch-checkpoint says 0")
	f("index position", file(offlinetest.Index0, set(7, 1)), offlinetest.Index0, "no batch begins")
	f("index offset", file(offlinetest.Index0, set(3, 17)), offlinetest.Index0, "entry for offset 17: the batches")
	f("index end", file(offlinetest.Index0, func(b []byte) []byte { return append(b, b...) }), offlinetest.Index0, "entry leads to")
	f("index rest", file(offlinetest.Index0, func(b []byte) []byte { return append(b, 1) }), offlinetest.Index0, "1 bytes at the end")
	f("index missing", func(x *fixture) { x.Remove(offlinetest.Index0) }, offlinetest.Index0, "missing")
	f("times", file(offlinetest.Times0, set(7, 1)), offlinetest.Times0, "timestamp")
	f("times missing", func(x *fixture) { x.Remove(offlinetest.Times0) }, offlinetest.Times0, "missing")
	f("segment missing", func(x *fixture) {
		x.Segment(40, 60, 3)
		x.Offsets(checkpoint.RecoveryPoints, 60)
		for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
			x.Remove(segment.Name(20, kind, ""))
		}
		x.Offsets(checkpoint.CleanerOffsets, 0)
		x.Put("../"+checkpoint.CleanerOffsets, []byte("0\n0\n"))
	}, "00000000000000000040.log", "offsets 20-39 are missing")
	f("log missing", func(x *fixture) { x.Remove(offlinetest.Log0) }, offlinetest.Index0, ".log file is missing", offlinetest.Times0, offlinetest.Log20)
	f("segments overlap", func(x *fixture) {
		x.Segment(10, 30, 0)
	}, "00000000000000000010.log", "begins below 20", offlinetest.Log20, offlinetest.Log0)
	f("epochs missing", func(x *fixture) { x.Remove(checkpoint.LeaderEpochs) }, checkpoint.LeaderEpochs, "missing")
	f("epochs empty", file(checkpoint.LeaderEpochs, func([]byte) []byte { return nil }), checkpoint.LeaderEpochs, "empty")
	f("epochs wrong", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n2\n1 0\n4 20\n") }), checkpoint.LeaderEpochs, "epoch 1 at offset 0")
	f("epochs beyond", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n3\n0 0\n3 20\n4 41\n") }), checkpoint.LeaderEpochs, "begins at offset 41")
	f("epochs behind", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n1\n0 0\n") }), offlinetest.Log20, "leader epoch 3, leader-epoch-checkpoint says 0")
	f("epochs behind in the middle", func(x *fixture) {
		x.Remove("../.kafka_cleanshutdown")
		x.Put(checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
		x.Change(offlinetest.Log20, set(9*size+15, 0))
	}, offlinetest.Log20, "leader epoch 3, leader-epoch-checkpoint says 0")
	f("epochs text", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n7\n") }), checkpoint.LeaderEpochs, "entries")
	f("topic id", file("partition.metadata", func([]byte) []byte { return []byte("version: 0") }), "partition.metadata", "topic")
	f("no topic id", func(x *fixture) { x.Remove("partition.metadata") }, "partition.metadata", "stray")
	f("recovery point", func(x *fixture) { x.Offsets(checkpoint.RecoveryPoints, 41) }, "../recovery-point-offset-checkpoint", "is 41", offlinetest.Log20)
	f("flushed records gone", func(x *fixture) {
		x.Offsets(checkpoint.RecoveryPoints, 41)
		x.Remove("../.kafka_cleanshutdown")
	}, "../recovery-point-offset-checkpoint", "flushed records are gone")
	f("high watermark", func(x *fixture) { x.Offsets(checkpoint.HighWatermarks, 41) }, "../replication-offset-checkpoint", "is 41")
	f("log start", func(x *fixture) { x.Offsets(checkpoint.LogStartOffsets, 41) }, "../log-start-offset-checkpoint", "is 41")
	f("checkpoint", func(x *fixture) { x.Put("../replication-offset-checkpoint", []byte("0\n1\norders zero 3\n")) }, "../replication-offset-checkpoint", "")
	f("checkpoint missing", func(x *fixture) { x.Remove("../replication-offset-checkpoint") }, "../replication-offset-checkpoint", "missing")
	f("meta.properties", func(x *fixture) { x.Put("../meta.properties", []byte("version=7\n")) }, "../meta.properties", "")
	f("snapshot", func(x *fixture) { x.Put("00000000000000000040.snapshot", []byte("\x00\x01aaaaaaaa")) }, "00000000000000000040.snapshot", "crc")
	f("records", func(x *fixture) {
		b := record.Batch(offlinetest.Batch(0, 0, record.BuilderOptions{}))
		b[record.HeaderSize+5] = 40 // the value's length
		restamp(b)
		x.Change(offlinetest.Log0, func(log []byte) []byte { copy(log, b); return log })
	}, offlinetest.Log0, "field of a record does not fit its length")
	f("aborted transaction", func(x *fixture) {
		producer := &record.Producer{ID: 7, Epoch: 1}
		log := offlinetest.Batch(40, 3, record.BuilderOptions{Producer: producer, Transactional: true})
		log = append(log, record.EndTxnMarker(record.EndTxn{
			Type: record.ControlAbort, BaseOffset: 42, ProducerID: 7, ProducerEpoch: 1, LeaderEpoch: new(int32(3)), Timestamp: 2000,
		})...)
		x.Put("00000000000000000040.log", log)
		x.Put("00000000000000000040.index", nil)
		x.Put("00000000000000000040.timeindex", nil)
		x.Offsets(checkpoint.RecoveryPoints, 43)
	}, "00000000000000000040.txnindex", "transactions were aborted")
}

// restamp computes the checksum of a batch anew.
func restamp(b record.Batch) {
	b.SetMaxTimestamp(record.CreateTime, b.MaxTimestamp()+1)
}

// What several directories of one broker have to agree on.
func TestCheckComparesDirectories(t *testing.T) {
	x := newFixture(t)
	meta := x.Get("../meta.properties")
	other := strings.NewReplacer("/data/", "/other/").Replace
	id := uuid.New()
	offlinetest.MustWrite(t, x.Mem, "/other/meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+id.String()+"\n"))
	offlinetest.MustWrite(t, x.Mem, "/other/.kafka_cleanshutdown", nil)
	f := func(want string, damage bool) {
		t.Helper()
		r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data", "/other")
		for _, f := range r.Findings {
			if strings.Contains(f.String(), want) && (f.Severity == Damage) == damage {
				return
			}
		}
		if want != "" || len(r.Findings) > 0 {
			t.Errorf("no %q, damage %t, in %v", want, damage, r.Findings)
		}
	}
	f("", false)
	x.Put("../meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+id.String()+"\n"))
	f("/other/meta.properties: directory.id "+id.String()+" is that of /data as well", true)
	x.Put("../meta.properties", meta)
	for _, name := range []string{offlinetest.Log0, offlinetest.Index0, offlinetest.Times0, "partition.metadata", checkpoint.LeaderEpochs} {
		offlinetest.MustWrite(t, x.Mem, other(x.Path(name)), x.Get(name))
	}
	f("/other/orders-0: in /data/orders-0 as well: no broker", true)
	x.Put(checkpoint.CopyMarker, nil)
	f("/other/orders-0: in /data/orders-0 as well: a move", false)
	offlinetest.MustWrite(t, x.Mem, "/other/meta.properties", []byte("version=1\ncluster.id=c\nnode.id=2\ndirectory.id="+uuid.New().String()+"\n"))
	r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data", "/other")
	for _, f := range r.Findings {
		if strings.Contains(f.Message, "as well") {
			t.Errorf("another broker: %v", f)
		}
	}
}

// The metadata log knows the ids of topics, for all directories of the broker.
func TestCheckHoldsTopicIdsAgainstTheMetadataLog(t *testing.T) {
	x := newFixture(t)
	m, err := checkpoint.ReadPartitionMetadata(x.Mem, x.Path("partition.metadata"))
	if err != nil {
		t.Fatal(err)
	}
	offlinetest.MustWrite(t, x.Mem, "/other/meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+uuid.New().String()+"\n"))
	offlinetest.MustWrite(t, x.Mem, "/other/.kafka_cleanshutdown", nil)
	f := func(topicID uuid.UUID, name, want string) {
		t.Helper()
		value := metadata.Append(nil, &metadata.TopicRecord{Name: name, TopicID: topicID}, 0)
		b := record.NewBuilder(record.BuilderOptions{})
		node := metadata.Append(nil, &metadata.RegisterBrokerRecord{BrokerID: 1}, 0)
		if err := errors.Join(b.Append(record.Record{Value: value}), b.Append(record.Record{Offset: 1, Value: node})); err != nil {
			t.Fatal(err)
		}
		offlinetest.MustWrite(t, x.Mem, "/other/__cluster_metadata-0/"+offlinetest.Log0, b.Build())
		offlinetest.MustWrite(t, x.Mem, "/other/__cluster_metadata-0/partition.metadata", []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"))
		offlinetest.MustWrite(t, x.Mem, "/other/__cluster_metadata-0/"+checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
		r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data", "/other")
		if want == "" && len(r.Findings) == 0 || len(r.Findings) == 1 && strings.Contains(r.Findings[0].String(), want) {
			return
		}
		t.Errorf("got %v, want %q", r.Findings, want)
	}
	f(m.TopicID, "orders", "")
	f(uuid.New(), "orders", "damage: /data/orders-0/partition.metadata: topic id")
	f(m.TopicID, "others", "note: /data/orders-0: the metadata log has no topic of this name")
}

func TestCheckFixtureIsGood(t *testing.T) {
	x := newFixture(t)
	if r := x.findings(); len(r.Findings) > 0 {
		t.Error(r.Findings)
	}
	if r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, offlinetest.FixtureDir); len(r.Findings) > 0 || r.Partitions != 1 {
		t.Error(r.Partitions, r.Findings)
	}
}

// A broker that is killed may have appended under an epoch that is not in the file yet.
func TestCheckAfterAKillInANewEpoch(t *testing.T) {
	x := newFixture(t)
	x.Remove("../.kafka_cleanshutdown")
	x.Put(checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
	r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data")
	noted := slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.File == x.Path(offlinetest.Log20) && f.Offset == 20 && strings.Contains(f.Message, "leader epoch 3, which leader-epoch-checkpoint has not")
	})
	if r.Damaged() > 0 || !noted {
		t.Error(r.Findings)
	}
}

// What a crash or the cleaner leaves is explained, and no damage.
func TestCheckExplainsLeftovers(t *testing.T) {
	x := newFixture(t)
	x.Put("00000000000000000000.log.swap", nil)
	x.Put("00000000000000000000.log.cleaned", nil)
	x.Put("../replication-offset-checkpoint.tmp", nil)
	offlinetest.MustWrite(t, x.Mem, "/data/old-0.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log", nil)
	offlinetest.MustWrite(t, x.Mem, "/data/lost+found/x", nil)
	r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data")
	if r.Damaged() > 0 {
		t.Error(r.Findings)
	}
	var all strings.Builder
	for _, f := range r.Findings {
		all.WriteString(f.String() + "\n")
	}
	for _, want := range []string{".swap: output of compaction", ".cleaned: unfinished", "left over: a crash interrupted", "deleted topic", "Kafka does not start"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in\n%s", want, all.String())
		}
	}
}

// Compaction may have taken the beginning of a transaction, but not in the active segment.
func TestCheckTxnIndexOfACompactedLog(t *testing.T) {
	f := func(cleaned, first, stable int64, want string) {
		t.Helper()
		x := newFixture(t)
		log := offlinetest.Batch(40, 3, record.BuilderOptions{Producer: &record.Producer{ID: 7}, Transactional: true})
		log = append(log, record.EndTxnMarker(record.EndTxn{
			Type: record.ControlAbort, BaseOffset: 42, ProducerID: 7, LeaderEpoch: new(int32(3)), Timestamp: 2000,
		})...)
		x.Put(log40, log)
		x.Put("00000000000000000040.index", nil)
		x.Put("00000000000000000040.timeindex", timeEntryOf(2000, 2))
		entry := binary.BigEndian.AppendUint16(nil, 0)
		for _, v := range []int64{7, first, 42, stable} {
			entry = binary.BigEndian.AppendUint64(entry, uint64(v))
		}
		x.Put("00000000000000000040.txnindex", entry)
		x.Offsets(checkpoint.RecoveryPoints, 43)
		x.Offsets(checkpoint.CleanerOffsets, cleaned)
		if want != "" {
			x.wantFinding("00000000000000000040.txnindex", want)
		} else if r := x.findings(); len(r.Findings) > 0 {
			t.Error(r.Findings)
		}
	}
	f(20, 40, 43, "")
	f(20, 19, 43, "") // its batch may be gone
	f(20, 39, 43, "")
	f(20, 41, 43, "the log says")
	f(20, 40, 39, "") // so may that of another transaction
	f(20, 40, 40, "the log says")
	f(20, 40, 44, "the log says")
}

// A transaction does not begin in front of the marker that ends the one before.
func TestCheckTxnIndexHoldsTransactionsApart(t *testing.T) {
	producer := &record.Producer{ID: 7}
	var log []byte
	for offset := int64(40); offset < 46; offset += 3 {
		log = append(log, offlinetest.Batch(offset, 3, record.BuilderOptions{Producer: producer, Transactional: true})...)
		end := record.EndTxn{Type: record.ControlAbort, BaseOffset: offset + 2, ProducerID: 7, LeaderEpoch: new(int32(3)), Timestamp: 2000 + offset}
		log = append(log, record.EndTxnMarker(end)...)
	}
	f := func(first int64, want string) {
		t.Helper()
		x := newFixture(t)
		x.Put(log40, log)
		x.Put("00000000000000000040.index", nil)
		x.Put("00000000000000000040.timeindex", timeEntryOf(2043, 5))
		var entries []byte
		for _, v := range [][4]int64{{7, 40, 42, 43}, {7, first, 45, 46}} {
			entries = binary.BigEndian.AppendUint16(entries, 0)
			for _, field := range v {
				entries = binary.BigEndian.AppendUint64(entries, uint64(field))
			}
		}
		x.Put("00000000000000000040.txnindex", entries)
		x.Offsets(checkpoint.RecoveryPoints, 46)
		x.Offsets(checkpoint.CleanerOffsets, 46) // so that batches may be missing
		if want != "" {
			x.wantFinding("00000000000000000040.txnindex", want)
		} else if r := x.findings(); len(r.Findings) > 0 {
			t.Error(r.Findings)
		}
	}
	f(43, "")
	f(42, "the log says")
	f(4, "the log says")
}

// timeEntryOf is the only entry of a .timeindex file.
func timeEntryOf(timestamp int64, delta uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(timestamp)), delta)
}

// Indexes that know too little make look-ups slow or wrong, and lose nothing.
func TestCheckNotesIndexesWithTooLittle(t *testing.T) {
	f := func(harm func(x *fixture), file, want string) {
		t.Helper()
		x := newFixture(t)
		harm(x)
		r := x.findings()
		if len(r.Findings) != 1 || r.Damaged() > 0 || r.Findings[0].File != x.Path(file) || !strings.Contains(r.Findings[0].Message, want) {
			t.Errorf("got %v, want a note of %s: %q", r.Findings, file, want)
		}
	}
	f(func(x *fixture) { x.Put(offlinetest.Times0, nil) }, offlinetest.Times0, "the largest timestamp of the segment, 1019, is not in it")
	f(func(x *fixture) {
		log := x.Get(offlinetest.Log20)
		for offset := int64(40); offset < 52; offset++ {
			b := record.NewBuilder(record.BuilderOptions{BaseOffset: offset, LeaderEpoch: new(int32(3))})
			if err := b.Append(record.Record{Offset: offset, Timestamp: 1000 + offset, Value: make([]byte, 1<<20)}); err != nil {
				t.Fatal(err)
			}
			log = append(log, b.Build()...)
		}
		x.Put(offlinetest.Log20, log)
		x.Put("00000000000000000020.timeindex", timeEntryOf(1051, 31))
		x.Offsets(checkpoint.RecoveryPoints, 52)
	}, "00000000000000000020.index", "no entry for the bytes from 765 to")
}

// A file of noise ends in an answer, and soon.
func TestCheckBoundsTheSearch(t *testing.T) {
	x := newFixture(t)
	x.Change(offlinetest.Log0, func(b []byte) []byte {
		b[70] ^= 1
		return append(b, bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 1, 0, 0, 0, 0, 0, 2}, 1<<16)...)
	})
	r := mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, offlinetest.FixtureDir)
	if r.Damaged() == 0 || len(r.Findings) > findingsMax+1 {
		t.Errorf("%d findings", len(r.Findings))
	}
}

func TestCheckStopsWhenCancelled(t *testing.T) {
	x := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dirs(ctx, []string{"/data"}, Options{FS: x.Mem}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCheckProgress(t *testing.T) {
	p := Progress{Done: 25, Total: 100, Elapsed: 1e9}
	if p.Rate() != 25 || p.Left() != 3e9 {
		t.Errorf("rate %v, left %v", p.Rate(), p.Left())
	}
}
