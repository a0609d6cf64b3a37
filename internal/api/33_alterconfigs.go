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
	refused := make([]error, len(req.Resources))
	var replace []controller.ReplaceConfigs
	for i := range req.Resources {
		asked := &req.Resources[i]
		resource := metadata.ConfigResource{Type: int8(asked.ResourceType), Name: asked.ResourceName}
		configs := make(map[string]*string, len(asked.Configs))
		refused[i] = s.checkAlterable(resource)
		for _, c := range asked.Configs {
			if _, twice := configs[c.Name]; twice {
				refused[i] = refuse(kerr.InvalidRequest, "key "+c.Name+" is there twice")
			}
			if c.Value == nil {
				refused[i] = refuse(kerr.InvalidRequest, "key "+c.Name+" has no value: leave it out to reset it")
			}
			configs[c.Name] = c.Value
		}
		if refused[i] == nil {
			replace = append(replace, controller.ReplaceConfigs{Resource: resource, Configs: configs})
		}
	}
	results, err := s.Controller.AlterConfigs(ctx, replace, req.ValidateOnly)
	next := alterResults(refused, results, err)
	resp := kmsg.NewPtrAlterConfigsResponse()
	for i := range req.Resources {
		answer := kmsg.NewAlterConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		answer.ErrorCode, answer.ErrorMessage = alterCode(int8(answer.ResourceType), next(i))
		resp.Resources = append(resp.Resources, answer)
	}
	return resp, nil
}

// checkAlterable refuses bad names, and those of other brokers, whose keys only they can
// check.
func (s *Server) checkAlterable(r metadata.ConfigResource) error {
	switch {
	case r.Type == metadata.ResourceBrokerLogger:
		return refuse(kerr.InvalidConfig, "gregor has no loggers with levels of their own")
	case r.Type == metadata.ResourceBroker && r.Name != "":
		return s.checkOwnID(r.Name)
	case r.Type == metadata.ResourceTopic && r.Name == "":
		return refuse(kerr.InvalidRequest, "there are no defaults of all topics")
	case r.Type == metadata.ResourceTopic:
		if err := topic.ValidateName(r.Name); err != nil {
			return refuse(kerr.InvalidTopicException, err.Error())
		}
	}
	return nil
}

// alterResults returns the outcome of resource i: refused here, or what the controller
// said about it; results has only those that were not refused. It is called with each i
// in order.
func alterResults(refused, results []error, err error) func(i int) error {
	return func(i int) error {
		if refused[i] != nil {
			return refused[i]
		}
		if err != nil {
			return err
		}
		result := results[0]
		results = results[1:]
		return result
	}
}

// alterCode is the code and text for the outcome of altering a resource. What is wrong
// with a broker's own keys counts as a wrong request.
func alterCode(kind int8, err error) (int16, *string) {
	c := code(err)
	if kind == metadata.ResourceBroker && c == kerr.InvalidConfig.Code {
		c = kerr.InvalidRequest.Code
	}
	return c, message(err)
}
