package api

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/wire"
)

// An ActiveController is the way to the node whose controller decides. Its methods may be called concurrently.
type ActiveController interface {
	// Leads reports whether that is this node.
	Leads() bool
	// Ask sends a request to the other node, in the highest version that both have, at most max, and returns
	// its answer. Without a node that is known to decide, or when it is this one, the error is ErrNoController.
	Ask(ctx context.Context, req kmsg.Request, max int16) (kmsg.Response, error)
}

// ErrNoController says that no other node is known to be the active controller.
var ErrNoController = errors.New("no other node is known to be the controller")

const (
	// forwardMax is how long the controller is looked for, as by Kafka's brokers.
	forwardMax = time.Minute
	// forwardPause is waited for before it is looked for again.
	forwardPause = 50 * time.Millisecond
)

// sendOn sends a request on to the active controller in an envelope and returns the body of the answer. It looks
// for the controller as long as ctx lets it, at most forwardMax. ErrNoController says that this node has
// become the controller meanwhile, or that there is none.
func sendOn(ctx context.Context, active ActiveController, r *Request) (body []byte, err error) {
	req := kmsg.NewPtrEnvelopeRequest()
	req.RequestData, req.RequestPrincipal, req.ClientHostAddress = wire.AppendRequest(nil, r), anonymous, addressOf(r)
	ctx, cancel := context.WithTimeout(ctx, forwardMax)
	defer cancel()
	for !active.Leads() {
		resp, err := active.Ask(ctx, req, 0)
		if err == nil {
			switch answer := resp.(*kmsg.EnvelopeResponse); answer.ErrorCode {
			case 0:
				return wire.ParseResponse(answer.ResponseData, r)
			case kerr.NotController.Code:
			default:
				return nil, kerr.ErrorForCode(answer.ErrorCode)
			}
		}
		select {
		case <-ctx.Done():
			return nil, ErrNoController
		case <-time.After(forwardPause):
		}
	}
	return nil, ErrNoController
}

// anonymous is the principal of clients that did not log in, as Kafka's DefaultPrincipalData version 0.
var anonymous = []byte("\x00\x00\x05User\x0aANONYMOUS\x00\x00")

func addressOf(r *Request) []byte {
	if r.Conn == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(r.Conn.RemoteAddr().String())
	if err != nil {
		return nil
	}
	return at.Addr().Unmap().AsSlice()
}

// decided returns a handler that has requests decided by the active controller, where that is: by here on this node.
func (s *Server) decided(here handler) handler {
	return func(ctx context.Context, r *Request, w *wire.Response) error {
		if s.Active == nil || s.Active.Leads() {
			return here(ctx, r, w)
		}
		if err := w.Flush(); err != nil { // it takes a while
			return err
		}
		inner := *r
		inner.Body = bytes.Clone(r.Body)
		body, err := sendOn(ctx, s.Active, &inner)
		switch {
		case err == nil:
			w.Buf = append(w.Buf, body...)
		case errors.Is(err, ErrNoController):
			r.Body = inner.Body
			return here(ctx, r, w) // which decides, or says NOT_CONTROLLER
		case errors.Is(err, kerr.UnsupportedVersion): // by a controller of another release: the client is to ask for the versions again
		default:
			s.Logger.Warn("the controller refuses a request that was sent on to it", "request", kmsg.NameForKey(r.Key), "err", err)
		}
		return err
	}
}
