package api

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

func configuredCluster() []metadata.Record {
	return slices.Concat(
		[]metadata.Record{testBroker(1, false, testListener)},
		testTopic("orders", 1, testPartition(1, 1)),
		[]metadata.Record{
			testConfig(metadata.ResourceTopic, "orders", "retention.ms", "604800000"),
			testConfig(metadata.ResourceGroup, "g", "consumer.session.timeout.ms", "50000"),
			testConfig(metadata.ResourceClientMetrics, "m", "interval.ms", "1000"),
		},
	)
}

func describeOne(t *testing.T, s *Server, kind int8, name string, keys ...string) kmsg.DescribeConfigsResponseResource {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceType(kind), name, keys
	req.Resources = append(req.Resources, resource)
	return ask[kmsg.DescribeConfigsResponse](t, s, 4, req).Resources[0]
}

// topicKeys is how many settings a topic has: 37 of Kafka and 2 of gregor's own.
const topicKeys = 39

func TestDescribeConfigs(t *testing.T) {
	s := imageServer(t, "num.partitions=3", configuredCluster()...)

	topic := describeOne(t, s, metadata.ResourceTopic, "orders")
	if len(topic.Configs) != topicKeys {
		t.Errorf("topic: %d keys, want %d", len(topic.Configs), topicKeys)
	}
	retention := describeOne(t, s, metadata.ResourceTopic, "orders", "retention.ms").Configs
	if len(retention) != 1 {
		t.Fatalf("asked for one key, got %d", len(retention))
	}
	// Equal to the default, and still the topic's own.
	if c := retention[0]; *c.Value != "604800000" || c.Source != kmsg.ConfigSourceDynamicTopicConfig || c.ConfigType != kmsg.ConfigTypeLong || c.Documentation == nil {
		t.Errorf("retention.ms: got %+v", c)
	}
	if c := describeOne(t, s, metadata.ResourceBroker, "1", "num.partitions").Configs[0]; *c.Value != "3" || c.Source != kmsg.ConfigSourceStaticBrokerConfig || !c.ReadOnly || len(c.ConfigSynonyms) != 2 {
		t.Errorf("num.partitions: got %+v", c)
	}
	if c := describeOne(t, s, metadata.ResourceGroup, "g", "consumer.session.timeout.ms").Configs[0]; *c.Value != "50000" || int8(c.Source) != 8 {
		t.Errorf("consumer.session.timeout.ms: got %+v", c)
	}
	if c := describeOne(t, s, metadata.ResourceClientMetrics, "m", "interval.ms").Configs[0]; *c.Value != "1000" || int8(c.Source) != 7 {
		t.Errorf("interval.ms: got %+v", c)
	}
	if got := describeOne(t, s, metadata.ResourceBroker, ""); got.ErrorCode != 0 || len(got.Configs) != 0 {
		t.Errorf("cluster: got %+v, want no key", got)
	}
}

func TestDescribeConfigsErrors(t *testing.T) {
	s := imageServer(t, "", configuredCluster()...)
	f := func(kind int8, name string, want *kerr.Error) {
		t.Helper()
		if got := describeOne(t, s, kind, name); got.ErrorCode != want.Code || got.ErrorMessage == nil || len(got.Configs) != 0 {
			t.Errorf("%d %q: got %d, %d keys, want %v", kind, name, got.ErrorCode, len(got.Configs), want)
		}
	}
	f(metadata.ResourceTopic, "nosuch", kerr.UnknownTopicOrPartition)
	f(metadata.ResourceTopic, "a b", kerr.InvalidTopicException)
	f(metadata.ResourceBroker, "2", kerr.InvalidRequest)
	f(metadata.ResourceBroker, "x", kerr.InvalidRequest)
	f(metadata.ResourceGroup, "", kerr.InvalidRequest)
	f(3, "x", kerr.InvalidRequest)
}

func TestListConfigResources(t *testing.T) {
	s := imageServer(t, "", configuredCluster()...)
	f := func(version int16, types []int8, want ...string) {
		t.Helper()
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = types
		var got []string
		for _, r := range ask[kmsg.ListConfigResourcesResponse](t, s, version, req).ConfigResources {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("version %d, types %v (-want +got):\n%s", version, types, diff)
		}
	}
	f(0, nil, "m")
	f(1, []int8{metadata.ResourceGroup}, "g")
	f(1, nil, "orders", "1", "1", "m", "g")
	req := kmsg.NewPtrListConfigResourcesRequest()
	req.ResourceTypes = []int8{5}
	if got := ask[kmsg.ListConfigResourcesResponse](t, s, 1, req); got.ErrorCode != kerr.UnsupportedVersion.Code {
		t.Errorf("type 5: error %d, want %v", got.ErrorCode, kerr.UnsupportedVersion)
	}
}
