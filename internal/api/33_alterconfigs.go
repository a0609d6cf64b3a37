package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// alterConfigs gives each resource a new set of configurations: keys that are not sent go
// back to their default.
func (s *Server) alterConfigs(ctx context.Context, _ *Request, req *kmsg.AlterConfigsRequest) (*kmsg.AlterConfigsResponse, error) {
	asked := make([]alteration, len(req.Resources))
	for i := range req.Resources {
		r := &req.Resources[i]
		asked[i].Resource = metadata.ConfigResource{Type: int8(r.ResourceType), Name: r.ResourceName}
		asked[i].Replace = true
		for _, c := range r.Configs {
			if c.Value == nil {
				asked[i].err = refuse(kerr.InvalidRequest, "key "+c.Name+" has no value: leave it out to reset it")
			}
			asked[i].Changes = append(asked[i].Changes, controller.ConfigChange{Key: c.Name, Op: controller.ConfigSet, Value: c.Value})
		}
	}
	s.alter(ctx, asked, req.ValidateOnly)
	resp := kmsg.NewPtrAlterConfigsResponse()
	for i := range req.Resources {
		answer := kmsg.NewAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		answer.ErrorCode, answer.ErrorMessage = asked[i].answer()
		resp.Resources = append(resp.Resources, answer)
	}
	return resp, nil
}

// An alteration is a resource to alter, and why it was not.
type alteration struct {
	controller.AlterConfig
	err error
}

// alter passes what is not refused yet to the controller and notes what becomes of it.
func (s *Server) alter(ctx context.Context, asked []alteration, validateOnly bool) {
	var allowed []controller.AlterConfig
	var at []int
	for i := range asked {
		a := &asked[i]
		if a.err == nil {
			a.err = s.checkAlterable(a.Resource)
		}
		if a.err == nil {
			allowed, at = append(allowed, a.AlterConfig), append(at, i)
		}
	}
	results, err := s.Controller.AlterConfigs(ctx, allowed, validateOnly)
	for n, i := range at {
		if asked[i].err = err; err == nil { // err is of the request as a whole
			asked[i].err = results[n]
		}
	}
}

// answer is the code and text for the outcome. What is wrong with a broker's own keys counts as a
// wrong request.
func (a *alteration) answer() (int16, *string) {
	c := code(a.err)
	if a.Resource.Type == metadata.ResourceBroker && c == kerr.InvalidConfig.Code {
		c = kerr.InvalidRequest.Code
	}
	return c, message(a.err)
}

// checkAlterable refuses bad names, and those of other brokers, whose keys only they can
// check.
func (s *Server) checkAlterable(r metadata.ConfigResource) error {
	switch {
	case r.Type == metadata.ResourceBrokerLogger:
		return refuse(kerr.InvalidConfig, "gregor has no loggers whose level can be changed")
	case r.Type == metadata.ResourceBroker && r.Name != "":
		return s.checkOwnID(r.Name)
	case r.Type == metadata.ResourceTopic && r.Name == "":
		return refuse(kerr.InvalidRequest, "topics have no cluster-wide default: name a topic")
	case r.Type == metadata.ResourceTopic:
		if err := topic.ValidateName(r.Name); err != nil {
			return refuse(kerr.InvalidTopicException, err.Error())
		}
	}
	return nil
}
