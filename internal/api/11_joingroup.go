package api

import (
	"bytes"
	"context"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
)

// joinGroup waits, possibly for minutes, until the group has its next generation.
func (s *Server) joinGroup(ctx context.Context, r *Request, req *kmsg.JoinGroupRequest) (*kmsg.JoinGroupResponse, error) {
	join := joinRequest(r, req)
	r.BeginWait()
	j := s.Groups.Join(ctx, join)
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.Generation = groupCode(j.Err), j.Generation
	resp.LeaderID, resp.MemberID, resp.SkipAssignment = j.Leader, j.MemberID, j.SkipAssignment
	if j.Err == nil {
		resp.ProtocolType, resp.Protocol = &j.ProtocolType, &j.Protocol
	} else if r.Version < 7 { // in which the protocol cannot be null
		resp.Protocol = new(string)
	}
	for _, m := range j.Members {
		resp.Members = append(resp.Members, kmsg.JoinGroupResponseMember{
			MemberID: m.ID, InstanceID: m.InstanceID, ProtocolMetadata: m.Metadata,
		})
	}
	return resp, nil
}

// joinRequest copies what the group keeps: the body of the request does not last.
func joinRequest(r *Request, req *kmsg.JoinGroupRequest) *group.JoinRequest {
	j := &group.JoinRequest{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID,
		ClientID: r.ClientID, ClientHost: clientHost(r),
		SessionTimeout:   time.Duration(req.SessionTimeoutMillis) * time.Millisecond,
		RebalanceTimeout: time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond,
		ProtocolType:     req.ProtocolType,
		NeedKnownID:      r.Version >= 4, CanSkipAssignment: r.Version >= 9,
	}
	if req.RebalanceTimeoutMillis < 0 { // version 0 has none
		j.RebalanceTimeout = j.SessionTimeout
	}
	for _, p := range req.Protocols {
		j.Protocols = append(j.Protocols, group.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)})
	}
	return j
}

// clientHost is the client's address as Kafka's tools show it.
func clientHost(r *Request) string {
	if r.Conn == nil {
		return "/"
	}
	host, _, err := net.SplitHostPort(r.Conn.RemoteAddr().String())
	if err != nil {
		host = r.Conn.RemoteAddr().String()
	}
	return "/" + host
}
