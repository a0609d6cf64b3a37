package quorum

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A kraftState is what control records and the newest snapshot say of the quorum from an entry on.
type kraftState struct {
	index   uint64                       // of the entry from which on it holds
	version *metadata.KRaftVersionRecord // nil in a quorum of version 0
	voters  *metadata.VotersRecord       // nil when they are in the configuration

	votersIndex  uint64 // of the entry with the voters, 0 when nobody knows
	votersOffset int64  // of its batch, -1 when a snapshot says it
}

// configuration returns the voters as raft wants them; static are those of the configuration file.
func (s kraftState) configuration(static raft.Configuration) raft.Configuration {
	if s.voters == nil {
		return static
	}
	return configurationIn(s.voters)
}

// level is the kraft.version.
func (s kraftState) level() int16 {
	if s.version == nil {
		return 0
	}
	return s.version.KRaftVersion
}

// A kraftHistory is what held when, ascending by index. A change holds when it is appended, as in
// raft and in KRaft, and no longer when it is cut off.
type kraftHistory []kraftState

// at returns what held behind an entry.
func (h kraftHistory) at(index uint64) kraftState {
	for _, s := range slices.Backward(h) {
		if s.index <= index {
			return s
		}
	}
	return kraftState{votersOffset: -1}
}

// newest returns what holds.
func (h kraftHistory) newest() kraftState { return h.at(math.MaxUint64) }

// note takes the records of a control batch.
func (h *kraftHistory) note(index uint64, offset int64, records []controlRecord) {
	s, changed := h.newest(), false
	for _, r := range records {
		switch v := r.value.(type) {
		case *metadata.KRaftVersionRecord:
			s.version, changed = v, true
		case *metadata.VotersRecord:
			s.voters, s.votersIndex, s.votersOffset, changed = v, index, offset, true
		}
	}
	if changed {
		s.index = index
		*h = append(*h, s)
	}
}

// startAt makes s what holds at an index, whatever was said before it.
func (h *kraftHistory) startAt(s kraftState) {
	later := slices.DeleteFunc(slices.Clone(*h), func(o kraftState) bool { return o.index <= s.index })
	for i := range later {
		if later[i].version == nil {
			later[i].version = s.version
		}
		if later[i].voters == nil {
			later[i].voters, later[i].votersIndex, later[i].votersOffset = s.voters, s.votersIndex, s.votersOffset
		}
	}
	*h = append(kraftHistory{s}, later...)
}

// cut forgets the entries from an index on.
func (h *kraftHistory) cut(index uint64) {
	*h = slices.DeleteFunc(*h, func(s kraftState) bool { return s.index >= index })
}

// shift renumbers.
func (h kraftHistory) shift(delta uint64) {
	for i := range h {
		h[i].index += delta
		if h[i].votersIndex > 0 {
			h[i].votersIndex += delta
		}
	}
}

// configurationOf is the configuration of voters by their ids. raft's name for a voter is its id,
// and so is its address: where it can be reached says VotersRecord or the configuration file.
func configurationOf(ids []int32) (c raft.Configuration) {
	for _, id := range ids {
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(addressOf(id)), Address: addressOf(id)})
	}
	return c
}

func configurationIn(r *metadata.VotersRecord) raft.Configuration {
	return configurationOf(idsIn(r))
}

// idsOf is the opposite of configurationOf.
func idsOf(c raft.Configuration) (ids []int32) {
	for _, server := range c.Servers {
		if id, err := parseAddress(server.Address); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func idsIn(r *metadata.VotersRecord) []int32 {
	ids := make([]int32, 0, len(r.Voters))
	for _, v := range r.Voters {
		ids = append(ids, v.VoterID)
	}
	return ids
}

// sameVoters reports whether two configurations have the same voters.
func sameVoters(a, b raft.Configuration) bool {
	less := func(a, b raft.Server) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) }
	return slices.Equal(slices.SortedFunc(slices.Values(a.Servers), less), slices.SortedFunc(slices.Values(b.Servers), less))
}

// recordOf returns the record for a configuration. Kafka's record knows voters only: a server of
// raft's that does not vote would vote for Kafka. Voters that were in the record before keep what it
// says of them, and so do those that are about to join.
func recordOf(c raft.Configuration, before *metadata.VotersRecord, joining []metadata.VotersRecordVoter) (*metadata.VotersRecord, error) {
	known := slices.Clone(joining)
	if before != nil {
		known = append(known, before.Voters...)
	}
	r := new(metadata.VotersRecord)
	for _, server := range c.Servers {
		id, err := parseAddress(server.Address)
		if err != nil || server.Suffrage != raft.Voter {
			return nil, fmt.Errorf("server %s of the quorum, which is a %v, has no place in VotersRecord", server.ID, server.Suffrage)
		}
		voter := metadata.VotersRecordVoter{VoterID: id, KRaftVersionFeature: metadata.KRaftVersionFeature{MaxSupportedVersion: 1}}
		if i := slices.IndexFunc(known, func(v metadata.VotersRecordVoter) bool { return v.VoterID == id }); i >= 0 {
			voter = known[i]
		}
		r.Voters = append(r.Voters, voter)
	}
	return r, nil
}

// directoryIn returns the id of a voter's metadata directory, which is part of who it is.
func directoryIn(r *metadata.VotersRecord, id int32) uuid.UUID {
	if r == nil {
		return uuid.Zero
	}
	for _, v := range r.Voters {
		if v.VoterID == id {
			return v.VoterDirectoryID
		}
	}
	return uuid.Zero
}
