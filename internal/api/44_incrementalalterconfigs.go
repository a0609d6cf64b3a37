package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// incrementalAlterConfigs changes single keys of resources.
func (s *Server) incrementalAlterConfigs(ctx context.Context, _ *Request, req *kmsg.IncrementalAlterConfigsRequest) (*kmsg.IncrementalAlterConfigsResponse, error) {
	asked := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r := &req.Resources[i]
		asked[i].Resource = metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
		for _, c := range r.Configs {
			asked[i].Changes = append(asked[i].Changes, controller.ConfigChange{Key: c.Name, Op: controller.ConfigOp(c.Op), Value: c.Value})
		}
	}
	s.alter(ctx, asked, req.ValidateOnly)
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for i := range req.Resources {
		answer := kmsg.NewIncrementalAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		answer.ErrorCode, answer.ErrorMessage = asked[i].answer()
		resp.Resources = append(resp.Resources, answer)
	}
	return resp, nil
}
