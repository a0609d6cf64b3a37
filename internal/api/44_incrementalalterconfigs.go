package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// incrementalAlterConfigs sets, resets, extends or shortens single keys (KIP-339). The
// changes of one resource happen together or not at all.
func (s *Server) incrementalAlterConfigs(ctx context.Context, _ *Request, req *kmsg.IncrementalAlterConfigsRequest) (*kmsg.IncrementalAlterConfigsResponse, error) {
	refused := make([]error, len(req.Resources))
	var alter []controller.AlterConfig
	for i := range req.Resources {
		asked := &req.Resources[i]
		resource := metadata.ConfigResource{Type: int8(asked.ResourceType), Name: asked.ResourceName}
		if refused[i] = s.checkAlterable(resource); refused[i] != nil {
			continue
		}
		changes := make([]controller.ConfigChange, len(asked.Configs))
		for n, c := range asked.Configs {
			changes[n] = controller.ConfigChange{Key: c.Name, Op: controller.ConfigOp(c.Op), Value: c.Value}
		}
		alter = append(alter, controller.AlterConfig{Resource: resource, Changes: changes})
	}
	results, err := s.Controller.IncrementalAlterConfigs(ctx, alter, req.ValidateOnly)
	next := alterResults(refused, results, err)
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for i := range req.Resources {
		answer := kmsg.NewIncrementalAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		answer.ErrorCode, answer.ErrorMessage = alterCode(int8(answer.ResourceType), next(i))
		resp.Resources = append(resp.Resources, answer)
	}
	return resp, nil
}
