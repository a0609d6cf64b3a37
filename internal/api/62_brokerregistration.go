package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// brokerRegistration registers a broker that starts. (KIP-631)
func (s *Server) brokerRegistration(ctx context.Context, _ *Request, req *kmsg.BrokerRegistrationRequest) (*kmsg.BrokerRegistrationResponse, error) {
	resp := kmsg.NewPtrBrokerRegistrationResponse()
	resp.BrokerEpoch = -1
	if req.ClusterID != s.ClusterID {
		s.Logger.Warn("a broker of another cluster wants to register", "broker", req.BrokerID, "cluster", req.ClusterID)
		resp.ErrorCode = kerr.InconsistentClusterID.Code
		return resp, nil
	}
	epoch, err := s.Brokers.RegisterBroker(ctx, registrationOf(req))
	resp.ErrorCode = code(err)
	if err == nil {
		resp.BrokerEpoch = epoch
	} else {
		s.Logger.Warn("a broker is not registered", "broker", req.BrokerID, "err", err)
	}
	return resp, nil
}

func registrationOf(req *kmsg.BrokerRegistrationRequest) controller.Registration {
	r := controller.Registration{ID: req.BrokerID, IncarnationID: uuid.UUID(req.IncarnationID), Rack: req.Rack, PreviousEpoch: req.PreviousBrokerEpoch}
	for _, l := range req.Listeners {
		r.Endpoints = append(r.Endpoints, metadata.BrokerEndpoint{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range req.Features {
		r.Features = append(r.Features, metadata.BrokerFeature{Name: f.Name, MinSupportedVersion: f.MinSupportedVersion, MaxSupportedVersion: f.MaxSupportedVersion})
	}
	for _, dir := range req.LogDirs {
		r.LogDirs = append(r.LogDirs, uuid.UUID(dir))
	}
	return r
}

// registrationRequest is the opposite of registrationOf.
func registrationRequest(r *controller.Registration, clusterID string) *kmsg.BrokerRegistrationRequest {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.BrokerID, req.ClusterID, req.IncarnationID, req.Rack, req.PreviousBrokerEpoch = r.ID, clusterID, r.IncarnationID, r.Rack, r.PreviousEpoch
	for _, e := range r.Endpoints {
		l := kmsg.NewBrokerRegistrationRequestListener()
		l.Name, l.Host, l.Port, l.SecurityProtocol = e.Name, e.Host, e.Port, e.SecurityProtocol
		req.Listeners = append(req.Listeners, l)
	}
	for _, f := range supportedFeatures {
		feature := kmsg.NewBrokerRegistrationRequestFeature()
		feature.Name, feature.MinSupportedVersion, feature.MaxSupportedVersion = f.name, f.min, f.max
		req.Features = append(req.Features, feature)
	}
	for _, dir := range r.LogDirs {
		req.LogDirs = append(req.LogDirs, dir)
	}
	return req
}
