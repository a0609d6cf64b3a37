package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
)

// leaveGroup takes members out of a group. Up to version 2 there is one, and its error is
// that of the request.
func (s *Server) leaveGroup(ctx context.Context, r *Request, req *kmsg.LeaveGroupRequest) (*kmsg.LeaveGroupResponse, error) {
	var leavers []group.Leaver
	if r.Version < 3 {
		leavers = []group.Leaver{{MemberID: req.MemberID}}
	}
	for _, m := range req.Members {
		leavers = append(leavers, group.Leaver{MemberID: m.MemberID, InstanceID: m.InstanceID})
	}
	errs, err := s.Groups.Leave(ctx, req.Group, leavers)
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.ErrorCode = groupCode(err)
	if r.Version < 3 && err == nil {
		resp.ErrorCode = groupCode(errs[0])
		return resp, nil
	}
	for i, err := range errs {
		resp.Members = append(resp.Members, kmsg.LeaveGroupResponseMember{
			MemberID: leavers[i].MemberID, InstanceID: leavers[i].InstanceID, ErrorCode: groupCode(err),
		})
	}
	return resp, nil
}
