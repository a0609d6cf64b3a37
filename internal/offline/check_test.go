package offline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A fixture is a log directory with one partition of two segments, [0,20) and [20,40), of
// batches of two records, as a clean stop leaves it.
type fixture struct {
	t   *testing.T
	mem *vfs.Mem
}

const fixtureDir = "/data/orders-0"

func newFixture(t *testing.T) *fixture {
	x := &fixture{t, vfs.NewMem()}
	id := uuid.New()
	x.put("../meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+uuid.New().String()+"\n"))
	x.put("../.kafka_cleanshutdown", nil)
	x.put("partition.metadata", []byte("version: 0\ntopic_id: "+id.String()))
	x.put(checkpoint.LeaderEpochs, []byte("0\n2\n0 0\n3 20\n"))
	x.offsets(checkpoint.RecoveryPoints, 40)
	x.offsets(checkpoint.HighWatermarks, 40)
	x.put("../"+checkpoint.LogStartOffsets, []byte("0\n0\n"))
	x.segment(0, 20, 0)
	x.segment(20, 40, 3)
	return x
}

// findings are those that a fixture does not have for want of a metadata log.
func (x *fixture) findings() *Report {
	x.t.Helper()
	r := mustCheck(x.t, readOnly{x.mem}, "/data")
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return strings.HasPrefix(f.Message, "no metadata log") })
	return r
}

func (x *fixture) path(name string) string { return filepath.Join(fixtureDir, name) }

func (x *fixture) put(name string, data []byte) { mustWrite(x.t, x.mem, x.path(name), data) }

func (x *fixture) get(name string) []byte {
	data, err := vfs.ReadFile(x.mem, x.path(name), 1<<20)
	if err != nil {
		x.t.Fatal(err)
	}
	return data
}

func (x *fixture) remove(name string) {
	if err := x.mem.Remove(x.path(name)); err != nil {
		x.t.Fatal(err)
	}
}

func (x *fixture) change(name string, change func([]byte) []byte) { x.put(name, change(x.get(name))) }

func (x *fixture) offsets(name string, offset int64) {
	p := topic.Partition{Topic: "orders"}
	if err := checkpoint.WriteOffsets(x.mem, "/data/"+name, map[topic.Partition]int64{p: offset}); err != nil {
		x.t.Fatal(err)
	}
}

// batch makes one of two records at an offset.
func batch(offset int64, epoch int32, o record.BuilderOptions) []byte {
	o.BaseOffset, o.LeaderEpoch = offset, epoch
	b := record.NewBuilder(o)
	for i := range int64(2) {
		b.Append(record.Record{Offset: offset + i, Timestamp: 1000 + offset + i, Value: []byte("value")})
	}
	return b.Build()
}

// segment writes one with an index entry for its last batch.
func (x *fixture) segment(from, to int64, epoch int32) {
	var log []byte
	last := 0
	for o := from; o < to; o += 2 {
		last = len(log)
		log = append(log, batch(o, epoch, record.BuilderOptions{})...)
	}
	index := binary.BigEndian.AppendUint32(nil, uint32(to-1-from))
	index = binary.BigEndian.AppendUint32(index, uint32(last))
	times := binary.BigEndian.AppendUint64(nil, uint64(1000+to-1))
	times = binary.BigEndian.AppendUint32(times, uint32(to-1-from))
	x.put(segment.Name(from, segment.LogFile, ""), log)
	x.put(segment.Name(from, segment.IndexFile, ""), index)
	x.put(segment.Name(from, segment.TimeIndexFile, ""), times)
}

const (
	log0   = "00000000000000000000.log"
	log20  = "00000000000000000020.log"
	index0 = "00000000000000000000.index"
	times0 = "00000000000000000000.timeindex"
)

// wantFinding checks that the first damage in a file has a text, and that no other file has
// any, besides those named.
func (x *fixture) wantFinding(name, text string, others ...string) {
	x.t.Helper()
	r := mustCheck(x.t, readOnly{x.mem}, "/data")
	found := false
	for _, f := range r.Findings {
		switch {
		case f.Severity == Note:
		case f.File == x.path(name):
			found = found || strings.Contains(f.Message, text)
		default:
			other := false
			for _, o := range others {
				other = other || f.File == x.path(o)
			}
			if !other {
				x.t.Errorf("also: %v", f)
			}
		}
	}
	if !found {
		x.t.Errorf("%s: no %q in %v", name, text, r.Findings)
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
	size := len(batch(0, 0, record.BuilderOptions{}))
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	set := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	file := func(name string, change func([]byte) []byte) func(x *fixture) {
		return func(x *fixture) { x.change(name, change) }
	}
	f("torn", file(log20, cut(3)), log20, "is torn", "00000000000000000020.index", "../recovery-point-offset-checkpoint")
	f("checksum", file(log0, set(size+70, 'x')), log0, "crc ")
	f("length", file(log0, set(size+11, 1)), log0, "the next good batch is at byte")
	f("offset", file(log0, set(size+7, 3)), log0, "overlap")
	f("far offset", file(log0, set(size, 0x7f)), log0, "do not belong")
	f("epoch", file(log0, set(3*size+15, 9)), log0, "leader epoch 9, leader-epoch-checkpoint says 0")
	f("index position", file(index0, set(7, 1)), index0, "no batch begins")
	f("index offset", file(index0, set(3, 17)), index0, "entry for offset 17: the batches")
	f("index end", file(index0, func(b []byte) []byte { return append(b, b...) }), index0, "entry leads to")
	f("index rest", file(index0, func(b []byte) []byte { return append(b, 1) }), index0, "1 bytes at the end")
	f("index missing", func(x *fixture) { x.remove(index0) }, index0, "missing")
	f("times", file(times0, set(7, 1)), times0, "timestamp")
	f("times missing", func(x *fixture) { x.remove(times0) }, times0, "missing")
	f("segment missing", func(x *fixture) {
		x.segment(40, 60, 3)
		x.offsets(checkpoint.RecoveryPoints, 60)
		for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
			x.remove(segment.Name(20, kind, ""))
		}
		x.offsets(checkpoint.CleanerOffsets, 0)
		x.put("../"+checkpoint.CleanerOffsets, []byte("0\n0\n"))
	}, "00000000000000000040.log", "offsets 20-39 are missing")
	f("log missing", func(x *fixture) { x.remove(log0) }, index0, ".log file is missing", times0, log20)
	f("segments overlap", func(x *fixture) {
		x.segment(10, 30, 0)
	}, "00000000000000000010.log", "begins below 20", log20, log0)
	f("epochs missing", func(x *fixture) { x.remove(checkpoint.LeaderEpochs) }, checkpoint.LeaderEpochs, "missing")
	f("epochs empty", file(checkpoint.LeaderEpochs, func([]byte) []byte { return nil }), checkpoint.LeaderEpochs, "empty")
	f("epochs wrong", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n2\n1 0\n4 20\n") }), checkpoint.LeaderEpochs, "epoch 1 at offset 0")
	f("epochs beyond", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n3\n0 0\n3 20\n4 41\n") }), checkpoint.LeaderEpochs, "begins at offset 41")
	f("epochs behind", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n1\n0 0\n") }), log20, "leader epoch 3, leader-epoch-checkpoint says 0")
	f("epochs behind in the middle", func(x *fixture) {
		x.remove("../.kafka_cleanshutdown")
		x.put(checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
		x.change(log20, set(9*size+15, 0))
	}, log20, "leader epoch 3, leader-epoch-checkpoint says 0")
	f("epochs text", file(checkpoint.LeaderEpochs, func([]byte) []byte { return []byte("0\n7\n") }), checkpoint.LeaderEpochs, "entries")
	f("topic id", file("partition.metadata", func([]byte) []byte { return []byte("version: 0") }), "partition.metadata", "topic")
	f("no topic id", func(x *fixture) { x.remove("partition.metadata") }, "partition.metadata", "stray")
	f("recovery point", func(x *fixture) { x.offsets(checkpoint.RecoveryPoints, 41) }, "../recovery-point-offset-checkpoint", "is 41", log20)
	f("flushed records gone", func(x *fixture) {
		x.offsets(checkpoint.RecoveryPoints, 41)
		x.remove("../.kafka_cleanshutdown")
	}, "../recovery-point-offset-checkpoint", "flushed records are gone")
	f("high watermark", func(x *fixture) { x.offsets(checkpoint.HighWatermarks, 41) }, "../replication-offset-checkpoint", "is 41")
	f("log start", func(x *fixture) { x.offsets(checkpoint.LogStartOffsets, 41) }, "../log-start-offset-checkpoint", "is 41")
	f("checkpoint", func(x *fixture) { x.put("../replication-offset-checkpoint", []byte("0\n1\norders zero 3\n")) }, "../replication-offset-checkpoint", "")
	f("checkpoint missing", func(x *fixture) { x.remove("../replication-offset-checkpoint") }, "../replication-offset-checkpoint", "missing")
	f("meta.properties", func(x *fixture) { x.put("../meta.properties", []byte("version=7\n")) }, "../meta.properties", "")
	f("snapshot", func(x *fixture) { x.put("00000000000000000040.snapshot", []byte("\x00\x01aaaaaaaa")) }, "00000000000000000040.snapshot", "crc")
	f("records", func(x *fixture) {
		b := record.Batch(batch(0, 0, record.BuilderOptions{}))
		b[record.HeaderSize+5] = 40 // the value's length
		restamp(b)
		x.change(log0, func(log []byte) []byte { copy(log, b); return log })
	}, log0, "field of a record does not fit its length")
	f("aborted transaction", func(x *fixture) {
		producer := &record.Producer{ID: 7, Epoch: 1}
		log := batch(40, 3, record.BuilderOptions{Producer: producer, Transactional: true})
		log = append(log, record.EndTxnMarker(record.EndTxn{
			Type: record.ControlAbort, BaseOffset: 42, ProducerID: 7, ProducerEpoch: 1, LeaderEpoch: 3, Timestamp: 2000,
		})...)
		x.put("00000000000000000040.log", log)
		x.put("00000000000000000040.index", nil)
		x.put("00000000000000000040.timeindex", nil)
		x.offsets(checkpoint.RecoveryPoints, 43)
	}, "00000000000000000040.txnindex", "transactions were aborted")
}

// restamp computes the checksum of a batch anew.
func restamp(b record.Batch) {
	b.SetMaxTimestamp(record.CreateTime, b.MaxTimestamp()+1)
}

// What several directories of one broker have to agree on.
func TestCheckComparesDirectories(t *testing.T) {
	x := newFixture(t)
	meta := x.get("../meta.properties")
	other := strings.NewReplacer("/data/", "/other/").Replace
	id := uuid.New()
	mustWrite(t, x.mem, "/other/meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+id.String()+"\n"))
	mustWrite(t, x.mem, "/other/.kafka_cleanshutdown", nil)
	f := func(want string, damage bool) {
		t.Helper()
		r := mustCheck(t, readOnly{x.mem}, "/data", "/other")
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
	x.put("../meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+id.String()+"\n"))
	f("/other/meta.properties: directory.id "+id.String()+" is that of /data as well", true)
	x.put("../meta.properties", meta)
	for _, name := range []string{log0, index0, times0, "partition.metadata", checkpoint.LeaderEpochs} {
		mustWrite(t, x.mem, other(x.path(name)), x.get(name))
	}
	f("/other/orders-0: in /data/orders-0 as well: no broker", true)
	x.put(copyFile, nil)
	f("/other/orders-0: in /data/orders-0 as well: a move", false)
	mustWrite(t, x.mem, "/other/meta.properties", []byte("version=1\ncluster.id=c\nnode.id=2\ndirectory.id="+uuid.New().String()+"\n"))
	r := mustCheck(t, readOnly{x.mem}, "/data", "/other")
	for _, f := range r.Findings {
		if strings.Contains(f.Message, "as well") {
			t.Errorf("another broker: %v", f)
		}
	}
}

// The metadata log knows the ids of topics, for all directories of the broker.
func TestCheckHoldsTopicIdsAgainstTheMetadataLog(t *testing.T) {
	x := newFixture(t)
	m, err := checkpoint.ReadPartitionMetadata(x.mem, x.path("partition.metadata"))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, x.mem, "/other/meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+uuid.New().String()+"\n"))
	mustWrite(t, x.mem, "/other/.kafka_cleanshutdown", nil)
	f := func(topicID uuid.UUID, name, want string) {
		t.Helper()
		value := metadata.Append(nil, &metadata.TopicRecord{Name: name, TopicID: topicID}, 0)
		b := record.NewBuilder(record.BuilderOptions{})
		node := metadata.Append(nil, &metadata.RegisterBrokerRecord{BrokerID: 1}, 0)
		if err := errors.Join(b.Append(record.Record{Value: value}), b.Append(record.Record{Offset: 1, Value: node})); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, x.mem, "/other/__cluster_metadata-0/"+log0, b.Build())
		mustWrite(t, x.mem, "/other/__cluster_metadata-0/partition.metadata", []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"))
		mustWrite(t, x.mem, "/other/__cluster_metadata-0/"+checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
		r := mustCheck(t, readOnly{x.mem}, "/data", "/other")
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
	if r := mustCheck(t, readOnly{x.mem}, fixtureDir); len(r.Findings) > 0 || r.Partitions != 1 {
		t.Error(r.Partitions, r.Findings)
	}
}

// A broker that is killed may have appended under an epoch that is not in the file yet.
func TestCheckAfterAKillInANewEpoch(t *testing.T) {
	x := newFixture(t)
	x.remove("../.kafka_cleanshutdown")
	x.put(checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
	r := mustCheck(t, readOnly{x.mem}, "/data")
	noted := slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.File == x.path(log20) && f.Offset == 20 && strings.Contains(f.Message, "leader epoch 3, which leader-epoch-checkpoint has not")
	})
	if r.Damaged() > 0 || !noted {
		t.Error(r.Findings)
	}
}

// What a crash or the cleaner leaves is explained, and no damage.
func TestCheckExplainsLeftovers(t *testing.T) {
	x := newFixture(t)
	x.put("00000000000000000000.log.swap", nil)
	x.put("00000000000000000000.log.cleaned", nil)
	x.put("../replication-offset-checkpoint.tmp", nil)
	mustWrite(t, x.mem, "/data/old-0.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log", nil)
	mustWrite(t, x.mem, "/data/lost+found/x", nil)
	r := mustCheck(t, readOnly{x.mem}, "/data")
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
		log := batch(40, 3, record.BuilderOptions{Producer: &record.Producer{ID: 7}, Transactional: true})
		log = append(log, record.EndTxnMarker(record.EndTxn{
			Type: record.ControlAbort, BaseOffset: 42, ProducerID: 7, LeaderEpoch: 3, Timestamp: 2000,
		})...)
		x.put(log40, log)
		x.put("00000000000000000040.index", nil)
		x.put("00000000000000000040.timeindex", timeEntryOf(2000, 2))
		entry := binary.BigEndian.AppendUint16(nil, 0)
		for _, v := range []int64{7, first, 42, stable} {
			entry = binary.BigEndian.AppendUint64(entry, uint64(v))
		}
		x.put("00000000000000000040.txnindex", entry)
		x.offsets(checkpoint.RecoveryPoints, 43)
		x.offsets(checkpoint.CleanerOffsets, cleaned)
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
		log = append(log, batch(offset, 3, record.BuilderOptions{Producer: producer, Transactional: true})...)
		end := record.EndTxn{Type: record.ControlAbort, BaseOffset: offset + 2, ProducerID: 7, LeaderEpoch: 3, Timestamp: 2000 + offset}
		log = append(log, record.EndTxnMarker(end)...)
	}
	f := func(first int64, want string) {
		t.Helper()
		x := newFixture(t)
		x.put(log40, log)
		x.put("00000000000000000040.index", nil)
		x.put("00000000000000000040.timeindex", timeEntryOf(2043, 5))
		var entries []byte
		for _, v := range [][4]int64{{7, 40, 42, 43}, {7, first, 45, 46}} {
			entries = binary.BigEndian.AppendUint16(entries, 0)
			for _, field := range v {
				entries = binary.BigEndian.AppendUint64(entries, uint64(field))
			}
		}
		x.put("00000000000000000040.txnindex", entries)
		x.offsets(checkpoint.RecoveryPoints, 46)
		x.offsets(checkpoint.CleanerOffsets, 46) // so that batches may be missing
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
		if len(r.Findings) != 1 || r.Damaged() > 0 || r.Findings[0].File != x.path(file) || !strings.Contains(r.Findings[0].Message, want) {
			t.Errorf("got %v, want a note of %s: %q", r.Findings, file, want)
		}
	}
	f(func(x *fixture) { x.put(times0, nil) }, times0, "the largest timestamp of the segment, 1019, is not in it")
	f(func(x *fixture) {
		log := x.get(log20)
		for offset := int64(40); offset < 52; offset++ {
			b := record.NewBuilder(record.BuilderOptions{BaseOffset: offset, LeaderEpoch: 3})
			if err := b.Append(record.Record{Offset: offset, Timestamp: 1000 + offset, Value: make([]byte, 1<<20)}); err != nil {
				t.Fatal(err)
			}
			log = append(log, b.Build()...)
		}
		x.put(log20, log)
		x.put("00000000000000000020.timeindex", timeEntryOf(1051, 31))
		x.offsets(checkpoint.RecoveryPoints, 52)
	}, "00000000000000000020.index", "no entry for the bytes from 765 to")
}

// A file of noise ends in an answer, and soon.
func TestCheckBoundsTheSearch(t *testing.T) {
	x := newFixture(t)
	x.change(log0, func(b []byte) []byte {
		b[70] ^= 1
		return append(b, bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 1, 0, 0, 0, 0, 0, 2}, 1<<16)...)
	})
	r := mustCheck(t, readOnly{x.mem}, fixtureDir)
	if r.Damaged() == 0 || len(r.Findings) > findingsMax+1 {
		t.Errorf("%d findings", len(r.Findings))
	}
}

func TestCheckStopsWhenCancelled(t *testing.T) {
	x := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, []string{"/data"}, CheckOptions{FS: x.mem}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCheckProgress(t *testing.T) {
	p := Progress{Done: 25, Total: 100, Elapsed: 1e9}
	if p.Rate() != 25 || p.Left() != 3e9 {
		t.Errorf("rate %v, left %v", p.Rate(), p.Left())
	}
}
