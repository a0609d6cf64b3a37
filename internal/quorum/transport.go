package quorum

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"
)

// errNoPeers is the answer to any request to another voter.
var errNoPeers = errors.New("a quorum of one has no peers")

// A loneTransport is the transport of the only voter: it connects to nobody.
type loneTransport struct {
	addr     raft.ServerAddress
	requests chan raft.RPC
}

func newLoneTransport(addr raft.ServerAddress) *loneTransport {
	return &loneTransport{addr: addr, requests: make(chan raft.RPC, 1)}
}

// electNow makes the node a candidate without waiting for its election timer, as a leader does
// that hands over. The only voter wins at once.
func (t *loneTransport) electNow(id raft.ServerID) {
	t.requests <- raft.RPC{
		Command: &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{
			ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(t.addr),
		}},
		RespChan: make(chan raft.RPCResponse, 1),
	}
}

// Consumer implements raft.Transport.
func (t *loneTransport) Consumer() <-chan raft.RPC { return t.requests }

// LocalAddr implements raft.Transport.
func (t *loneTransport) LocalAddr() raft.ServerAddress { return t.addr }

// AppendEntriesPipeline implements raft.Transport.
func (t *loneTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, errNoPeers
}

// AppendEntries implements raft.Transport.
func (t *loneTransport) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	return errNoPeers
}

// RequestVote implements raft.Transport.
func (t *loneTransport) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest, *raft.RequestVoteResponse) error {
	return errNoPeers
}

// RequestPreVote implements raft.WithPreVote.
func (t *loneTransport) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest, *raft.RequestPreVoteResponse) error {
	return errNoPeers
}

// InstallSnapshot implements raft.Transport.
func (t *loneTransport) InstallSnapshot(raft.ServerID, raft.ServerAddress, *raft.InstallSnapshotRequest, *raft.InstallSnapshotResponse, io.Reader) error {
	return errNoPeers
}

// EncodePeer implements raft.Transport.
func (t *loneTransport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte {
	return []byte(addr)
}

// DecodePeer implements raft.Transport.
func (t *loneTransport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (t *loneTransport) SetHeartbeatHandler(func(raft.RPC)) {}

// TimeoutNow implements raft.Transport.
func (t *loneTransport) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	return errNoPeers
}
