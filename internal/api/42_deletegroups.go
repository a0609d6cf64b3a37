package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (s *Server) deleteGroups(ctx context.Context, _ *Request, req *kmsg.DeleteGroupsRequest) (*kmsg.DeleteGroupsResponse, error) {
	var groups []string // each once
	seen := map[string]bool{}
	for _, g := range req.Groups {
		if !seen[g] {
			groups = append(groups, g)
		}
		seen[g] = true
	}
	resp := kmsg.NewPtrDeleteGroupsResponse()
	for i, err := range s.Groups.Delete(ctx, groups) {
		resp.Groups = append(resp.Groups, kmsg.DeleteGroupsResponseGroup{
			Group: groups[i], ErrorCode: groupCode(err), ErrorMessage: message(err),
		})
	}
	return resp, nil
}
