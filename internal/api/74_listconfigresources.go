package api

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// listableResources are the types that ListConfigResources knows, in the order in which
// they are answered when none is asked for.
var listableResources = []int8{
	metadata.ResourceTopic, metadata.ResourceBroker, metadata.ResourceBrokerLogger,
	metadata.ResourceClientMetrics, metadata.ResourceGroup,
}

// listConfigResources lists what has configurations: every topic and broker, and the
// groups and client metrics subscriptions for which some are set (KIP-1142). Version 0
// asks for the latter only.
func (s *Server) listConfigResources(_ context.Context, r *Request, req *kmsg.ListConfigResourcesRequest) (*kmsg.ListConfigResourcesResponse, error) {
	resp := kmsg.NewPtrListConfigResourcesResponse()
	types := req.ResourceTypes
	switch {
	case r.Version == 0:
		types = []int8{metadata.ResourceClientMetrics}
	case len(types) == 0:
		types = listableResources
	}
	for _, kind := range types {
		if !slices.Contains(listableResources, kind) {
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			resp.ConfigResources = nil
			return resp, nil
		}
		for _, name := range resourceNames(s.Metadata(), kind) {
			resource := kmsg.NewListConfigResourcesResponseConfigResource()
			resource.Name, resource.Type = name, kind
			resp.ConfigResources = append(resp.ConfigResources, resource)
		}
	}
	return resp, nil
}

func resourceNames(img *metadata.Image, kind int8) []string {
	var names []string
	switch kind {
	case metadata.ResourceTopic:
		return img.TopicNames()
	case metadata.ResourceBroker, metadata.ResourceBrokerLogger:
		for _, b := range img.Brokers() {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
		return names
	}
	for r := range img.ConfigResources() {
		if r.Type == kind {
			names = append(names, r.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}
