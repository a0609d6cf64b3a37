package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *Server) deleteGroups(ctx context.Context, _ *Request, req *kmsg.DeleteGroupsRequest) (*kmsg.DeleteGroupsResponse, error) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	for i, err := range s.Groups.Delete(ctx, req.Groups) {
		resp.Groups = append(resp.Groups, kmsg.DeleteGroupsResponseGroup{
			Group: req.Groups[i], ErrorCode: groupCode(err), ErrorMessage: message(err),
		})
	}
	return resp, nil
}
