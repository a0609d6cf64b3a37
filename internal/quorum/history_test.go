package quorum

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// What held when, by the entries that said so.
func TestKRaftHistory(t *testing.T) {
	version := func(n int16) *metadata.KRaftVersionRecord { return &metadata.KRaftVersionRecord{KRaftVersion: n} }
	voters := func(id int32) *metadata.VotersRecord {
		return &metadata.VotersRecord{Voters: []metadata.VotersRecordVoter{{VoterID: id}}}
	}
	var h kraftHistory
	h.note(3, 30, []controlRecord{{value: version(1)}})
	h.note(4, 40, []controlRecord{{value: &metadata.LeaderChangeMessage{}}})
	h.note(5, 50, []controlRecord{{value: voters(7)}})
	want := func(name string, index uint64, w kraftState) {
		t.Helper()
		if diff := cmp.Diff(w, h.at(index), cmp.AllowUnexported(kraftState{})); diff != "" {
			t.Errorf("%s, at %d (-want +got):\n%s", name, index, diff)
		}
	}
	none := kraftState{votersOffset: -1}
	first := kraftState{index: 3, version: version(1), votersOffset: -1}
	second := kraftState{index: 5, version: version(1), voters: voters(7), votersIndex: 5, votersOffset: 50}
	want("noted", 2, none)
	want("noted", 3, first)
	want("noted", 4, first)
	want("noted", 5, second)
	want("noted", 99, second)

	h.cut(5)
	want("cut", 5, first)
	h.note(6, 60, []controlRecord{{value: voters(8)}})
	h.shift(10)
	want("shifted", 12, none)
	first.index = 13
	want("shifted", 13, first) // and no voters, whose place nobody knows
	want("shifted", 16, kraftState{index: 16, version: version(1), voters: voters(8), votersIndex: 16, votersOffset: 60})

	// A snapshot is what holds from its end on, and what it says holds until something else is said.
	h = nil
	h.note(2, 20, []controlRecord{{value: voters(1)}})
	h.note(4, 40, []controlRecord{{value: voters(2)}})
	h.note(6, 60, []controlRecord{{value: version(2)}})
	start := kraftState{index: 4, version: version(1), voters: voters(9), votersIndex: 3, votersOffset: -1}
	h.startAt(start)
	if len(h) != 2 {
		t.Errorf("got %d states, want 2", len(h))
	}
	want("started", 3, none)
	want("started", 4, start)
	want("started", 6, kraftState{index: 6, version: version(2), voters: voters(2), votersIndex: 4, votersOffset: 40})

	h = nil
	h.note(5, 50, []controlRecord{{value: voters(2)}})
	h.startAt(start)
	want("without a version", 5, kraftState{index: 5, version: version(1), voters: voters(2), votersIndex: 5, votersOffset: 50})
	h = nil
	h.note(5, 50, []controlRecord{{value: version(3)}})
	h.startAt(start)
	want("without voters", 5, kraftState{index: 5, version: version(3), voters: voters(9), votersIndex: 3, votersOffset: -1})
}

// numbered is a log of batches that end at these offsets.
func numbered(first uint64, base int64, ends ...int64) *metadataLog {
	l := new(metadataLog)
	l.mu.firstIndex, l.mu.firstBase, l.mu.nextOffset = first, base, base
	for _, end := range ends {
		l.mu.entries = append(l.mu.entries, entry{nextOffset: end})
		l.mu.nextOffset = end
	}
	return l
}

func TestIndexBefore(t *testing.T) {
	l := numbered(5, 100, 101, 103, 110)
	f := func(offset int64, want uint64) {
		t.Helper()
		if got, err := l.indexBeforeLocked(offset); (err == nil) != (want > 0) || got != want {
			t.Errorf("offset %d: got %d, %v", offset, got, err)
		}
	}
	f(99, 0)
	f(100, 4)
	f(101, 5)
	f(102, 0)
	f(103, 6)
	f(110, 7)
	f(111, 0)
}

// An anchor may lower the index of the first entry, once, and not below what its place allows.
func TestAnchor(t *testing.T) {
	f := func(name string, entries int, index, offset int64, was, anchored bool, first uint64) {
		t.Helper()
		ends := []int64{101, 102, 103}[:entries]
		l := numbered(101, 100, ends...)
		l.mu.anchored = was
		err := l.anchorLocked(index, offset)
		if (err == nil) != (first > 0) {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil && (l.mu.firstIndex != first || l.mu.anchored != anchored) {
			t.Errorf("%s: first index %d, anchored %v, want %d", name, l.mu.firstIndex, l.mu.anchored, first)
		}
	}
	f("nothing said", 2, 0, 102, false, false, 101)
	f("nothing said, anchored before", 2, 0, 102, true, true, 101)
	f("as counted", 2, 103, 102, false, true, 101)
	f("lower", 2, 50, 102, false, true, 48)
	f("lower, anchored before", 2, 50, 102, true, false, 0)
	f("as low as can be", 2, 3, 102, false, true, 1)
	f("too low", 2, 2, 102, false, false, 0)
	f("too low for the first", 0, -1, 100, false, false, 0)
	f("the first of all", 0, 1, 100, false, true, 1)
	f("negative", 2, -5, 102, false, false, 0)
	f("higher than its offset", 2, 104, 102, false, false, 0)
	f("as high as its offset", 2, 103, 102, false, true, 101)
	f("higher, with room", 1, 103, 102, false, true, 102)
}

// A snapshot says which index the entry at its end has.
func TestAnchorOfSnapshot(t *testing.T) {
	version := &metadata.KRaftVersionRecord{KRaftVersion: 1}
	f := func(name string, anchored bool, index uint64, want, first uint64) {
		t.Helper()
		l := numbered(101, 100, 101, 102, 103)
		l.mu.anchored = anchored
		got, err := l.anchor(snapshot{id: snapshotID{endOffset: 102}, index: index, kraft: kraftState{votersOffset: -1}})
		if (err == nil) != (want > 0) || err == nil && (got.index != want || l.mu.firstIndex != first || l.mu.snapshot != want) {
			t.Errorf("%s: got index %d, first %d, %v", name, got.index, l.mu.firstIndex, err)
		}
	}
	f("nothing said", false, 0, 102, 101)
	f("as counted", false, 102, 102, 101)
	f("as counted, anchored", true, 102, 102, 101)
	f("lower", false, 50, 50, 49)
	f("lower, anchored", true, 50, 0, 0)
	f("as low as can be", false, 2, 2, 1)
	f("too low", false, 1, 0, 0)

	// What the snapshot does not say of the quorum is what the log said before its end; voters of the log
	// go before those of the snapshot.
	g := func(name string, said, logged kraftState, want kraftState) {
		t.Helper()
		l := numbered(101, 100, 101, 102, 103)
		if logged.index > 0 {
			l.mu.kraft = kraftHistory{logged}
		}
		got, err := l.anchor(snapshot{id: snapshotID{endOffset: 102}, kraft: said})
		if diff := cmp.Diff(want, got.kraft, cmp.AllowUnexported(kraftState{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	voters := &metadata.VotersRecord{Voters: []metadata.VotersRecordVoter{{VoterID: 1}}}
	others := &metadata.VotersRecord{Voters: []metadata.VotersRecordVoter{{VoterID: 2}}}
	said := kraftState{version: version, voters: voters, votersIndex: 7, votersOffset: -1}
	inLog := kraftState{index: 101, version: &metadata.KRaftVersionRecord{KRaftVersion: 2}, voters: others, votersIndex: 101, votersOffset: 100}
	g("said", said, kraftState{}, kraftState{index: 102, version: version, voters: voters, votersIndex: 7, votersOffset: -1})
	g("in the log", said, inLog, kraftState{index: 102, version: version, voters: others, votersIndex: 101, votersOffset: 100})
	g("not said", kraftState{votersOffset: -1}, inLog, kraftState{index: 102, version: inLog.version, voters: others, votersIndex: 101, votersOffset: 100})
	earlier := inLog
	earlier.votersOffset = -1
	g("in an earlier snapshot", said, earlier, kraftState{index: 102, version: version, voters: voters, votersIndex: 7, votersOffset: -1})
	g("no voters in the log", said, kraftState{index: 101, votersOffset: 100}, kraftState{index: 102, version: version, voters: voters, votersIndex: 7, votersOffset: -1})
	g("nothing at all", kraftState{votersOffset: -1}, kraftState{}, kraftState{index: 102, votersOffset: -1})
}

// raft believes in entries that a received snapshot has replaced; they differ from all others.
func TestLostEntries(t *testing.T) {
	l := numbered(11, 100)
	l.mu.startEpoch = 7
	f := func(lost, index uint64, ok bool, term uint64) {
		t.Helper()
		l.mu.lost = lost
		var log raft.Log
		err := l.GetLog(index, &log)
		if (err == nil) != ok || ok && log.Term != term {
			t.Errorf("entry %d of %d lost: got term %d, %v", index, lost, log.Term, err)
		}
	}
	f(0, 10, false, 0)
	f(0, 11, false, 0)
	f(12, 9, false, 0)
	f(12, 10, true, 7)
	f(12, 11, true, 0)
	f(12, 12, true, 0)
	f(12, 13, false, 0)
}
