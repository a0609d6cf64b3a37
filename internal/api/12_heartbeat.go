package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *Server) heartbeat(ctx context.Context, _ *Request, req *kmsg.HeartbeatRequest) (*kmsg.HeartbeatResponse, error) {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = groupCode(s.Groups.Heartbeat(ctx, req.Group, req.MemberID, req.InstanceID, req.Generation))
	return resp, nil
}
