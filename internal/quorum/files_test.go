package quorum

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// touch makes empty files of the metadata directory.
func touch(t *testing.T, fsys vfs.FS, dir string, names ...string) {
	t.Helper()
	if err := vfs.MkdirAll(fsys, logDir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		overwriteFile(t, fsys, filepath.Join(logDir(dir), name), nil)
	}
}

// loadFiles reads segments whose names are where they begin and whose content is batches of one record.
func loadFiles(t *testing.T, skip int64, segments map[int64][]byte) (*metadataLog, error) {
	t.Helper()
	fsys, dir := memDir(t)
	touch(t, fsys, dir)
	for base, content := range segments {
		overwriteFile(t, fsys, filepath.Join(logDir(dir), segmentName(base)), content)
	}
	l := &metadataLog{fs: fsys, dir: logDir(dir)}
	t.Cleanup(func() { l.close() })
	return l, l.load(skip)
}

func batchesOf(t *testing.T, base int64, count int) (b []byte) {
	t.Helper()
	for i := range int64(count) {
		b = append(b, plainBatch(t, base+i, 10)...)
	}
	return b
}

// A hole in the log is one that a snapshot fills, or damage.
func TestLoadHoles(t *testing.T) {
	f := func(name string, skip int64, gap int64, ok bool, stale, entries int) {
		t.Helper()
		l, err := loadFiles(t, skip, map[int64][]byte{0: batchesOf(t, 0, 2), gap: batchesOf(t, gap, 2)})
		if (err == nil) != ok || !ok && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
		if ok && (len(l.mu.stale) != stale || len(l.mu.entries) != entries || l.mu.nextOffset != gap+2) {
			t.Errorf("%s: %d stale segments, %d entries up to %d", name, len(l.mu.stale), len(l.mu.entries), l.mu.nextOffset)
		}
	}
	f("none", 0, 2, true, 0, 4)
	f("none, a snapshot between", 2, 2, true, 0, 2)
	f("none, a snapshot inside", 3, 2, true, 0, 1)
	f("a hole", 0, 5, false, 0, 0)
	f("a hole, a snapshot in front", 2, 5, false, 0, 0)
	f("a hole, a snapshot that ends in it", 4, 5, false, 0, 0)
	f("a hole, a snapshot up to its end", 5, 5, true, 1, 2)
	f("a hole, a snapshot beyond", 6, 5, true, 1, 1)
	f("an overlap", 9, 1, false, 0, 0)
}

// What a snapshot holds of the log is no entry, but where its epochs begin is still known.
func TestLoadSkips(t *testing.T) {
	f := func(skip int64, entries int, next int64, epochs int) {
		t.Helper()
		l, err := loadFiles(t, skip, map[int64][]byte{0: batchesOf(t, 0, 3)})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.mu.entries) != entries || l.mu.nextOffset != next || len(l.epochStarts()) != epochs {
			t.Errorf("snapshot up to %d: %d entries up to %d, epochs %v", skip, len(l.mu.entries), l.mu.nextOffset, l.epochStarts())
		}
		for _, e := range l.mu.entries {
			if e.data == nil {
				t.Errorf("snapshot up to %d: the bytes of the entry that ends at %d are not at hand", skip, e.nextOffset)
			}
		}
	}
	f(0, 3, 3, 1)
	f(2, 1, 3, 1)
	f(3, 0, 3, 1)
	f(4, 0, 4, 0)
}

// Only the end of the last segment is cut; anything else that is bad is damage where it is.
func TestLoadTorn(t *testing.T) {
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	l, err := loadFiles(t, 0, map[int64][]byte{0: batchesOf(t, 0, 2), 2: cut(batchesOf(t, 2, 2))})
	if err != nil || l.mu.torn == nil || l.mu.nextOffset != 3 {
		t.Errorf("the last segment: got %v, torn %v, up to %d", err, l.mu.torn, l.mu.nextOffset)
	}
	l, err = loadFiles(t, 0, map[int64][]byte{0: cut(batchesOf(t, 0, 2)), 2: batchesOf(t, 2, 2)})
	corrupt, ok := errors.AsType[*CorruptError](err)
	if !ok || corrupt.Path != filepath.Join(l.dir, segmentName(0)) || corrupt.Offset != 1 {
		t.Errorf("the first segment: got %v", err)
	}
	lying, err := controlBatch(1, 5, controlRecord{record.ControlLeaderChange, &metadata.LeaderChangeMessage{LeaderID: 1, RaftIndex: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = loadFiles(t, 0, map[int64][]byte{0: lying}); !errors.Is(err, ErrCorrupt) || l.mu.torn != nil {
		t.Errorf("an entry that says it is another: got %v, torn %v", err, l.mu.torn)
	}
}

// Where the log is to end before, what proves that it went on goes first.
func TestUnprove(t *testing.T) {
	fsys, dir := memDir(t)
	end := func(n string) string { return "0000000000000000000" + n + checkpoint.ProducersSuffix }
	touch(t, fsys, dir, end("5"), end("7"), end("9"), "other", "00000000000000000009-0000000001.checkpoint")
	l := &metadataLog{fs: fsys, dir: logDir(dir)}
	path := filepath.Join(l.dir, checkpoint.LeaderEpochs)
	epochs := []checkpoint.EpochEntry{{Epoch: 1, StartOffset: 0}, {Epoch: 2, StartOffset: 7}, {Epoch: 4, StartOffset: 9}}
	if err := checkpoint.WriteEpochs(fsys, path, epochs); err != nil {
		t.Fatal(err)
	}
	f := func(at int64, wantEpochs int, want ...string) {
		t.Helper()
		if err := l.unprove(at); err != nil {
			t.Fatal(err)
		}
		if got := names(t, fsys, dir, checkpoint.ProducersSuffix); !slices.Equal(got, want) {
			t.Errorf("end at %d: got %v, want %v", at, got, want)
		}
		checkEpochs(t, fsys, dir, epochs[:wantEpochs]...)
		if len(names(t, fsys, dir, "other"))+len(names(t, fsys, dir, checkpoint.SnapshotSuffix)) != 2 {
			t.Error("files that prove nothing of the kind are gone")
		}
	}
	f(10, 3, end("5"), end("7"), end("9"))
	f(9, 2, end("5"), end("7"), end("9"))
	f(7, 1, end("5"), end("7"))
}

// Epochs in the file that the log knows otherwise give way to what the log says.
func TestWriteEpochs(t *testing.T) {
	s := newStore(t, 1)
	path := filepath.Join(s.dir, checkpoint.LeaderEpochs)
	before := []checkpoint.EpochEntry{{Epoch: 2, StartOffset: 4}, {Epoch: 3, StartOffset: 8}, {Epoch: 4, StartOffset: 9}}
	if err := checkpoint.WriteEpochs(s.fs, path, before); err != nil {
		t.Fatal(err)
	}
	f := func(epoch int32, offset int64, want ...checkpoint.EpochEntry) {
		t.Helper()
		s.mu.epochs = []snapshotID{{offset, epoch}}
		if err := s.q.writeEpochs(path); err != nil {
			t.Fatal(err)
		}
		checkEpochs(t, s.fs, "/data", want...)
		if err := checkpoint.WriteEpochs(s.fs, path, before); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(epoch int32, offset int64) checkpoint.EpochEntry {
		return checkpoint.EpochEntry{Epoch: epoch, StartOffset: offset}
	}
	f(5, 12, entry(2, 4), entry(3, 8), entry(4, 9), entry(5, 12))
	f(4, 12, entry(2, 4), entry(3, 8), entry(4, 12))
	f(5, 9, entry(2, 4), entry(3, 8), entry(5, 9))
	f(5, 8, entry(2, 4), entry(5, 8))
	f(3, 20, entry(2, 4), entry(3, 20))
}

// A directory has a metadata log if there is a batch or a snapshot in it.
func TestDir(t *testing.T) {
	f := func(want bool, names ...string) {
		t.Helper()
		fsys, dir := memDir(t)
		touch(t, fsys, dir, names...)
		if path, found := Dir(fsys, dir); found != want || path != logDir(dir) {
			t.Errorf("%v: got %s, %v", names, path, found)
		}
	}
	f(false)
	f(false, segmentName(0))
	f(false, "other")
	f(false, bootstrapID.String()+checkpoint.SnapshotSuffix)
	f(true, snapshotID{7, 1}.String()+checkpoint.SnapshotSuffix)
	f(true, "other", snapshotID{7, 1}.String()+checkpoint.SnapshotSuffix)
	fsys, dir := memDir(t)
	touch(t, fsys, dir)
	overwriteFile(t, fsys, filepath.Join(logDir(dir), segmentName(0)), []byte{1})
	if _, found := Dir(fsys, dir); !found {
		t.Error("a segment with something in it is no log")
	}
}

// Checkpoints are listed newest first; older ones than the log go, with the bootstrap one.
func TestPrune(t *testing.T) {
	s := newStore(t, 1)
	id := func(offset int64) snapshotID { return snapshotID{offset, 1} }
	touch(t, s.fs, "/data", "other", segmentName(77), bootstrapID.String()+checkpoint.SnapshotSuffix)
	for _, offset := range []int64{5, 8, 9, 2} {
		touch(t, s.fs, "/data", id(offset).String()+checkpoint.SnapshotSuffix)
	}
	list := func(want ...snapshotID) {
		t.Helper()
		got, err := s.q.snapshots.checkpoints()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(snapshotID{})); diff != "" {
			t.Errorf("checkpoints (-want +got):\n%s", diff)
		}
	}
	list(id(9), id(8), id(5), id(2))
	s.mu.segments, s.mu.nextOffset = nil, 8
	if err := s.q.snapshots.prune(); err != nil {
		t.Fatal(err)
	}
	list(id(9), id(8))
}

// raft opens the newest snapshot, by its name; what a new cluster starts with is none.
func TestOpenSnapshot(t *testing.T) {
	s := newStore(t, 1)
	f := func(name string, ok bool) {
		t.Helper()
		_, r, err := s.q.snapshots.Open(name)
		if (err == nil) != ok {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			r.Close()
		}
	}
	f(bootstrapID.String(), false)
	s.mustStore(t, own(t, 1, 1, raft.LogNoop, raft.LogCommand)...)
	if err := s.snapshotAt(2); err != nil {
		t.Fatal(err)
	}
	f(s.q.currentSnapshot().id.String(), true)
	f(bootstrapID.String(), false)
	f(snapshotID{999, 1}.String(), false)
}

// What was said from the cut on is not said any more.
func TestTruncateForgets(t *testing.T) {
	s := newStore(t, 1)
	s.mustStore(t, own(t, 1, 1, raft.LogNoop, raft.LogCommand)...)
	s.mustStore(t, own(t, 3, 2, raft.LogNoop, raft.LogCommand)...)
	if got := s.mu.leader.epoch; got != 2 || len(s.epochStarts()) != 2 {
		t.Fatalf("leader of epoch %d, epochs %v", got, s.epochStarts())
	}
	f := func(from uint64, leaderEpoch int32, led bool, epochs int) {
		t.Helper()
		if err := s.DeleteRange(from, 4); err != nil {
			t.Fatal(err)
		}
		if got := s.mu.leader; (got.id != nobody) != led || led && got.epoch != leaderEpoch || len(s.epochStarts()) != epochs {
			t.Errorf("cut from %d: leader %+v, epochs %v", from, got, s.epochStarts())
		}
	}
	f(4, 2, true, 2)
	f(3, 0, false, 1)
}

// A full segment is followed by another.
func TestSegmentsFill(t *testing.T) {
	f := func(name string, spare int64, segments int) {
		t.Helper()
		s := newStore(t, 1)
		s.mustStore(t, own(t, 1, 1, raft.LogNoop)...)
		s.segmentBytes = s.mu.segments[0].size + spare
		s.mustStore(t, own(t, 2, 1, raft.LogNoop)...)
		if got := len(s.mu.segments); got != segments {
			t.Errorf("%s: %d segments", name, got)
		}
	}
	f("with room", 1, 1)
	f("full", 0, 2)
	f("more than full", -1, 2)
}

// Until this node has written that it is the only voter, what the log says of voters is history for raft.
func TestSoleVoterHidesConfigurations(t *testing.T) {
	s := newStore(t, 1)
	s.mustStore(t, own(t, 1, 1, raft.LogConfiguration, raft.LogNoop, raft.LogCommand)...)
	want := func(sole *metadata.VotersRecord, kinds ...raft.LogType) {
		t.Helper()
		s.mu.soleVoter = sole
		for i, kind := range kinds {
			if got := s.entries(t, uint64(i+1), uint64(i+1))[0].Type; got != kind {
				t.Errorf("entry %d: got %v, want %v", i+1, got, kind)
			}
		}
	}
	want(nil, raft.LogConfiguration, raft.LogNoop, raft.LogCommand)
	want(new(metadata.VotersRecord), raft.LogNoop, raft.LogNoop, raft.LogCommand)
}

// A bootstrap checkpoint counts where the log says nothing of the quorum.
func TestNoteCheckpoint(t *testing.T) {
	version, voters := &metadata.KRaftVersionRecord{KRaftVersion: 1}, new(metadata.VotersRecord)
	c := checkpointData{kraftVersion: &metadata.KRaftVersionRecord{KRaftVersion: 2}, voters: new(metadata.VotersRecord)}
	f := func(name string, said kraftState, want kraftState) {
		t.Helper()
		l := new(metadataLog)
		l.mu.kraft = kraftHistory{said}
		if got := l.noteCheckpoint(c); got != want || l.mu.kraft.newest() != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	f("nothing", kraftState{votersOffset: -1}, kraftState{version: c.kraftVersion, voters: c.voters, votersOffset: -1})
	f("a version", kraftState{version: version}, kraftState{version: version})
	f("voters", kraftState{voters: voters}, kraftState{voters: voters})
}

// quorum-state has version 1 where voters are in the log, unless this node is the only one.
func TestQuorumStateVersion(t *testing.T) {
	f := func(name string, level int16, voters []int32, want int16) {
		t.Helper()
		s := newStore(t, 1)
		s.static = configurationOf(voters)
		if level > 0 {
			s.mu.kraft = kraftHistory{{version: &metadata.KRaftVersionRecord{KRaftVersion: level}, votersOffset: -1}}
		}
		if err := s.q.state.writeLocked(s.q.state.data); err != nil {
			t.Fatal(err)
		}
		if got := s.q.state.data.DataVersion; got != want {
			t.Errorf("%s: version %d, want %d", name, got, want)
		}
	}
	f("voters in the configuration", 0, []int32{1, 2, 3}, 0)
	f("voters in the log", 1, []int32{1, 2, 3}, 1)
	f("the only voter in the log", 1, []int32{1}, 0)
	f("the only voter in the configuration", 0, []int32{1}, 0)
}

func TestBeginBehindSnapshot(t *testing.T) {
	f := func(index, first uint64, anchored bool) {
		t.Helper()
		l := new(metadataLog)
		l.beginLocked(snapshot{id: snapshotID{50, 2}, index: index})
		if l.mu.firstIndex != first || l.mu.anchored != anchored || l.mu.nextOffset != 50 {
			t.Errorf("snapshot of index %d: first index %d, anchored %v", index, l.mu.firstIndex, l.mu.anchored)
		}
	}
	f(0, 51, false) // as Kafka's: nobody knows
	f(7, 8, true)
}

func TestCorruptErrorText(t *testing.T) {
	f := func(position int64, want string) {
		t.Helper()
		if got := (&CorruptError{"file", position, 5, errors.New("odd")}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(-1, "file: odd")
	f(0, "file: byte 0 (offset 5): odd")
	f(9, "file: byte 9 (offset 5): odd")
}

// Of the ends that were noted the last one stays.
func TestOneEndIsNoted(t *testing.T) {
	fsys, dir := memDir(t)
	for n := range 3 {
		q, err := Open(options(fsys, dir))
		if err != nil {
			t.Fatal(err)
		}
		mustPropose(t, q, topicRecords(n)...)
		end := q.log.NextOffset()
		mustClose(t, q)
		got := names(t, fsys, dir, checkpoint.ProducersSuffix)
		if at, ok := checkpoint.ParseProducersName(got[0]); len(got) != 1 || !ok || at < end {
			t.Errorf("start %d: got %v, want one of %d", n, got, end)
		}
	}
}

// Without a logger nothing is logged.
func TestNoLogger(t *testing.T) {
	fsys, dir := memDir(t)
	o := options(fsys, dir)
	o.Logger = nil
	mustPropose(t, mustOpen(t, o), topicRecords(1)...)
}

// A log that has nothing but a snapshot, or that ends at one, is not empty.
func TestEvidenceEmpty(t *testing.T) {
	fsys, dir := memDir(t)
	if q := mustRead(t, options(fsys, dir)); !q.Evidence().Empty {
		t.Errorf("nothing: got %+v", q.Evidence())
	}
	s := newStore(t, 1)
	s.mustStore(t, own(t, 1, 1, raft.LogNoop, raft.LogCommand)...)
	if err := s.snapshotAt(2); err != nil {
		t.Fatal(err)
	}
	o := options(s.fs, "/data")
	o.peers = &peers{voters: []int32{1, 2, 3}}
	if e := mustRead(t, o).Evidence(); e.Empty || len(e.Proofs) > 0 {
		t.Errorf("a log and a snapshot: got %+v", e)
	}
	for _, name := range names(t, s.fs, "/data", logSuffix) {
		mustRemove(t, s.fs, filepath.Join(s.dir, name))
	}
	q := mustRead(t, o)
	if e := q.Evidence(); e.Empty || len(e.Proofs) == 0 {
		t.Errorf("a snapshot: got %+v", e)
	}
	if err := q.AcceptLoss(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s.fs, "/data", checkpoint.SnapshotSuffix); len(got) != 1 {
		t.Errorf("a snapshot that can be read was put away: %v", got)
	}
}
