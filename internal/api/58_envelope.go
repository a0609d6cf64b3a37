package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/wire"
)

// envelope answers what a client asked another broker for, which sent it on to the active controller. (KIP-590)
func (s *Server) envelope(ctx context.Context, r *Request, req *kmsg.EnvelopeRequest) (*kmsg.EnvelopeResponse, error) {
	resp := kmsg.NewPtrEnvelopeResponse()
	inner, err := wire.ParseRequest(req.RequestData)
	if err != nil {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp, nil
	}
	inner.Listener, inner.Conn, inner.Received = r.Listener, r.Conn, r.Received
	a := s.find(inner.Key)
	switch {
	case a == nil || !a.forwarded:
		resp.ErrorCode = kerr.InvalidRequest.Code
	case inner.Version < a.min || inner.Version > a.max:
		resp.ErrorCode = kerr.UnsupportedVersion.Code
	case s.Active != nil && !s.Active.Leads():
		resp.ErrorCode = kerr.NotController.Code
	default:
		resp.ResponseData, err = s.answerOf(ctx, a, inner)
	}
	return resp, err
}

// answerOf handles a request whose answer goes into an envelope.
func (s *Server) answerOf(ctx context.Context, a *api, r *Request) ([]byte, error) {
	w := wire.Response{Buf: wire.AppendResponseHeader(nil, r)}
	a.stats.versions[r.Version].Add(1)
	err := a.handle(ctx, r, &w)
	return w.Buf, err
}
