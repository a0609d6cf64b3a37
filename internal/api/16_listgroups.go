package api

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// listGroups lists the groups that this broker coordinates; clients ask every broker.
func (s *Server) listGroups(ctx context.Context, _ *Request, req *kmsg.ListGroupsRequest) (*kmsg.ListGroupsResponse, error) {
	resp := kmsg.NewPtrListGroupsResponse()
	list, err := s.Groups.List(ctx)
	if err != nil {
		resp.ErrorCode = groupCode(err)
		return resp, nil
	}
	for _, g := range list {
		if passes(req.StatesFilter, g.State) && passes(req.TypesFilter, g.Type) {
			resp.Groups = append(resp.Groups, kmsg.ListGroupsResponseGroup{
				Group: g.Group, ProtocolType: g.ProtocolType, GroupState: g.State, GroupType: g.Type,
			})
		}
	}
	return resp, nil
}

// passes reports whether a filter names the value, in whatever case. An empty filter lets
// everything pass.
func passes(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
}
