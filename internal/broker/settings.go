package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// settings is the configuration as it is now: the static one with the dynamic values of
// the metadata laid over it.
type settings struct {
	nodeID  int32
	current atomic.Pointer[config.Broker]
	logger  *slog.Logger
}

func newSettings(static *config.Broker, nodeID int32, logger *slog.Logger) *settings {
	s := &settings{nodeID: nodeID, logger: logger}
	s.current.Store(static)
	return s
}

func (s *settings) now() *config.Broker { return s.current.Load() }

// clusterResource and nodeResource hold the dynamic broker configs.
var clusterResource = metadata.ConfigResource{Type: metadata.ResourceBroker}

func (s *settings) nodeResource() metadata.ConfigResource {
	return metadata.ConfigResource{Type: metadata.ResourceBroker, Name: strconv.Itoa(int(s.nodeID))}
}

// load takes over the dynamic values of an image.
func (s *settings) load(img *metadata.Image) {
	next, refused := s.now().With(img.Configs(clusterResource), img.Configs(s.nodeResource()))
	for _, err := range refused {
		s.logger.Warn("a dynamic config is left out", "err", err)
	}
	s.current.Store(next)
}

// concerns reports whether a changed resource is one of the broker's own.
func (s *settings) concerns(r metadata.ConfigResource) bool {
	return r == clusterResource || r == s.nodeResource()
}

// logConfig is what a topic's logs are run with.
func (s *settings) logConfig(img *metadata.Image, topicName string) commitlog.Config {
	return logdir.LogConfig(s.now().Topic(img.TopicConfigs(topicName)))
}

// validate checks the whole set of configs that a resource would have.
func (s *settings) validate(r metadata.ConfigResource, configs map[string]string) error {
	switch r.Type {
	case metadata.ResourceTopic:
		return s.now().ValidateTopic(configs)
	case metadata.ResourceBroker:
		return s.now().ValidateDynamic(configs, r.Name != "")
	case metadata.ResourceGroup:
		return s.now().ValidateGroup(configs)
	case metadata.ResourceClientMetrics:
		return subscriptionRefusal(config.ValidateClientMetrics(configs))
	}
	return fmt.Errorf("configs of resource type %d cannot be set", r.Type)
}

// subscriptionRefusal gives the mistakes that Kafka does not count as INVALID_CONFIG their
// own code.
func subscriptionRefusal(err error) error {
	if s := (*config.SubscriptionError)(nil); errors.As(err, &s) {
		return &controller.Error{Kind: controller.InvalidRequest, Message: s.Error()}
	}
	return err
}

// listConfig reports whether a key of a resource is a list, and its value where none is set.
func (s *settings) listConfig(r metadata.ConfigResource, key string) (string, bool) {
	scopes := map[int8]config.Scope{
		metadata.ResourceTopic: config.ScopeTopic, metadata.ResourceBroker: config.ScopeBroker,
		metadata.ResourceGroup: config.ScopeGroup, metadata.ResourceClientMetrics: config.ScopeClientMetrics,
	}
	scope, ok := scopes[r.Type]
	if !ok {
		return "", false
	}
	return s.now().ListDefault(scope, key)
}

func (s *settings) topicDefaults() (int32, int16) {
	c := s.now()
	return int32(c.Int("num.partitions")), int16(c.Int("default.replication.factor"))
}
