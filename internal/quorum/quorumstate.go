package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// quorumStateData is the content of quorum-state (Kafka schema QuorumStateData). Version 0 is
// for voters from the configuration, version 1 for voters in the log.
type quorumStateData struct {
	ClusterID        *string   `json:"clusterId,omitempty"` // version 0, always empty
	LeaderID         int32     `json:"leaderId"`
	LeaderEpoch      int32     `json:"leaderEpoch"`
	VotedID          int32     `json:"votedId"`
	VotedDirectoryID *uuidText `json:"votedDirectoryId,omitempty"` // version 1
	AppliedOffset    *int64    `json:"appliedOffset,omitempty"`    // version 0, always 0
	CurrentVoters    []voterID `json:"currentVoters,omitempty"`    // version 0
	DataVersion      int16     `json:"data_version"`
}

type voterID struct {
	VoterID int32 `json:"voterId"`
}

type uuidText string

// nobody is the id of no leader and of no vote.
const nobody = -1

// A quorumState is the file quorum-state as raft's stable store: its three keys are the epoch
// and the vote. A known leader counts as the vote for it, which it had: Kafka drops the vote
// then. Methods may be called concurrently.
//
// Epoch and vote are durable before raft answers anybody. Only the only voter's epoch is not: its vote
// for itself follows at once, and nobody has heard of the epoch.
type quorumState struct {
	fs     vfs.FS
	path   string
	nodeID int32
	log    *metadataLog // knows who votes
	fail   *failure
	found  quorumStateData // as the file was; nobody leads and epoch 0 when it was missing

	// silence cuts this node off from the other voters; nil where there are none.
	silence func()

	mu   sync.Mutex
	data quorumStateData // as in the file, but for an epoch without a vote
}

// keys that raft uses.
const (
	keyCurrentTerm  = "CurrentTerm"
	keyLastVoteTerm = "LastVoteTerm"
	keyLastVoteCand = "LastVoteCand"
)

// newQuorumState is that of a missing file. epoch is the last one in the log.
func newQuorumState(fsys vfs.FS, dir string, log *metadataLog, epoch int32) *quorumState {
	s := &quorumState{fs: fsys, path: filepath.Join(dir, checkpoint.QuorumState), nodeID: log.nodeID, log: log, fail: log.fail}
	s.found = quorumStateData{LeaderID: nobody, VotedID: nobody}
	s.data = quorumStateData{LeaderID: nobody, VotedID: nobody, LeaderEpoch: epoch}
	s.complete()
	return s
}

// openQuorumState reads the file, which may be missing. epoch counts when the file has an older one.
func openQuorumState(fsys vfs.FS, dir string, log *metadataLog, epoch int32) (*quorumState, error) {
	s := newQuorumState(fsys, dir, log, epoch)
	b, err := vfs.ReadFile(fsys, s.path, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	}
	if s.data, err = parseQuorumState(b); err != nil {
		return nil, &CorruptError{Path: s.path, Position: -1, Offset: -1, Err: err}
	}
	s.found = s.data
	if s.data.LeaderEpoch < epoch {
		s.data.LeaderEpoch, s.data.LeaderID, s.data.VotedID = epoch, nobody, nobody
	}
	s.complete()
	return s, nil
}

// complete fills in the fields that only version 0 has.
func (s *quorumState) complete() {
	if s.data.DataVersion == 0 {
		var empty string
		var zero int64
		s.data.ClusterID, s.data.AppliedOffset, s.data.CurrentVoters = &empty, &zero, nil
		for _, id := range idsOf(s.log.static) {
			s.data.CurrentVoters = append(s.data.CurrentVoters, voterID{id})
		}
	}
}

func parseQuorumState(b []byte) (d quorumStateData, err error) {
	d.LeaderID, d.VotedID = nobody, nobody
	if err := json.Unmarshal(b, &d); err != nil {
		return d, err
	}
	switch {
	case d.DataVersion < 0 || d.DataVersion > 1:
		return d, fmt.Errorf("data_version %d, want 0 or 1", d.DataVersion)
	case d.LeaderEpoch < 0 || d.LeaderID < nobody || d.VotedID < nobody:
		return d, fmt.Errorf("negative epoch %d, leader %d or vote %d", d.LeaderEpoch, d.LeaderID, d.VotedID)
	}
	return d, nil
}

// writeLocked makes data the content of the file.
func (s *quorumState) writeLocked(data quorumStateData) error {
	if s.log.level() > 0 && !s.alone() {
		data.DataVersion, data.ClusterID, data.AppliedOffset, data.CurrentVoters = 1, nil, nil, nil
	}
	if data.DataVersion == 1 {
		directory := uuidText(directoryIn(s.log.voters(), data.VotedID).String())
		data.VotedDirectoryID = &directory
	}
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if err := s.fail.get(); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(s.fs, s.path, b); err != nil {
		s.fail.set(err)
		return err
	}
	s.data = data
	return nil
}

// voteLocked returns who has this node's vote in the current epoch.
func (s *quorumState) voteLocked() int32 {
	if s.data.VotedID != nobody {
		return s.data.VotedID
	}
	return s.data.LeaderID
}

// epoch returns the newest epoch.
func (s *quorumState) epoch() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.LeaderEpoch
}

// alone reports whether this node is the only voter.
func (s *quorumState) alone() bool {
	voters := idsOf(s.log.configuration())
	return len(voters) == 1 && voters[0] == s.nodeID
}

// SetUint64 implements raft.StableStore.
func (s *quorumState) SetUint64(key []byte, value uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case string(key) == keyCurrentTerm && value == uint64(s.data.LeaderEpoch):
		return nil
	case string(key) == keyCurrentTerm && value > uint64(s.data.LeaderEpoch) && value < 1<<31:
		data := s.data
		data.LeaderEpoch, data.LeaderID, data.VotedID = int32(value), nobody, nobody
		if !s.alone() {
			return s.writeEpochLocked(data)
		}
		s.data = data
		return nil
	case string(key) == keyLastVoteTerm && value == uint64(s.data.LeaderEpoch):
		return nil // LastVoteCand follows
	}
	return fmt.Errorf("raft sets %s to %d in epoch %d", key, value, s.data.LeaderEpoch)
}

// writeEpochLocked makes a new epoch durable. raft answers a failure with a panic, so it is told of none: instead
// nothing that it says from now on leaves this node, whose broker ends (Options.OnFailure).
func (s *quorumState) writeEpochLocked(data quorumStateData) error {
	err := s.writeLocked(data)
	if err == nil || s.silence == nil || s.fail.get() == nil {
		return err
	}
	s.silence()
	s.data = data
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *quorumState) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyCurrentTerm:
		return uint64(s.data.LeaderEpoch), nil
	case keyLastVoteTerm:
		if s.voteLocked() != nobody {
			return uint64(s.data.LeaderEpoch), nil
		}
		return 0, nil
	}
	return 0, fmt.Errorf("raft asks for %s", key)
}

// Set implements raft.StableStore. The vote of the only voter for itself makes it the leader.
func (s *quorumState) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := parseAddress(raft.ServerAddress(value))
	if string(key) != keyLastVoteCand || err != nil {
		return fmt.Errorf("raft sets %s to %q", key, value)
	}
	if id == s.voteLocked() {
		return nil
	}
	data := s.data
	data.VotedID, data.LeaderID = id, nobody
	if id == s.nodeID && s.alone() {
		data.VotedID, data.LeaderID = nobody, id
	}
	return s.writeLocked(data)
}

// Get implements raft.StableStore.
func (s *quorumState) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if vote := s.voteLocked(); string(key) == keyLastVoteCand && vote != nobody {
		return []byte(addressOf(vote)), nil
	}
	return nil, nil
}

// addressOf is how raft knows a node: its id.
func addressOf(nodeID int32) raft.ServerAddress {
	return raft.ServerAddress(strconv.Itoa(int(nodeID)))
}

func parseAddress(a raft.ServerAddress) (nodeID int32, err error) {
	n, err := strconv.ParseInt(string(a), 10, 32)
	return int32(n), err
}
