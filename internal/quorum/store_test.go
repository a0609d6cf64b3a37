package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A store is the stores that raft has on one node, without raft.
type store struct {
	*metadataLog
	q  *Quorum
	fs *vfs.Mem
}

// openStore opens the stores of one of the voters 1, 2 and 3.
func openStore(fsys *vfs.Mem, id int32) (*store, error) {
	o := options(fsys, "/data")
	o.NodeID, o.SnapshotBytes = id, 700
	o.Now = func() time.Time { return time.UnixMilli(1700000000000 + int64(id)) } // no two clocks agree
	o.peers = &peers{voters: []int32{1, 2, 3}}
	q, err := Read(o)
	if err != nil {
		return nil, err
	}
	err = errors.Join(q.createDir(), q.snapshots.removeParts(), q.log.mendFiles(), q.snapshots.nameReceived())
	return &store{q.log, q, fsys}, err
}

func newStore(t testing.TB, id int32) *store {
	t.Helper()
	fsys, _ := memDir(t)
	return mustOpenStore(t, fsys, id)
}

func mustOpenStore(t testing.TB, fsys *vfs.Mem, id int32) *store {
	t.Helper()
	s, err := openStore(fsys, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// next is the index of the next entry.
func (s *store) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextIndexLocked()
}

// own makes entries as raft does on a leader.
func own(t testing.TB, index, term uint64, kinds ...raft.LogType) (logs []*raft.Log) {
	t.Helper()
	for i, kind := range kinds {
		log := &raft.Log{Index: index + uint64(i), Term: term, Type: kind}
		switch kind {
		case raft.LogCommand:
			log.Data = mustBatch(t, int32(term), topicRecords(int(log.Index)))
		case raft.LogConfiguration:
			log.Data = raft.EncodeConfiguration(configurationOf([]int32{1, 2, 3}))
		}
		logs = append(logs, log)
	}
	return logs
}

func (s *store) mustStore(t testing.TB, logs ...*raft.Log) {
	t.Helper()
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

// entries returns entries as raft sends them to a follower.
func (s *store) entries(t testing.TB, from, to uint64) (logs []*raft.Log) {
	t.Helper()
	for index := from; index <= to; index++ {
		log := new(raft.Log)
		if err := s.GetLog(index, log); err != nil {
			t.Fatalf("entry %d: %v", index, err)
		}
		log.Data, log.Extensions = bytes.Clone(log.Data), bytes.Clone(log.Extensions)
		logs = append(logs, log)
	}
	return logs
}

// bytes is the content of the segments.
func (s *store) bytes(t testing.TB) []byte {
	t.Helper()
	return batchesFrom(t, &voterNode{fs: s.fs, dir: "/data"}, 0)
}

// Every type of entry has a form in the log, comes back as what raft needs, and has the same bytes on a
// follower whose id and clock are others.
func TestEntries(t *testing.T) {
	leader, follower := newStore(t, 1), newStore(t, 2)
	f := func(kind, want raft.LogType, controls ...record.ControlType) {
		t.Helper()
		index := leader.next()
		leader.mustStore(t, own(t, index, 3, kind)...)
		log := leader.entries(t, index, index)[0]
		batch := log.Data
		if want == raft.LogConfiguration {
			batch = log.Extensions
			if !sameVoters(raft.DecodeConfiguration(log.Data), configurationOf([]int32{1, 2, 3})) {
				t.Errorf("configuration %v", raft.DecodeConfiguration(log.Data))
			}
		}
		if log.Type != want || log.Term != 3 || record.Batch(batch).Verify() != nil || record.Batch(batch).LeaderEpoch() != 3 {
			t.Errorf("%v comes back as %v of term %d", kind, log.Type, log.Term)
		}
		var got []record.ControlType
		if record.Batch(batch).IsControl() {
			records, err := decodeControl(batch)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				got = append(got, r.kind)
			}
		}
		if !slices.Equal(got, controls) {
			t.Errorf("%v has control records %v, want %v", kind, got, controls)
		}
		follower.mustStore(t, log)
	}
	f(raft.LogNoop, raft.LogNoop, record.ControlLeaderChange)
	f(raft.LogCommand, raft.LogCommand)
	f(raft.LogBarrier, raft.LogCommand)
	f(raft.LogConfiguration, raft.LogConfiguration, record.ControlKRaftVoters)
	f(raft.LogCommand, raft.LogCommand)
	if a, b := leader.bytes(t), follower.bytes(t); !bytes.Equal(a, b) || len(a) == 0 {
		t.Errorf("%d bytes at the leader, %d others at the follower", len(a), len(b))
	}
}

// A follower stores what comes next, to the byte, and nothing else; a leader, what has a form. What is
// refused leaves nothing behind.
func TestEntriesRefused(t *testing.T) {
	leader := newStore(t, 1)
	leader.mustStore(t, own(t, 1, 2, raft.LogNoop, raft.LogCommand, raft.LogConfiguration, raft.LogCommand)...)
	f := func(name string, index uint64, change func(*raft.Log)) {
		t.Helper()
		s := newStore(t, 2)
		if index > 1 {
			s.mustStore(t, leader.entries(t, 1, index-1)...)
		}
		logs := leader.entries(t, index, 4)
		change(logs[0])
		before := s.bytes(t)
		if err := s.StoreLogs(logs); err == nil {
			t.Errorf("%s: stored", name)
		}
		if !bytes.Equal(s.bytes(t), before) || s.fail.get() != nil {
			t.Errorf("%s: refused, but something is left: %v", name, s.fail.get())
		}
		s.mustStore(t, leader.entries(t, index, 4)...)
	}
	f("a byte changed", 2, func(l *raft.Log) { l.Data[len(l.Data)-1] ^= 1 })
	f("cut off", 2, func(l *raft.Log) { l.Data = l.Data[:len(l.Data)-1] })
	f("two batches", 2, func(l *raft.Log) { l.Data = append(l.Data, l.Data...) })
	f("another offset", 2, func(l *raft.Log) { record.Batch(l.Data).SetBaseOffset(7) })
	f("another epoch", 2, func(l *raft.Log) { record.Batch(l.Data).SetLeaderEpoch(3) })
	f("an epoch of before", 2, func(l *raft.Log) { l.Term = 1; record.Batch(l.Data).SetLeaderEpoch(1) })
	f("another type", 2, func(l *raft.Log) { l.Type = raft.LogNoop })
	f("a no-op that is a command", 1, func(l *raft.Log) { l.Type = raft.LogCommand })
	f("other voters than in the batch", 3, func(l *raft.Log) { l.Data = raft.EncodeConfiguration(configurationOf([]int32{1})) })
	f("an anchor elsewhere", 1, func(l *raft.Log) {
		b, err := leaderChange{leader: 1, index: 9}.batch(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		l.Data = b
	})
	f("a server that does not vote", 4, func(l *raft.Log) {
		c := configurationOf([]int32{1, 2, 3})
		c.Servers[1].Suffrage = raft.Nonvoter
		l.Type, l.Data = raft.LogConfiguration, raft.EncodeConfiguration(c)
	})
	for _, epoch := range []int32{1, 3} {
		f("a proposal of another epoch", 4, func(l *raft.Log) { l.Data = mustBatch(t, epoch, topicRecords(4)) })
	}
	f("a type of raft's past", 4, func(l *raft.Log) { l.Type, l.Data = raft.LogAddPeerDeprecated, nil })
}

// The contract of raft.LogStore at its edges.
func TestLogStore(t *testing.T) {
	s := newStore(t, 1)
	f := func(name string, first, last uint64) {
		t.Helper()
		a, errA := s.FirstIndex()
		b, errB := s.LastIndex()
		if a != first || b != last || errA != nil || errB != nil {
			t.Errorf("%s: entries %d to %d, want %d to %d", name, a, b, first, last)
		}
		for _, index := range []uint64{first - 1, last + 1} {
			if err := s.GetLog(index, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
				t.Errorf("%s: entry %d: %v, want ErrLogNotFound", name, index, err)
			}
		}
	}
	mustDelete := func(first, last uint64) {
		t.Helper()
		if err := s.DeleteRange(first, last); err != nil {
			t.Error(err)
		}
	}
	f("empty", 0, 0)
	mustDelete(1, 9)
	commands := slices.Repeat([]raft.LogType{raft.LogCommand}, 9)
	s.mustStore(t, own(t, 1, 1, commands...)...)
	f("stored", 1, 9)
	mustDelete(0, 3)
	f("the front is gone", 4, 9)
	mustDelete(8, 100)
	f("the end is gone", 4, 7)
	mustDelete(1, 3)
	mustDelete(8, 9)
	f("nothing more is gone", 4, 7)
	s.mustStore(t, own(t, 8, 2, raft.LogNoop, raft.LogCommand)...)
	f("it goes on", 4, 9)
	mustDelete(4, 9)
	f("all is gone", 0, 0)
	s.mustStore(t, own(t, 4, 2, raft.LogCommand)...)
	f("it goes on", 4, 4)
	s.mustStore(t, own(t, 5, 2, raft.LogCommand, raft.LogCommand)...)
	if err := s.DeleteRange(5, 5); err == nil {
		t.Error("an entry was deleted from the middle")
	}
	s = newStore(t, 1)
	if err := s.StoreLogs(own(t, 2, 1, raft.LogCommand)); err == nil || s.fail.get() == nil {
		t.Errorf("an index was left out: %v", err)
	}
}

// Voters hold from when they are appended until they are cut off, and a snapshot has those of its place.
func TestVotersOfAnEntry(t *testing.T) {
	s := newStore(t, 1)
	voters := func(index uint64, ids ...int32) {
		t.Helper()
		log := own(t, index, 1, raft.LogConfiguration)
		log[0].Data = raft.EncodeConfiguration(configurationOf(ids))
		s.mustStore(t, log...)
	}
	f := func(want ...int32) {
		t.Helper()
		if got := idsOf(s.configuration()); !slices.Equal(got, want) {
			t.Errorf("voters %v, want %v", got, want)
		}
	}
	f(1, 2, 3)
	voters(1, 1, 2)
	s.mustStore(t, own(t, 2, 1, raft.LogCommand, raft.LogCommand)...)
	voters(4, 1, 2, 5)
	f(1, 2, 5)
	if err := s.snapshotAt(3); err != nil {
		t.Fatal(err)
	}
	if meta := s.q.snapshots.metaOf(s.q.currentSnapshot()); !sameVoters(meta.Configuration, configurationOf([]int32{1, 2})) || meta.ConfigurationIndex != 1 {
		t.Errorf("the snapshot has the voters %v of index %d", meta.Configuration, meta.ConfigurationIndex)
	}
	s.close()
	s = mustOpenStore(t, s.fs, 1)
	f(1, 2, 5)
	if err := s.DeleteRange(4, 4); err != nil {
		t.Fatal(err)
	}
	f(1, 2)
	s.close()
	s = mustOpenStore(t, s.fs, 1)
	f(1, 2)
	if meta := s.q.snapshots.metaOf(s.q.currentSnapshot()); meta.ConfigurationIndex != 1 || meta.Index != 3 {
		t.Errorf("after a start the snapshot is of index %d, its voters of %d", meta.Index, meta.ConfigurationIndex)
	}
}

// Epoch and vote are on disk when raft hears so, and one vote stays what it is.
func TestStableStore(t *testing.T) {
	fsys, _ := memDir(t)
	s := mustOpenStore(t, fsys, 2).q.state
	set := func(term uint64, candidate int32) {
		t.Helper()
		err := s.SetUint64([]byte(keyCurrentTerm), term)
		if candidate != nobody {
			err = errors.Join(err, s.SetUint64([]byte(keyLastVoteTerm), term), s.Set([]byte(keyLastVoteCand), []byte(addressOf(candidate))))
		}
		if err != nil {
			t.Error(err)
		}
	}
	f := func(term, voteTerm uint64, candidate string) {
		t.Helper()
		s = mustOpenStore(t, fsys.CrashClone(rand.New(rand.NewPCG(term, 7))), 2).q.state
		a, errA := s.GetUint64([]byte(keyCurrentTerm))
		b, errB := s.GetUint64([]byte(keyLastVoteTerm))
		c, errC := s.Get([]byte(keyLastVoteCand))
		if a != term || b != voteTerm || string(c) != candidate || errors.Join(errA, errB, errC) != nil {
			t.Errorf("term %d, vote in %d for %q, want %d, %d, %q", a, b, c, term, voteTerm, candidate)
		}
		s = mustOpenStore(t, fsys, 2).q.state
	}
	f(0, 0, "")
	set(1, nobody)
	f(1, 0, "")
	set(2, 3)
	f(2, 2, "3")
	set(2, 3)
	f(2, 2, "3")
	set(4, nobody)
	f(4, 0, "")
	set(4, 2) // for itself: it leads only if others do so too
	f(4, 4, "2")
	if s.data.LeaderID != nobody {
		t.Errorf("a candidate is noted as leader %d", s.data.LeaderID)
	}
	for key, value := range map[string]uint64{keyCurrentTerm: 3, keyLastVoteTerm: 5, "Other": 1} {
		if err := s.SetUint64([]byte(key), value); err == nil {
			t.Errorf("%s is set to %d in epoch 4", key, value)
		}
	}
	if err := s.Set([]byte(keyLastVoteCand), []byte("x")); err == nil {
		t.Error("a vote for x")
	}
}

// A model is what a log is to hold: the bytes of each entry, and the snapshot before them.
type model struct {
	entries  map[uint64]string
	snapshot uint64
}

// modelOf is what a log holds.
func modelOf(t testing.TB, s *store) model {
	t.Helper()
	m := model{map[uint64]string{}, s.q.currentSnapshot().index}
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	for _, log := range s.entries(t, max(first, 1), last) {
		m.entries[log.Index] = fmt.Sprint(log.Term, log.Type, log.Data, log.Extensions)
	}
	return m
}

// between says why a log is not one that a step from a to b can leave, "" if it is: what both have is
// there or in the snapshot, what is there is of one of them, and there is no gap.
func (m model) between(a, b model) string {
	if m.snapshot != a.snapshot && m.snapshot != b.snapshot {
		return fmt.Sprintf("snapshot at %d, want %d or %d", m.snapshot, a.snapshot, b.snapshot)
	}
	for index, entry := range m.entries {
		if entry != a.entries[index] && entry != b.entries[index] {
			return fmt.Sprintf("entry %d is none that was ever there", index)
		}
		if _, ok := m.entries[index-1]; !ok && index-1 > m.snapshot {
			return fmt.Sprintf("entry %d is there, the one before is not", index)
		}
	}
	for index, entry := range a.entries {
		if _, ok := m.entries[index]; !ok && index > m.snapshot && b.entries[index] == entry {
			return fmt.Sprintf("entry %d is lost", index)
		}
	}
	return ""
}

// snapshotAt takes a snapshot as raft does.
func (s *store) snapshotAt(index uint64) error {
	var log raft.Log
	if err := s.GetLog(index, &log); err != nil {
		return err
	}
	sink, err := s.q.snapshots.Create(1, index, log.Term, s.configuration(), 1, nil)
	if err != nil {
		return err
	}
	c, err := sink.(*snapshotSink).take()
	if err == nil {
		err = writeCheckpoint(sink, c, slices.Values(topicRecords(int(index))), metadata.LevelCurrent, int32(log.Term), 9)
	}
	if err := errors.Join(err, sink.Close()); err != nil {
		return err
	}
	return s.DeleteRange(1, index)
}

// receive gets a snapshot from a leader as raft does.
func (s *store) receive(leader *store) error {
	meta, r, err := leader.q.snapshots.Open(leader.q.currentSnapshot().id.String())
	if err != nil {
		return err
	}
	defer r.Close()
	sink, err := s.q.snapshots.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		return err
	}
	if n, err := io.Copy(sink, r); err != nil || n != meta.Size {
		return errors.Join(err, sink.Cancel(), fmt.Errorf("%d bytes of %d", n, meta.Size))
	}
	return sink.Close()
}

// TestStoreModel holds a leader's and a follower's log against each other and against what was stored,
// over appends, cuts, snapshots and starts.
func TestStoreModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		leaderFS, _ := memDir(t)
		followerFS, _ := memDir(t)
		leader, follower := mustOpenStore(t, leaderFS, 1), mustOpenStore(t, followerFS, 2)
		term := uint64(1)
		want := model{map[uint64]string{}, 0}
		reopen := func(s *store, id int32) *store {
			s.close()
			again, err := openStore(s.fs, id)
			if err != nil {
				rt.Fatal(err)
			}
			return again
		}
		defer func() { leader.close(); follower.close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				kinds := rapid.SliceOfN(rapid.SampledFrom([]raft.LogType{raft.LogCommand, raft.LogCommand, raft.LogNoop, raft.LogBarrier, raft.LogConfiguration}), 1, 4).Draw(rt, "kinds")
				leader.mustStore(t, own(t, leader.next(), term, kinds...)...)
				for _, log := range leader.entries(t, leader.next()-uint64(len(kinds)), leader.next()-1) {
					want.entries[log.Index] = fmt.Sprint(log.Term, log.Type, log.Data, log.Extensions)
				}
			},
			"replicate": func(*rapid.T) {
				first, _ := leader.FirstIndex()
				if next := follower.next(); next < leader.next() && first > 0 && next >= first {
					follower.mustStore(t, leader.entries(t, next, leader.next()-1)...)
				} else if next < leader.next() {
					if err := follower.receive(leader); err != nil {
						rt.Fatal(err)
					}
				}
			},
			"cut": func(rt *rapid.T) {
				first, _ := leader.FirstIndex()
				last, _ := leader.LastIndex()
				if last == 0 {
					return
				}
				from := rapid.Uint64Range(first, last).Draw(rt, "from")
				if follower.q.currentSnapshot().index >= from { // what a snapshot holds is committed
					return
				}
				if err := errors.Join(leader.DeleteRange(from, last), follower.DeleteRange(from, last)); err != nil {
					rt.Fatal(err)
				}
				for ; from <= last; from++ {
					delete(want.entries, from)
				}
				term++
			},
			"snapshot": func(rt *rapid.T) {
				last, _ := leader.LastIndex()
				var log raft.Log
				if leader.GetLog(last, &log) != nil || log.Type != raft.LogCommand {
					return
				}
				if err := leader.snapshotAt(last); err != nil {
					rt.Fatal(err)
				}
				want.snapshot = last
				clear(want.entries)
			},
			"restart": func(*rapid.T) { leader, follower = reopen(leader, 1), reopen(follower, 2) },
			"": func(rt *rapid.T) {
				if got := modelOf(t, leader); !equalModels(got, want) {
					rt.Fatalf("the leader has %d entries behind snapshot %d, want %d behind %d", len(got.entries), got.snapshot, len(want.entries), want.snapshot)
				}
				for index, entry := range modelOf(t, follower).entries {
					if w, ok := want.entries[index]; ok && w != entry {
						rt.Fatalf("entry %d of the follower is another", index)
					}
				}
				if follower.next() == leader.next() && follower.NextOffset() != leader.NextOffset() {
					rt.Fatalf("index %d is offset %d at the leader, %d at the follower", leader.next(), leader.NextOffset(), follower.NextOffset())
				}
			},
		})
	})
}

func equalModels(a, b model) bool {
	if a.snapshot != b.snapshot || len(a.entries) != len(b.entries) {
		return false
	}
	for index, entry := range a.entries {
		if b.entries[index] != entry {
			return false
		}
	}
	return true
}

// storeSteps is a follower's life: it votes, stores what a leader of epoch 1 sends, loses the end of it to
// the leader of epoch 3, takes a snapshot, and gets another one that takes the place of its log.
func storeSteps(t *testing.T) []func(*store) error {
	old, leader := newStore(t, 1), newStore(t, 3)
	commands := func(n int) []raft.LogType { return slices.Repeat([]raft.LogType{raft.LogCommand}, n) }
	old.mustStore(t, own(t, 1, 1, raft.LogNoop)...)
	old.mustStore(t, own(t, 2, 1, commands(12)...)...)
	leader.mustStore(t, old.entries(t, 1, 5)...)
	leader.mustStore(t, own(t, 6, 3, raft.LogNoop, raft.LogConfiguration)...)
	leader.mustStore(t, own(t, 8, 3, commands(8)...)...)
	third := leader.entries(t, 1, 15)
	leader.mustStore(t, own(t, 16, 4, append([]raft.LogType{raft.LogNoop}, commands(9)...)...)...)
	if err := leader.snapshotAt(22); err != nil {
		t.Fatal(err)
	}
	first, last := old.entries(t, 1, 13), leader.entries(t, 23, 25)
	term := func(n uint64) func(*store) error {
		return func(s *store) error { return s.q.state.SetUint64([]byte(keyCurrentTerm), n) }
	}
	vote := func(n int32) func(*store) error {
		return func(s *store) error { return s.q.state.Set([]byte(keyLastVoteCand), []byte(addressOf(n))) }
	}
	put := func(logs []*raft.Log) func(*store) error {
		return func(s *store) error { return s.StoreLogs(logs) }
	}
	return []func(*store) error{
		term(1), vote(1), put(first[:4]), put(first[4:]),
		func(s *store) error { // a clean stop
			s.q.writeEnd()
			return s.q.writeEpochs(filepath.Join(s.dir, checkpoint.LeaderEpochs))
		},
		term(3), vote(3), func(s *store) error { return s.DeleteRange(6, 13) }, put(third[5:]),
		func(s *store) error { return s.snapshotAt(11) },
		term(4), func(s *store) error { return s.receive(leader) }, put(last), term(5), vote(2),
	}
}

// TestStoreCrash stops the machine at every operation of that life. No entry that was stored and not cut off
// is lost, an index means what it meant, epoch and vote do not go back, and nothing seems to be missing.
func TestStoreCrash(t *testing.T) {
	steps := storeSteps(t)
	s := newStore(t, 2)
	models, votes := []model{modelOf(t, s)}, []quorumStateData{s.q.state.data}
	for i, step := range steps {
		if err := step(s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		models, votes = append(models, modelOf(t, s)), append(votes, s.q.state.data)
	}
	for seed := range uint64(3) {
		point := 0
		for ; ; point++ {
			rng := rand.New(rand.NewPCG(seed, uint64(point)))
			step, left := crashStore(t, steps, point, rng)
			if left == nil {
				break
			}
			checkCrashed(t, fmt.Sprintf("step %d, operation %d, seed %d", step, point, seed), left, models[step], models[step+1], votes[step])
		}
		t.Logf("%d crash points", point)
	}
}

// crashStore goes through the steps until a crash at an operation, and returns the step and what is left.
func crashStore(t *testing.T, steps []func(*store) error, point int, rng *rand.Rand) (int, *vfs.Mem) {
	t.Helper()
	fsys, _ := memDir(t)
	s := mustOpenStore(t, fsys, 2)
	after := crashHook(fsys, rng, point)
	defer fsys.SetHook(nil)
	for i, step := range steps {
		err := step(s)
		if left := after(); left != nil {
			return i, left
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return 0, nil
}

// checkCrashed opens what a crash in a step left, and opens it again.
func checkCrashed(t *testing.T, when string, left *vfs.Mem, before, after model, state quorumStateData) {
	t.Helper()
	for range 2 {
		s, err := openStore(left, 2)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got, vote := modelOf(t, s), s.q.state.data
		if why := got.between(before, after); why != "" {
			t.Errorf("%s: %s", when, why)
		}
		if vote.LeaderEpoch < state.LeaderEpoch || vote.LeaderEpoch == state.LeaderEpoch && state.VotedID != nobody && vote.VotedID != state.VotedID {
			t.Errorf("%s: epoch %d with a vote for %d has become %d with one for %d", when, state.LeaderEpoch, state.VotedID, vote.LeaderEpoch, vote.VotedID)
		}
		if e := s.q.Evidence(); len(e.Proofs) > 0 {
			t.Errorf("%s: it seems that something is missing: %+v", when, e.Proofs)
		}
		s.close()
		before, after, left = got, got, left.CrashClone(rand.New(rand.NewPCG(1, 1)))
	}
}
