package api

import (
	"bytes"
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
)

// syncGroup waits until the leader's assignment is in the log. From version 5 on the
// client has to say which protocol it believes to be in use.
func (s *Server) syncGroup(ctx context.Context, r *Request, req *kmsg.SyncGroupRequest) (*kmsg.SyncGroupResponse, error) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.MemberAssignment = []byte{}
	if r.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
		return resp, nil
	}
	q := &group.SyncRequest{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		ProtocolType: req.ProtocolType, Protocol: req.Protocol,
		Assignments: make(map[string][]byte, len(req.GroupAssignment)),
	}
	for _, a := range req.GroupAssignment {
		q.Assignments[a.MemberID] = bytes.Clone(a.MemberAssignment) // the group keeps it
	}
	r.BeginWait()
	a := s.Groups.Sync(ctx, q)
	resp.ErrorCode = groupCode(a.Err)
	if a.Err == nil {
		resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &a.ProtocolType, &a.Protocol, a.Assignment
	}
	return resp, nil
}
