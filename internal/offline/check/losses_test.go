package check

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// missing takes the segment [20,40) away, as a gregor finds it that goes on at 40.
func (x *fixture) missing() {
	for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
		x.Remove(segment.Name(20, kind, ""))
		x.Put(segment.Name(40, kind, ""), nil)
	}
	x.Put("../"+checkpoint.CleanerOffsets, []byte("0\n0\n"))
}

// What gregor knows to be lost is reported once, and what it has written of that is checked.
func TestCheckKnownDamage(t *testing.T) {
	f := func(what string, harm func(x *fixture), want ...string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			harm(x)
			var got []string
			for _, f := range x.findings().Findings {
				got = append(got, f.String())
			}
			if !slices.EqualFunc(got, want, strings.Contains) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	const losses, txns = "damage: /data/orders-0/gregor-losses", "/data/orders-0/gregor-transactions"
	f("nobody knows", (*fixture).missing, "damage: /data/orders-0/00000000000000000040.log: byte 0 (offset 20): offsets 20-39 are missing")
	f("lost", func(x *fixture) {
		x.missing()
		x.Lost(checkpoint.Loss{First: 20, End: 40})
	}, losses+" (offset 20): known damage: the records of offsets 20-39 are lost")
	f("lost in part", func(x *fixture) {
		x.missing()
		x.Lost(checkpoint.Loss{First: 20, End: 25}, checkpoint.Loss{First: 30, End: 40})
	}, "offsets 25-29 are missing", losses+" (offset 20)", losses+" (offset 30)")
	f("deleted meanwhile", func(x *fixture) {
		x.missing()
		x.Lost(checkpoint.Loss{First: 20, End: 40})
		x.Put("../"+checkpoint.LogStartOffsets, []byte("0\n1\norders 0 30\n"))
		x.Put(checkpoint.LeaderEpochs, []byte("0\n1\n3 30\n"))
	}, losses+" (offset 30): known damage: the records of offsets 30-39 are lost")
	f("brought back", func(x *fixture) { x.Lost(checkpoint.Loss{First: 20, End: 40}) })
	f("losses overlap", func(x *fixture) { x.Put(checkpoint.Losses, []byte("0\n2\n0 5\n4 9\n")) }, losses+": line 4")
	f("losses are cut", func(x *fixture) { x.Put(checkpoint.Losses, []byte("0\n1\n0 5")) }, losses+": line 3: the line is cut off")

	open := func(x *fixture) {
		log := offlinetest.Batch(40, 3, record.BuilderOptions{Producer: &record.Producer{ID: 7, Epoch: 1}, Transactional: true})
		log = append(log, record.EndTxnMarker(record.EndTxn{
			Type: record.ControlCommit, BaseOffset: 42, ProducerID: 7, ProducerEpoch: 1, LeaderEpoch: new(int32(3)), Timestamp: 2000,
		})...)
		x.Put("00000000000000000040.log", log)
		x.Put("00000000000000000040.index", nil)
		x.Put("00000000000000000040.timeindex", nil)
		x.Offsets(checkpoint.RecoveryPoints, 43)
		x.Offsets(checkpoint.HighWatermarks, 43)
	}
	f("undecided", func(x *fixture) {
		x.Undecided(checkpoint.LostTransaction{ProducerID: 4, FirstOffset: 9, EndOffset: 19}, checkpoint.LostTransaction{ProducerID: 5, FirstOffset: 3, EndOffset: 19, Outcome: checkpoint.Abort})
	}, "damage: "+txns+" (offset 9): known damage: whether the transaction of producer 4, offsets 9-18,",
		"note: "+txns+" (offset 3): the end of the transaction of producer 5, offsets 3-18, is lost; it counts as ABORT")
	f("undecided, but the marker is there", func(x *fixture) {
		open(x)
		x.Undecided(checkpoint.LostTransaction{ProducerID: 7, FirstOffset: 40, EndOffset: 43})
	}, "note: /data/orders-0/00000000000000000040.timeindex: the largest timestamp")
	f("a digit of a decision", func(x *fixture) {
		x.Undecided(checkpoint.LostTransaction{ProducerID: 4, FirstOffset: 9, EndOffset: 19})
		x.Change(checkpoint.TransactionsFile, func(b []byte) []byte { return bytes.Replace(b, []byte(" 9 "), []byte(" 8 "), 1) })
	}, "damage: "+txns+": line 3: checksum")

	const left = "/data/gregor-left-alone"
	f("left alone", func(x *fixture) { x.Put("../gregor-left-alone", []byte("0\n2\norders 1 0\norders 0 1\n")) },
		"note: "+left+": 2 partitions are left alone and not served, because the metadata does not know them: orders-0, orders-1")
	f("left alone, a value", func(x *fixture) { x.Put("../gregor-left-alone", []byte("0\n1\norders 1 7\n")) },
		"damage: "+left+": orders-1 is 7, want 0 or 1", "note: "+left)
	f("left alone, cut", func(x *fixture) { x.Put("../gregor-left-alone", []byte("0\n1\norders")) }, "damage: "+left+": line 3")
	f("clean state", func(x *fixture) { x.Put("../gregor-clean-state", []byte("GCS1\x00\x00\x00\x01rest")) }, "note: /data/gregor-clean-state: damaged")
	f("clean state, cut", func(x *fixture) { x.Put("../gregor-clean-state", []byte("GCS")) }, "note: /data/gregor-clean-state: damaged")
}
