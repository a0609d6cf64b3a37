package quorum

import (
	"fmt"
	"testing"
)

func TestParseQuorumState(t *testing.T) {
	f := func(leader, epoch, vote, version int, ok bool) {
		t.Helper()
		text := fmt.Sprintf(`{"leaderId":%d,"leaderEpoch":%d,"votedId":%d,"data_version":%d}`, leader, epoch, vote, version)
		d, err := parseQuorumState([]byte(text))
		if (err == nil) != ok || ok && (int(d.LeaderID) != leader || int(d.LeaderEpoch) != epoch || int(d.VotedID) != vote) {
			t.Errorf("%s: got %+v, %v", text, d, err)
		}
	}
	f(1, 5, -1, 0, true)
	f(1, 5, -1, 1, true)
	f(1, 5, -1, 2, false)
	f(1, 5, -1, -1, false)
	f(0, 0, 0, 0, true)
	f(-1, 0, -1, 0, true)
	f(-2, 0, -1, 0, false)
	f(-1, 0, -2, 0, false)
	f(-1, -1, -1, 0, false)
}

// raft's epoch never goes back, and fits into Kafka's.
func TestEpochGoesOn(t *testing.T) {
	s := newStore(t, 1).q.state
	set := func(key string, value uint64, ok bool) {
		t.Helper()
		if err := s.SetUint64([]byte(key), value); (err == nil) != ok {
			t.Errorf("%s = %d: got %v", key, value, err)
		}
	}
	set(keyCurrentTerm, 5, true)
	if err := s.Set([]byte(keyLastVoteCand), []byte("2")); err != nil {
		t.Fatal(err)
	}
	set(keyCurrentTerm, 5, true)
	if s.voteLocked() != 2 {
		t.Error("the same epoch once more takes the vote away")
	}
	set(keyLastVoteTerm, 5, true)
	set(keyLastVoteTerm, 6, false)
	set(keyCurrentTerm, 4, false)
	set(keyCurrentTerm, 6, true)
	if s.voteLocked() != nobody {
		t.Error("a vote outlives its epoch")
	}
	set(keyCurrentTerm, 1<<31-1, true)
	set(keyCurrentTerm, 1<<31, false)
	set("other", 7, false)
}
