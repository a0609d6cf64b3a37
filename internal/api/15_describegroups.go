package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
)

// groupOperations is what everybody may do with a group without an authorizer: read,
// delete, describe, describe-configs, alter-configs.
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

// describeGroups describes classic groups. One that does not exist is Dead, which is an
// error from version 6 on.
func (s *Server) describeGroups(ctx context.Context, r *Request, req *kmsg.DescribeGroupsRequest) (*kmsg.DescribeGroupsResponse, error) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	for _, id := range req.Groups {
		d := s.Groups.Describe(ctx, id)
		a := kmsg.DescribeGroupsResponseGroup{
			Group: id, State: d.State, ProtocolType: d.ProtocolType, Protocol: d.Protocol,
			AuthorizedOperations: operations(req.IncludeAuthorizedOperations, groupOperations),
		}
		if d.Err != nil && (r.Version >= 6 || !errors.Is(d.Err, group.ErrGroupIDNotFound)) {
			a.ErrorCode, a.ErrorMessage = groupCode(d.Err), message(d.Err)
		}
		for _, m := range d.Members {
			a.Members = append(a.Members, describeMember(m))
		}
		resp.Groups = append(resp.Groups, a)
	}
	return resp, nil
}

func describeMember(m group.MemberDescription) kmsg.DescribeGroupsResponseGroupMember {
	return kmsg.DescribeGroupsResponseGroupMember{
		MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
		ProtocolMetadata: m.Metadata, MemberAssignment: m.Assignment,
	}
}
