package api

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// describeConfigs answers each resource with all its keys, or those asked for.
func (s *Server) describeConfigs(_ context.Context, r *Request, req *kmsg.DescribeConfigsRequest) (*kmsg.DescribeConfigsResponse, error) {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for i := range req.Resources {
		asked := &req.Resources[i]
		answer := kmsg.NewDescribeConfigsResponseResource()
		answer.ResourceType, answer.ResourceName = asked.ResourceType, asked.ResourceName
		entries, err := s.describeResource(int8(asked.ResourceType), asked.ResourceName)
		answer.ErrorCode, answer.ErrorMessage = code(err), message(err)
		for _, e := range entries {
			if len(asked.ConfigNames) == 0 || slices.Contains(asked.ConfigNames, e.Name) {
				answer.Configs = append(answer.Configs, describedConfig(e, req))
			}
		}
		resp.Resources = append(resp.Resources, answer)
	}
	return resp, nil
}

// describeResource lists the keys of a resource of this broker's image.
func (s *Server) describeResource(kind int8, name string) ([]config.Entry, error) {
	img, broker := s.Metadata(), s.Config()
	switch kind {
	case metadata.ResourceTopic:
		if err := topic.ValidateName(name); err != nil {
			return nil, refuse(kerr.InvalidTopicException, err.Error())
		}
		if img.Topic(name) == nil {
			return nil, refuse(kerr.UnknownTopicOrPartition, "topic "+name+" does not exist")
		}
		return broker.Topic(img.TopicConfigs(name)).Describe(), nil
	case metadata.ResourceBroker:
		if name == "" {
			return broker.DescribeDefaults(), nil
		}
		if err := s.checkOwnID(name); err != nil {
			return nil, err
		}
		return broker.Describe(), nil
	case metadata.ResourceGroup:
		if name == "" {
			return nil, refuse(kerr.InvalidRequest, "the group id is empty")
		}
		return broker.DescribeGroup(img.Configs(metadata.ConfigResource{Type: kind, Name: name})), nil
	case metadata.ResourceClientMetrics:
		if name == "" {
			return nil, refuse(kerr.InvalidRequest, "the name of the client metrics subscription is empty")
		}
		return broker.DescribeClientMetrics(img.Configs(metadata.ConfigResource{Type: kind, Name: name})), nil
	case metadata.ResourceBrokerLogger:
		if err := s.checkOwnID(name); err != nil {
			return nil, err
		}
		return nil, nil // gregor has no loggers whose level can be changed
	}
	return nil, refuse(kerr.InvalidRequest, "unknown resource type "+strconv.Itoa(int(kind)))
}

// checkOwnID refuses names of brokers other than this one.
func (s *Server) checkOwnID(name string) error {
	if id, err := strconv.Atoi(name); err != nil || id != int(s.NodeID) {
		return refuse(kerr.InvalidRequest, "the request is for broker "+strconv.Quote(name)+", this is broker "+strconv.Itoa(int(s.NodeID)))
	}
	return nil
}

func describedConfig(e config.Entry, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value = e.Name, e.Value
	c.Source, c.IsDefault = kmsg.ConfigSource(e.Source), e.Source == config.SourceDefault
	c.ReadOnly, c.IsSensitive = e.ReadOnly, e.Sensitive
	c.ConfigType = kmsg.ConfigType(e.Type)
	if req.IncludeDocumentation && e.Doc != "" {
		c.Documentation = &e.Doc
	}
	if !req.IncludeSynonyms {
		return c
	}
	for _, from := range e.Synonyms {
		synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		synonym.Name, synonym.Value, synonym.Source = from.Name, from.Value, kmsg.ConfigSource(from.Source)
		c.ConfigSynonyms = append(c.ConfigSynonyms, synonym)
	}
	return c
}
