package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func mustRead(t testing.TB, o Options) *Quorum {
	t.Helper()
	q, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, q) })
	return q
}

func kafkaDir(t testing.TB, set string) (*vfs.Mem, string) {
	t.Helper()
	fsys, dir := memDir(t)
	copyIn(t, fsys, dir, set)
	return fsys, dir
}

func mustRemove(t testing.TB, fsys vfs.FS, path string) {
	t.Helper()
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Reading writes nothing, and knows what a start would: everything in the log is applied.
func TestReadWritesNothing(t *testing.T) {
	for set := range goldenSets {
		fsys, dir := kafkaDir(t, set)
		o := options(fsys, dir)
		fsys.SetHook(func(op vfs.Op) error {
			if op.Kind.Changes() {
				return fmt.Errorf("read does: %v", op)
			}
			return nil
		})
		q, err := Read(o)
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		fsys.SetHook(nil)
		checkTopics(t, q.Image(), set)
		e := q.Evidence()
		if e.Empty || e.Torn != 0 || len(e.Proofs) != 0 || len(e.Claims) == 0 {
			t.Errorf("%s: evidence %+v", set, e)
		}
		for _, c := range e.Claims {
			if c.Voters != nil && !slices.Equal(c.Voters, []int32{1}) || c.Leader != 1 && c.Leader != nobody {
				t.Errorf("%s: claim %+v", set, c)
			}
		}
		state, end := stateOf(q.Image()), q.NextOffset()
		if err := q.Start(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(stateOf(q.Image()), state) || q.NextOffset() != end+1 {
			t.Errorf("%s: the start changes the image, or the log from %d to %d", set, end, q.NextOffset())
		}
		mustClose(t, q)
	}
	fsys, dir := memDir(t)
	q := mustRead(t, options(fsys, dir))
	if e := q.Evidence(); !e.Empty || len(e.Claims) != 1 || q.exists(q.dir) {
		t.Errorf("a log that is not there: %+v", e)
	}
}

// What is missing of a log that was stopped cleanly is proven, wherever the cut is; what a crash can
// leave is not.
func TestProofs(t *testing.T) {
	f := func(name, set string, damage func(fsys *vfs.Mem, dir string), end int64, want ...string) {
		t.Helper()
		fsys, dir := kafkaDir(t, set)
		overwriteFile(t, fsys, filepath.Join(logDir(dir), "00000000000000000401.snapshot"), noProducers) // as in the set
		damage(fsys, logDir(dir))
		e := mustRead(t, options(fsys, dir)).Evidence()
		var got []string
		for _, p := range e.Proofs {
			got = append(got, filepath.Base(p.Path))
		}
		if e.End != end || !slices.Equal(got, want) {
			t.Errorf("%s: end %d, proofs %v, want %d, %v", name, e.End, got, end, want)
		}
	}
	log := segmentName(0)
	truncate := func(size int64) func(*vfs.Mem, string) {
		return func(fsys *vfs.Mem, dir string) {
			b, err := vfs.ReadFile(fsys, filepath.Join(dir, log), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			overwriteFile(t, fsys, filepath.Join(dir, log), b[:size])
		}
	}
	const kraft = "kafka-4.4.0-kraft"
	f("whole", kraft, func(*vfs.Mem, string) {}, 401)
	f("missing", kraft, func(fsys *vfs.Mem, dir string) { mustRemove(t, fsys, filepath.Join(dir, log)) }, 0,
		"00000000000000000174-0000000001.checkpoint", "00000000000000000323-0000000001.checkpoint", "00000000000000000401.snapshot")
	f("empty", kraft, truncate(0), 0,
		"00000000000000000174-0000000001.checkpoint", "00000000000000000323-0000000001.checkpoint", "00000000000000000401.snapshot")
	f("last batch torn", kraft, truncate(26368), 400, "00000000000000000401.snapshot")
	f("no clean stop", kraft, func(fsys *vfs.Mem, dir string) {
		mustRemove(t, fsys, filepath.Join(dir, "00000000000000000401.snapshot"))
		truncate(26368)(fsys, dir)
	}, 400)
	f("epoch that the log has not", kraft, func(fsys *vfs.Mem, dir string) {
		overwriteFile(t, fsys, filepath.Join(dir, checkpoint.LeaderEpochs), []byte("0\n2\n1 0\n2 402\n"))
	}, 401, checkpoint.LeaderEpochs)
	f("epoch at the end", kraft, func(fsys *vfs.Mem, dir string) {
		overwriteFile(t, fsys, filepath.Join(dir, checkpoint.LeaderEpochs), []byte("0\n2\n1 0\n2 401\n"))
	}, 401)
	f("epoch of which the log knows better", kraft, func(fsys *vfs.Mem, dir string) {
		overwriteFile(t, fsys, filepath.Join(dir, checkpoint.LeaderEpochs), []byte("0\n1\n1 4000\n"))
	}, 401)
}

// gregor leaves the proof itself, and a loss that is accepted is not asked about again.
func TestAcceptLoss(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	for n := range 5 {
		mustPropose(t, q, topicRecords(n)...)
	}
	end := q.NextOffset()
	mustClose(t, q)
	path := filepath.Join(logDir(dir), segmentName(0))
	b, err := vfs.ReadFile(fsys, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	overwriteFile(t, fsys, path, b[:len(b)-20])
	q = mustRead(t, options(fsys, dir))
	if e := q.Evidence(); len(e.Proofs) != 1 || e.Proofs[0].End != end || e.Torn == 0 {
		t.Fatalf("evidence %+v, want a proof of %d", e, end)
	}
	if err := errors.Join(q.AcceptLoss(), q.Start()); err != nil {
		t.Fatal(err)
	}
	if got := q.Image().NumTopics(); got != 4 {
		t.Errorf("%d topics, want 4", got)
	}
	mustClose(t, q)
	if e := mustRead(t, options(fsys, dir)).Evidence(); len(e.Proofs) != 0 {
		t.Errorf("proofs after the loss was accepted: %+v", e.Proofs)
	}
}

// Whatever a crash leaves of gregor's own log, nothing proves that more was there.
func TestCrashLeavesNoProof(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fsys, dir := memDir(t)
		o := options(fsys, dir)
		o.SnapshotBytes = 1 << 10
		mustClose(t, mustOpen(t, o))
		after := crashHook(fsys, rng, rng.IntN(120))
		q, err := Open(o)
		for n := 0; err == nil && after() == nil && n < 40; n++ {
			_, err = propose(context.Background(), q, topicRecords(n))
		}
		if q != nil {
			q.Close()
		}
		left := after()
		if left == nil {
			left = fsys.CrashClone(rng)
		}
		q, err = Read(options(left, dir))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if e := q.Evidence(); len(e.Proofs) != 0 {
			t.Errorf("seed %d: proofs %+v of more than %d", seed, e.Proofs, e.End)
		}
		mustClose(t, q)
	}
}

// Of the removals after a snapshot a crash may undo the first and not the second. What is left of
// the log before the gap is of no use.
func TestGapBelowSnapshot(t *testing.T) {
	fsys, dir := memDir(t)
	o := options(fsys, dir)
	o.SnapshotBytes = 512
	q := mustOpen(t, o)
	first, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), segmentName(0)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		mustPropose(t, q, topicRecords(n)...)
	}
	q.maybeSnapshot()
	state, end := stateOf(q.Image()), q.NextOffset()
	mustClose(t, q)
	segments := names(t, fsys, dir, logSuffix)
	if segments[0] == segmentName(0) || segments[0] == segmentName(4) {
		t.Fatalf("segments %v, want a gap behind the first", segments)
	}
	overwriteFile(t, fsys, filepath.Join(logDir(dir), segmentName(0)), first)
	q = mustOpen(t, o)
	if !slices.Equal(stateOf(q.Image()), state) || q.NextOffset() != end+1 {
		t.Errorf("the image differs, or the log ends at %d, want %d", q.NextOffset(), end+1)
	}
	if got := names(t, fsys, dir, logSuffix); got[0] != segments[0] {
		t.Errorf("segments %v, want %v", got, segments)
	}
}

// A snapshot that is whole and not that of its name is refused by name.
func TestWrongSnapshot(t *testing.T) {
	for _, other := range []string{"00000000000000000000-0000000000.checkpoint", "00000000000000000174-0000000001.checkpoint"} {
		fsys, dir := kafkaDir(t, "kafka-4.4.0-kraft")
		b, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), other), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		const name = "00000000000000000323-0000000001.checkpoint"
		overwriteFile(t, fsys, filepath.Join(logDir(dir), name), b)
		if _, err := Read(options(fsys, dir)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("with the bytes of %s: %v", other, err)
		}
	}
}

// A record that cannot be applied ends the start with file, offset and record.
func TestUnfitRecord(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	at := q.NextOffset()
	bad := []metadata.Record{&metadata.NoOpRecord{}, &metadata.RemoveTopicRecord{TopicID: topicID(7)}}
	if err := q.commit(context.Background(), bad); err == nil {
		t.Fatal("no error")
	}
	mustClose(t, q)
	_, err := Read(options(fsys, dir))
	if !errors.Is(err, ErrCorrupt) || !errors.Is(err, metadata.ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
	for _, want := range []string{segmentName(0), fmt.Sprintf("(offset %d)", at), "record 2 of 2", "RemoveTopicRecord", topicID(7).String()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// While the quorum runs, such a record is told, and nothing is written behind it.
func TestBroken(t *testing.T) {
	fsys, dir := memDir(t)
	var told []error
	o := options(fsys, dir)
	o.OnBroken = func(err error) { told = append(told, err) }
	q := mustOpen(t, o)
	state := stateOf(q.Image())
	if err := q.commit(context.Background(), []metadata.Record{&metadata.RemoveTopicRecord{TopicID: topicID(7)}}); !errors.Is(err, metadata.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	end := q.NextOffset()
	if _, err := propose(context.Background(), q, topicRecords(1)); !errors.Is(err, metadata.ErrCorrupt) || q.NextOffset() != end {
		t.Errorf("after it: got %v, log from %d to %d", err, end, q.NextOffset())
	}
	if len(told) != 1 || !slices.Equal(stateOf(q.Image()), state) {
		t.Errorf("told %v, want one error and the image as it was", told)
	}
}

func TestClaims(t *testing.T) {
	f := func(name, set string, change func(fsys *vfs.Mem, dir string), want ...string) {
		t.Helper()
		fsys, dir := kafkaDir(t, set)
		change(fsys, logDir(dir))
		var got []string
		for _, c := range mustRead(t, options(fsys, dir)).Evidence().Claims {
			got = append(got, fmt.Sprintf("%s: %v, %d", c.Says, c.Voters, c.Leader))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	state := func(text string) func(*vfs.Mem, string) {
		return func(fsys *vfs.Mem, dir string) {
			overwriteFile(t, fsys, filepath.Join(dir, checkpoint.QuorumState), []byte(text))
		}
	}
	f("static", "kafka-4.4.0-kraft", func(*vfs.Mem, string) {}, "LeaderChange of epoch 1: [1], 1")
	f("dynamic", "kafka-4.4.0-kraft-dynamic", func(*vfs.Mem, string) {}, "KRAFT_VOTERS at offset 0: [1], -1", "LeaderChange of epoch 1: [1], 1")
	f("a later epoch", "kafka-4.4.0-kraft", state(`{"clusterId":"","leaderId":2,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}`),
		"LeaderChange of epoch 1: [1], 1", "epoch 2: [1 2], 2")
	f("a damaged file of the same epoch", "kafka-4.4.0-kraft", state(`{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":3}],"data_version":0}`),
		"LeaderChange of epoch 1: [1], 1")
	f("formatted", "kafka-4.4.0-kraft-dynamic", func(fsys *vfs.Mem, dir string) {
		for _, name := range names(t, fsys, filepath.Dir(dir), "") {
			if name != "00000000000000000000-0000000000.checkpoint" {
				mustRemove(t, fsys, filepath.Join(dir, name))
			}
		}
	}, "KRAFT_VOTERS: [1], -1", "epoch 0: [], -1")
}

// A damaged quorum-state is made anew where the log says who votes, and refused where nothing does.
func TestDamagedQuorumState(t *testing.T) {
	fsys, dir := kafkaDir(t, "kafka-4.4.0-kraft")
	path := filepath.Join(logDir(dir), checkpoint.QuorumState)
	for _, text := range []string{"", "{", `{"leaderEpoch":-5}`, "\x00\x00\x00"} {
		overwriteFile(t, fsys, path, []byte(text))
		mustClose(t, mustOpen(t, options(fsys, dir)))
		if b, err := vfs.ReadFile(fsys, path, 1<<10); err != nil || !strings.Contains(string(b), `"leaderId":1,`) {
			t.Errorf("with %q: %s, %v", text, b, err)
		}
	}
	mustRemove(t, fsys, filepath.Join(logDir(dir), segmentName(0)))
	overwriteFile(t, fsys, path, []byte("{"))
	if _, err := Read(options(fsys, dir)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), checkpoint.QuorumState) {
		t.Errorf("without a log: %v", err)
	}
}

// Who takes over is the only voter from then on, also of a quorum whose voters are in the log.
func TestTakeOver(t *testing.T) {
	for set := range goldenSets {
		fsys, dir := kafkaDir(t, set)
		o := options(fsys, dir)
		o.NodeID = 2
		q := mustRead(t, o)
		q.TakeOver(topicID(2))
		if err := q.Start(); err != nil {
			t.Fatal(err)
		}
		mustPropose(t, q, topicRecords(500)...)
		q.maybeSnapshot()
		mustClose(t, q)
		for _, c := range mustRead(t, o).Evidence().Claims {
			if c.Voters != nil && !slices.Equal(c.Voters, []int32{2}) || c.Leader != 2 && c.Leader != nobody {
				t.Errorf("%s: claim %+v after the take-over", set, c)
			}
		}
	}
}

func TestRemovedTopics(t *testing.T) {
	fsys, dir := memDir(t)
	q := mustOpen(t, options(fsys, dir))
	for n := range 3 {
		mustPropose(t, q, topicRecords(n)...)
	}
	mustPropose(t, q, &metadata.RemoveTopicRecord{TopicID: topicID(1)})
	got, err := q.RemovedTopics(map[uuid.UUID]bool{topicID(1): true, topicID(2): true, topicID(9): true})
	if err != nil || len(got) != 1 || !got[topicID(1)] {
		t.Errorf("got %v, %v, want topic 1", got, err)
	}
}
