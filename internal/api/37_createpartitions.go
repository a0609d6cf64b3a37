package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
)

// createPartitions adds partitions to topics. A topic that is named twice is refused once.
func (s *Server) createPartitions(ctx context.Context, _ *Request, req *kmsg.CreatePartitionsRequest) (*kmsg.CreatePartitionsResponse, error) {
	ctx, cancel := within(ctx, req.TimeoutMillis)
	defer cancel()
	increases := make([]controller.PartitionsIncrease, len(req.Topics))
	for i, t := range req.Topics {
		increases[i] = controller.PartitionsIncrease{Topic: t.Topic, Count: t.Count}
		if t.Assignment != nil {
			increases[i].Assignments = make([][]int32, len(t.Assignment))
		}
		for n, a := range t.Assignment {
			increases[i].Assignments[n] = a.Replicas
		}
	}
	results, err := s.Controller.CreatePartitions(ctx, increases, req.ValidateOnly)
	resp := kmsg.NewPtrCreatePartitionsResponse()
	seen := make(map[string]bool, len(increases))
	for i := range increases {
		if seen[increases[i].Topic] {
			continue
		}
		seen[increases[i].Topic] = true
		topicErr := err // of the request as a whole
		if err == nil {
			topicErr = results[i]
		}
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = increases[i].Topic, code(topicErr), message(topicErr)
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}
