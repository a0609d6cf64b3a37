package api

import (
	"context"
	"encoding/binary"
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/wire"
)

const apiVersionsKey = int16(kmsg.ApiVersions)

// softwareName is what KIP-511 allows as a client's name and version.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions tells the client what is served, and remembers what the client is.
func (s *Server) apiVersions(_ context.Context, r *Request, req *kmsg.ApiVersionsRequest) (*kmsg.ApiVersionsResponse, error) {
	resp := kmsg.NewPtrApiVersionsResponse()
	if r.Version >= 3 {
		if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp, nil
		}
		if resp.ErrorCode = s.misrouted(r.Version, req); resp.ErrorCode != 0 {
			return resp, nil
		}
		r.Conn.SetSoftware(wire.Software{Name: req.ClientSoftwareName, Version: req.ClientSoftwareVersion})
	}
	for _, a := range s.apis {
		if a != nil && !a.unlisted {
			key := kmsg.NewApiVersionsResponseApiKey()
			key.ApiKey, key.MinVersion, key.MaxVersion = a.key, a.min, a.max
			resp.ApiKeys = append(resp.ApiKeys, key)
		}
	}
	s.addFeatures(resp)
	return resp, nil
}

// misrouted compares the cluster and the broker that a client believes to be connected to,
// from version 5 on, with what it did reach; 0 when they agree, or when the client has not
// yet been told of any. Both are there or neither is. (KIP-1242)
func (s *Server) misrouted(version int16, req *kmsg.ApiVersionsRequest) int16 {
	if version < 5 {
		return 0
	}
	named := req.NodeID != -1
	switch {
	case (req.ClusterID != nil) != named:
		return kerr.InvalidRequest.Code
	case named && (*req.ClusterID != s.ClusterID || req.NodeID != s.NodeID):
		return kerr.RebootstrapRequired.Code
	}
	return 0
}

// supportedFeatures are the features (KIP-584) whose levels this broker understands. What a
// cluster of Kafka's has finalized beyond them is not told: clients would use it.
var supportedFeatures = []struct {
	name     string
	min, max int16
}{
	{metadata.MetadataVersion, metadata.LevelMin, metadata.LevelCurrent},
}

func (s *Server) addFeatures(resp *kmsg.ApiVersionsResponse) {
	img := s.Metadata()
	resp.FinalizedFeaturesEpoch = max(img.Offset, 0) // Java ignores the features of a negative one
	for _, f := range supportedFeatures {
		supported := kmsg.NewApiVersionsResponseSupportedFeature()
		supported.Name, supported.MinVersion, supported.MaxVersion = f.name, f.min, f.max
		resp.SupportedFeatures = append(resp.SupportedFeatures, supported)
		if level := img.Feature(f.name); level > 0 {
			finalized := kmsg.NewApiVersionsResponseFinalizedFeature()
			finalized.Name, finalized.MinVersionLevel, finalized.MaxVersionLevel = f.name, level, level
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, finalized)
		}
	}
}

// apiVersionsTooNew answers a version that we do not know. The client reads the answer as
// version 0 and tries again with the highest version named in it (KIP-511).
func (s *Server) apiVersionsTooNew(a *api, w *wire.Response) {
	w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(kerr.UnsupportedVersion.Code))
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, 1)
	for _, v := range []int16{a.key, a.min, a.max} {
		w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(v))
	}
}
