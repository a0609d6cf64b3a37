package check

import (
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

const (
	log40      = "00000000000000000040.log"
	snapshot40 = "00000000000000000040.snapshot"
	snapshot47 = "00000000000000000047.snapshot"
)

// withProducers adds a third segment, [40,47), in which
//
//	40-41  producer 7 begins a transaction
//	42     it is committed, by coordinator epoch 5
//	43-44  producer 8 writes without one
//	45-46  producer 9 begins one
//
// and snapshots of the producers in front of it and behind it.
func (x *fixture) withProducers() (before, after []files.ProducerEntry) {
	set := func(offset, id int64, sequence int32, transactional bool) []byte {
		return offlinetest.Batch(offset, 3, record.BuilderOptions{Producer: &record.Producer{ID: id, Epoch: 1, BaseSequence: sequence}, Transactional: transactional})
	}
	log := set(40, 7, 0, true)
	log = append(log, record.EndTxnMarker(record.EndTxn{
		Type: record.ControlCommit, BaseOffset: 42, ProducerID: 7, ProducerEpoch: 1, CoordinatorEpoch: 5, LeaderEpoch: new(int32(3)), Timestamp: 2000,
	})...)
	log = append(log, set(43, 8, 10, false)...)
	log = append(log, set(45, 9, 0, true)...)
	x.Put(log40, log)
	x.Put("00000000000000000040.index", nil)
	x.Put("00000000000000000040.timeindex", timeEntryOf(2000, 2))
	x.Offsets(checkpoint.RecoveryPoints, 47)
	before = []files.ProducerEntry{{ID: 6, Epoch: 2, LastSequence: -1, LastOffset: -1, Timestamp: 5, CoordinatorEpoch: -1, TxnFirstOffset: -1}}
	after = []files.ProducerEntry{
		before[0], // all that the log had of it is compacted away or was deleted
		{ID: 7, Epoch: 1, LastSequence: 1, LastOffset: 41, OffsetDelta: 1, Timestamp: 2000, CoordinatorEpoch: 5, TxnFirstOffset: -1},
		{ID: 8, Epoch: 1, LastSequence: 11, LastOffset: 44, OffsetDelta: 1, Timestamp: 1044, CoordinatorEpoch: -1, TxnFirstOffset: -1},
		{ID: 9, Epoch: 1, LastSequence: 1, LastOffset: 46, OffsetDelta: 1, Timestamp: 1046, CoordinatorEpoch: -1, TxnFirstOffset: 45},
	}
	x.Put(snapshot40, offlinetest.EncodeProducers(before...))
	x.Put(snapshot47, offlinetest.EncodeProducers(after...))
	return before, after
}

func TestCheckHoldsSnapshotsAgainstTheLog(t *testing.T) {
	f := func(what string, change func(after []files.ProducerEntry) []files.ProducerEntry, want string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			_, after := x.withProducers()
			x.Put(snapshot47, offlinetest.EncodeProducers(change(after)...))
			if want != "" {
				x.wantFinding(snapshot47, want)
			} else if r := x.findings(); len(r.Findings) > 0 {
				t.Error(r.Findings)
			}
		})
	}
	entry := func(i int, change func(e *files.ProducerEntry)) func([]files.ProducerEntry) []files.ProducerEntry {
		return func(list []files.ProducerEntry) []files.ProducerEntry { change(&list[i]); return list }
	}
	f("right", func(l []files.ProducerEntry) []files.ProducerEntry { return l }, "")
	f("expired", func(l []files.ProducerEntry) []files.ProducerEntry { return append(l[:1:1], l[3]) }, "")
	f("epoch", entry(1, func(e *files.ProducerEntry) { e.Epoch = 2 }), "producerEpoch: 2 coordinatorEpoch: 5")
	f("sequence", entry(2, func(e *files.ProducerEntry) { e.LastSequence = 10 }), "lastSequence: 10 lastOffset: 44")
	f("offset", entry(2, func(e *files.ProducerEntry) { e.LastOffset = 43 }), "lastOffset: 43")
	f("timestamp", entry(2, func(e *files.ProducerEntry) { e.Timestamp = 1043 }), "lastTimestamp: 1043")
	f("Kafka 1", entry(1, func(e *files.ProducerEntry) { e.Timestamp = 1041 }), "")
	f("coordinator", entry(1, func(e *files.ProducerEntry) { e.CoordinatorEpoch = 4 }), "coordinatorEpoch: 4")
	f("transaction ended", entry(1, func(e *files.ProducerEntry) { e.TxnFirstOffset = 40 }), "OptionalLong[40]")
	f("transaction open", entry(3, func(e *files.ProducerEntry) { e.TxnFirstOffset = -1 }), "currentTxnFirstOffset: OptionalLong.empty")
	f("open one missing", func(l []files.ProducerEntry) []files.ProducerEntry { return l[:3] }, "open since offset 45 is missing")
	f("stranger", entry(0, func(e *files.ProducerEntry) { e.LastOffset = 30 }), "the log has no batch of it")
	f("twice", func(l []files.ProducerEntry) []files.ProducerEntry { return append(l, l[0]) }, "listed twice")
	f("beyond", entry(2, func(e *files.ProducerEntry) { e.LastOffset = 47 }), "the snapshot ends at 47")
}

// Of producers with a part of their batches gone, what is left says little.
func TestCheckKnowsWhatReplayCannotProve(t *testing.T) {
	x := newFixture(t)
	_, after := x.withProducers()
	after[0].LastOffset, after[0].TxnFirstOffset = 39, 38
	after[1].LastOffset = 39
	x.Put(snapshot47, offlinetest.EncodeProducers(after...))
	// retention has taken the segments in front, and the first batch of producer 7
	log := x.Get(log40)
	for _, base := range []int64{0, 20, 40} {
		for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
			x.Remove(segment.Name(base, kind, ""))
		}
	}
	first, err := record.First(log)
	if err != nil {
		t.Fatal(err)
	}
	x.Put("00000000000000000042.log", log[first.Size():])
	x.Put("00000000000000000042.index", nil)
	x.Offsets(checkpoint.LogStartOffsets, 42)
	x.Put(checkpoint.LeaderEpochs, []byte("0\n1\n3 42\n"))
	r := x.findings()
	if r.Damaged() != 1 || !strings.Contains(r.Findings[0].Message, "missing; look-ups by time") { // which is so
		t.Error(r.Findings)
	}
}

// Compaction removes nothing from the active segment, and before its first dirty offset is
// written it may have been anywhere else.
func TestCheckHoldsSnapshotsAgainstWhatIsNotCompacted(t *testing.T) {
	for last, damaged := range map[int64]bool{39: false, 40: true, 44: true} {
		x := newFixture(t)
		_, after := x.withProducers()
		after[0].LastOffset = last
		x.Put(snapshot47, offlinetest.EncodeProducers(after...))
		x.Offsets(checkpoint.CleanerOffsets, 20)
		if r := x.findings(); r.Damaged() > 0 != damaged {
			t.Errorf("last offset %d: %v", last, r.Findings)
		}
	}
}
