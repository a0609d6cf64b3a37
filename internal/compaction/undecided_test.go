package compaction

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// wipe fills the batch at an offset of a log with zeros, and starts after a crash.
func (g *ledger) wipe(offset int64) {
	g.t.Helper()
	for _, s := range g.log.Offsets().CleanSegments() {
		for l, err := range s.Batches(0, s.Size()) {
			must(g.t, err)
			if l.Batch.BaseOffset() != offset {
				continue
			}
			size := l.Batch.Size()
			must(g.t, g.log.Close())
			f, err := g.fs.OpenFile(s.Path(segment.LogFile), os.O_RDWR, 0)
			must(g.t, err)
			_, err = f.WriteAt(make([]byte, size), l.Position)
			must(g.t, errors.Join(err, f.Close()))
			g.open(false)
			return
		}
	}
	g.t.Fatalf("no batch at %d", offset)
}

// Records of a transaction of which nobody knows whether it was committed stay as they are, and supersede
// none; behind its damage no marker and no tombstone goes. When somebody has decided they are like others.
func TestCleanLeavesUndecided(t *testing.T) {
	const behind = " | 7-7:1 | 8-8:0 9-9:1c 10-12:3h | 13-13:1"
	for outcome, want := range map[string]string{
		"none":   "0-1:1 2-4:3" + behind, // e=1 is not superseded by 4
		"commit": "2-4:2" + behind,       // a=2 is superseded by 11
		"abort":  "0-1:1 2-4:0" + behind,
	} {
		g := newLedger(t)
		g.put(kind{}, "e=1", "b=1")                              // 0
		g.put(kind{producer: 1, txn: true}, "a=2", "c=1", "e=2") // 2
		g.put(kind{}, "b=2")                                     // 5
		g.roll()
		g.end(1, 0, record.ControlCommit) // 6
		g.put(kind{}, "x=1")              // 7
		g.roll()
		g.put(kind{producer: 2, txn: true}, "d=1") // 8
		g.end(2, 0, record.ControlCommit)          // 9
		g.put(kind{}, "b", "a=3", "d=2")           // 10
		g.roll()
		g.put(kind{}, "y=1") // 13
		g.wipe(6)
		list, err := g.log.UndecidedTxns()
		must(t, err)
		if len(list) != 1 || list[0].ProducerID != 1 || list[0].FirstOffset != 2 {
			t.Fatalf("undecided: %+v", list)
		}
		if outcome != "none" {
			must(t, g.log.DecideTxn(1, 2, outcome == "commit"))
		}
		for range 3 { // so that tombstones and markers are old enough
			g.again()
			g.now = g.now.Add(2 * ledgerDelay * time.Millisecond)
		}
		if got := g.batches(); got != want {
			t.Errorf("decision %s: batches %s, want %s", outcome, got, want)
		}
	}
}

// What a cleaning has made of the segments of a transaction and of its COMMIT marker has its records, whatever the
// producer aborts later.
func TestCleanedCommitStaysCommitted(t *testing.T) {
	g := newLedger(t)
	g.put(kind{producer: 1, txn: true}, "h=0") // 0
	g.roll()
	g.put(kind{}, "x=1")              // 1
	g.end(1, 0, record.ControlCommit) // 2
	g.roll()
	g.put(kind{}, "y=1") // 3
	g.clean()
	g.put(kind{producer: 1, txn: true}, "h=1") // 4
	g.end(1, 0, record.ControlAbort)           // 5
	g.roll()
	g.put(kind{}, "z=1") // 6
	for range 2 {
		if got := join(consume(t, g.log, 0, commitlog.ReadCommitted)); got != "0:h=0 1:x=1 3:y=1 6:z=1" {
			t.Fatalf("read %s", got)
		}
		g.again()
	}
}
