package quorum

import (
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// A ballot is who granted this node its vote, in the newest election that it heard of: raft counts
// votes and does not say whose they are. A nil ballot is that of the only voter.
type ballot struct {
	mu struct {
		sync.Mutex
		term   uint64
		voters []int32
	}
}

func (b *ballot) note(term uint64, voter int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if term > b.mu.term {
		b.mu.term, b.mu.voters = term, nil
	}
	if term == b.mu.term {
		b.mu.voters = append(b.mu.voters, voter)
	}
}

// granted returns who is known to have voted for this node in a term, itself included.
func (b *ballot) granted(term uint64, self int32) []int32 {
	voters := []int32{self}
	if b == nil {
		return voters
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if term == b.mu.term {
		voters = append(voters, b.mu.voters...)
	}
	slices.Sort(voters)
	return slices.Compact(voters)
}

// A countedTransport is a transport that notes granted votes.
type countedTransport struct {
	raft.Transport
	ballot *ballot
}

// RequestVote implements raft.Transport.
func (t countedTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	err := t.Transport.RequestVote(id, target, args, resp)
	if voter, addressErr := parseAddress(target); err == nil && addressErr == nil && resp.Granted {
		t.ballot.note(args.Term, voter)
	}
	return err
}

// RequestPreVote implements raft.WithPreVote.
func (t countedTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if p, ok := t.Transport.(raft.WithPreVote); ok {
		return p.RequestPreVote(id, target, args, resp)
	}
	return errNoPeers
}

// Close implements raft.WithClose.
func (t countedTransport) Close() error {
	if c, ok := t.Transport.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
