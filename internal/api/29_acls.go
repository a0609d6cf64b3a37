package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errNoAuthorizer is the answer to all questions about ACLs of a broker that has no
// authorizer: Kafka's too, when authorizer.class.name is empty.
var errNoAuthorizer = refuse(kerr.SecurityDisabled, "no authorizer is configured")

func (s *Server) describeACLs(_ context.Context, _ *Request, _ *kmsg.DescribeACLsRequest) (*kmsg.DescribeACLsResponse, error) {
	resp := kmsg.NewPtrDescribeACLsResponse()
	resp.ErrorCode, resp.ErrorMessage = code(errNoAuthorizer), message(errNoAuthorizer)
	resp.Resources = []kmsg.DescribeACLsResponseResource{}
	return resp, nil
}

func (s *Server) createACLs(_ context.Context, _ *Request, req *kmsg.CreateACLsRequest) (*kmsg.CreateACLsResponse, error) {
	resp := kmsg.NewPtrCreateACLsResponse()
	resp.Results = make([]kmsg.CreateACLsResponseResult, len(req.Creations))
	for i := range resp.Results {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = code(errNoAuthorizer), message(errNoAuthorizer)
	}
	return resp, nil
}

func (s *Server) deleteACLs(_ context.Context, _ *Request, req *kmsg.DeleteACLsRequest) (*kmsg.DeleteACLsResponse, error) {
	resp := kmsg.NewPtrDeleteACLsResponse()
	resp.Results = make([]kmsg.DeleteACLsResponseResult, len(req.Filters))
	for i := range resp.Results {
		r := &resp.Results[i]
		r.ErrorCode, r.ErrorMessage = code(errNoAuthorizer), message(errNoAuthorizer)
		r.MatchingACLs = []kmsg.DeleteACLsResponseResultMatchingACL{}
	}
	return resp, nil
}
