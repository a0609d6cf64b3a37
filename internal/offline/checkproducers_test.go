package offline

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
)

// encodeProducers is the inverse of decodeProducers.
func encodeProducers(list ...producerEntry) []byte {
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	for _, e := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(e.id))
		b = binary.BigEndian.AppendUint16(b, uint16(e.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(e.lastSequence))
		b = binary.BigEndian.AppendUint64(b, uint64(e.lastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(e.offsetDelta))
		b = binary.BigEndian.AppendUint64(b, uint64(e.timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(e.coordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.txnFirstOffset))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

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
func (x *fixture) withProducers() (before, after []producerEntry) {
	set := func(offset, id int64, sequence int32, transactional bool) []byte {
		return batch(offset, 3, record.BuilderOptions{Producer: &record.Producer{ID: id, Epoch: 1, BaseSequence: sequence}, Transactional: transactional})
	}
	log := set(40, 7, 0, true)
	log = append(log, record.EndTxnMarker(record.EndTxn{
		Type: record.ControlCommit, BaseOffset: 42, ProducerID: 7, ProducerEpoch: 1, CoordinatorEpoch: 5, LeaderEpoch: 3, Timestamp: 2000,
	})...)
	log = append(log, set(43, 8, 10, false)...)
	log = append(log, set(45, 9, 0, true)...)
	x.put(log40, log)
	x.put("00000000000000000040.index", nil)
	x.put("00000000000000000040.timeindex", timeEntryOf(2000, 2))
	x.offsets(checkpoint.RecoveryPoints, 47)
	before = []producerEntry{{id: 6, epoch: 2, lastSequence: -1, lastOffset: -1, timestamp: 5, coordinatorEpoch: -1, txnFirstOffset: -1}}
	after = []producerEntry{
		before[0], // all that the log had of it is compacted away or was deleted
		{id: 7, epoch: 1, lastSequence: 1, lastOffset: 41, offsetDelta: 1, timestamp: 2000, coordinatorEpoch: 5, txnFirstOffset: -1},
		{id: 8, epoch: 1, lastSequence: 11, lastOffset: 44, offsetDelta: 1, timestamp: 1044, coordinatorEpoch: -1, txnFirstOffset: -1},
		{id: 9, epoch: 1, lastSequence: 1, lastOffset: 46, offsetDelta: 1, timestamp: 1046, coordinatorEpoch: -1, txnFirstOffset: 45},
	}
	x.put(snapshot40, encodeProducers(before...))
	x.put(snapshot47, encodeProducers(after...))
	return before, after
}

func TestCheckHoldsSnapshotsAgainstTheLog(t *testing.T) {
	f := func(what string, change func(after []producerEntry) []producerEntry, want string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			_, after := x.withProducers()
			x.put(snapshot47, encodeProducers(change(after)...))
			if want != "" {
				x.wantFinding(snapshot47, want)
			} else if r := x.findings(); len(r.Findings) > 0 {
				t.Error(r.Findings)
			}
		})
	}
	entry := func(i int, change func(e *producerEntry)) func([]producerEntry) []producerEntry {
		return func(list []producerEntry) []producerEntry { change(&list[i]); return list }
	}
	f("right", func(l []producerEntry) []producerEntry { return l }, "")
	f("expired", func(l []producerEntry) []producerEntry { return append(l[:1:1], l[3]) }, "")
	f("epoch", entry(1, func(e *producerEntry) { e.epoch = 2 }), "producerEpoch: 2 coordinatorEpoch: 5")
	f("sequence", entry(2, func(e *producerEntry) { e.lastSequence = 10 }), "lastSequence: 10 lastOffset: 44")
	f("offset", entry(2, func(e *producerEntry) { e.lastOffset = 43 }), "lastOffset: 43")
	f("timestamp", entry(2, func(e *producerEntry) { e.timestamp = 1043 }), "lastTimestamp: 1043")
	f("Kafka 1", entry(1, func(e *producerEntry) { e.timestamp = 1041 }), "")
	f("coordinator", entry(1, func(e *producerEntry) { e.coordinatorEpoch = 4 }), "coordinatorEpoch: 4")
	f("transaction ended", entry(1, func(e *producerEntry) { e.txnFirstOffset = 40 }), "OptionalLong[40]")
	f("transaction open", entry(3, func(e *producerEntry) { e.txnFirstOffset = -1 }), "currentTxnFirstOffset: OptionalLong.empty")
	f("open one missing", func(l []producerEntry) []producerEntry { return l[:3] }, "open since offset 45 is missing")
	f("stranger", entry(0, func(e *producerEntry) { e.lastOffset = 30 }), "the log has no batch of it")
	f("twice", func(l []producerEntry) []producerEntry { return append(l, l[0]) }, "listed twice")
	f("beyond", entry(2, func(e *producerEntry) { e.lastOffset = 47 }), "the snapshot ends at 47")
}

// Of producers with a part of their batches gone, what is left says little.
func TestCheckKnowsWhatReplayCannotProve(t *testing.T) {
	x := newFixture(t)
	_, after := x.withProducers()
	after[0].lastOffset, after[0].txnFirstOffset = 39, 38
	after[1].lastOffset = 39
	x.put(snapshot47, encodeProducers(after...))
	// retention has taken the segments in front, and the first batch of producer 7
	log := x.get(log40)
	for _, base := range []int64{0, 20, 40} {
		for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
			x.remove(segment.Name(base, kind, ""))
		}
	}
	first, err := record.First(log)
	if err != nil {
		t.Fatal(err)
	}
	x.put("00000000000000000042.log", log[first.Size():])
	x.put("00000000000000000042.index", nil)
	x.offsets(checkpoint.LogStartOffsets, 42)
	x.put(checkpoint.LeaderEpochs, []byte("0\n1\n3 42\n"))
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
		after[0].lastOffset = last
		x.put(snapshot47, encodeProducers(after...))
		x.offsets(checkpoint.CleanerOffsets, 20)
		if r := x.findings(); r.Damaged() > 0 != damaged {
			t.Errorf("last offset %d: %v", last, r.Findings)
		}
	}
}
