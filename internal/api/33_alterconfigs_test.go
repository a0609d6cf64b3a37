package api

import (
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// alter changes keys of one resource incrementally; each change is key, op, value.
func alter(t *testing.T, s *Server, kind int8, name string, want int16, changes ...string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceType(kind), name
	for i := 0; i < len(changes); i += 3 {
		op, err := strconv.Atoi(changes[i+1])
		if err != nil {
			t.Fatal(err)
		}
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = changes[i], kmsg.IncrementalAlterConfigOp(op), &changes[i+2]
		resource.Configs = append(resource.Configs, c)
	}
	req.Resources = append(req.Resources, resource)
	got := ask[kmsg.IncrementalAlterConfigsResponse](t, s, 1, req).Resources[0]
	if got.ErrorCode != want || (got.ErrorMessage == nil) != (want == 0) {
		t.Errorf("alter %d %q %v: error %d %s, want %d", kind, name, changes, got.ErrorCode, textOf(got.ErrorMessage), want)
	}
}

func topicConfigs(t *testing.T, s *Server, name string, want map[string]string) {
	t.Helper()
	got := maps.Clone(s.Metadata().TopicConfigs(name))
	if got == nil {
		got = map[string]string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestIncrementalAlterConfigs(t *testing.T) {
	s := cluster(t)
	createTopic(t, s, newTestTopic("t", 1, "retention.ms", "1000"), 0)
	const kind = metadata.ResourceTopic
	alter(t, s, kind, "t", 0, "segment.ms", "0", "5000", "retention.ms", "1", "")
	topicConfigs(t, s, "t", map[string]string{"segment.ms": "5000"})
	alter(t, s, kind, "t", 0, "cleanup.policy", "2", "compact")
	topicConfigs(t, s, "t", map[string]string{"segment.ms": "5000", "cleanup.policy": "delete,compact"})
	alter(t, s, kind, "t", 0, "cleanup.policy", "2", "compact")
	alter(t, s, kind, "t", 0, "cleanup.policy", "3", "delete")
	topicConfigs(t, s, "t", map[string]string{"segment.ms": "5000", "cleanup.policy": "compact"})

	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "segment.ms", "0", "0")     // KAFKA-6637
	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "retention.ms", "0", "abc") // KAFKA-7781
	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "retention.ms", "0", "-2")  // KAFKA-7781
	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "no.such.key", "0", "1")
	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "segment.ms", "2", "7")
	alter(t, s, kind, "t", kerr.InvalidRequest.Code, "segment.ms", "9", "7")
	alter(t, s, kind, "t", kerr.InvalidRequest.Code, "segment.ms", "0", "7", "segment.ms", "1", "")
	alter(t, s, kind, "t", kerr.InvalidConfig.Code, "retention.bytes", "0", "10", "segment.ms", "0", "0")
	alter(t, s, kind, "nosuch", kerr.UnknownTopicOrPartition.Code, "segment.ms", "0", "7")
	alter(t, s, kind, "a/b", kerr.InvalidTopicException.Code, "segment.ms", "0", "7")
	alter(t, s, kind, "", kerr.InvalidRequest.Code, "segment.ms", "0", "7")
	alter(t, s, 3, "t", kerr.InvalidRequest.Code, "segment.ms", "0", "7")
	alter(t, s, kind, "t", 0, "retention.bytes", "0", "10") // KAFKA-4092: below segment.bytes
	topicConfigs(t, s, "t", map[string]string{"segment.ms": "5000", "cleanup.policy": "compact", "retention.bytes": "10"})
}

func TestAlterBrokerConfigs(t *testing.T) {
	s := cluster(t)
	const kind = metadata.ResourceBroker
	alter(t, s, kind, "", 0, "log.retention.ms", "0", "7000")
	alter(t, s, kind, "1", 0, "log.retention.ms", "0", "8000")
	if c := describeOne(t, s, kind, "1", "log.retention.ms").Configs[0]; *c.Value != "8000" || c.Source != kmsg.ConfigSourceDynamicBrokerConfig {
		t.Errorf("log.retention.ms: got %+v, want 8000 of the broker", c)
	}
	if c := describeOne(t, s, kind, "", "log.retention.ms").Configs[0]; *c.Value != "7000" || c.Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig {
		t.Errorf("log.retention.ms: got %+v, want 7000 of the cluster", c)
	}
	alter(t, s, kind, "1", kerr.InvalidRequest.Code, "log.retention.ms", "0", "abc")
	alter(t, s, kind, "1", kerr.InvalidRequest.Code, "num.partitions", "0", "3")
	alter(t, s, kind, "", kerr.InvalidRequest.Code, "listeners", "0", "PLAINTEXT://:9092")
	alter(t, s, kind, "2", kerr.InvalidRequest.Code, "log.retention.ms", "0", "1")
	alter(t, s, metadata.ResourceBrokerLogger, "1", kerr.InvalidConfig.Code, "root", "0", "DEBUG")
}

func TestAlterConfigsReplaces(t *testing.T) {
	s := cluster(t)
	createTopic(t, s, newTestTopic("t", 1, "retention.ms", "1000", "segment.ms", "5000"), 0)
	f := func(validateOnly bool, want int16, pairs ...string) {
		t.Helper()
		req := kmsg.NewPtrAlterConfigsRequest()
		req.ValidateOnly = validateOnly
		resource := kmsg.NewAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceType(metadata.ResourceTopic), "t"
		for i := 0; i < len(pairs); i += 2 {
			resource.Configs = append(resource.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: pairs[i], Value: &pairs[i+1]})
		}
		req.Resources = append(req.Resources, resource)
		if got := ask[kmsg.AlterConfigsResponse](t, s, 2, req).Resources[0]; got.ErrorCode != want {
			t.Errorf("%v: error %d %s, want %d", pairs, got.ErrorCode, textOf(got.ErrorMessage), want)
		}
	}
	before := map[string]string{"retention.ms": "1000", "segment.ms": "5000"}
	f(true, 0, "segment.ms", "6000")
	f(false, kerr.InvalidConfig.Code, "segment.ms", "0")
	f(false, kerr.InvalidRequest.Code, "segment.ms", "1", "segment.ms", "2")
	topicConfigs(t, s, "t", before)
	f(false, 0, "segment.ms", "6000")
	topicConfigs(t, s, "t", map[string]string{"segment.ms": "6000"})
	f(false, 0)
	topicConfigs(t, s, "t", map[string]string{})
}

// What a tool reads, it may write back.
func TestDescribeAlterRoundTrip(t *testing.T) {
	s := cluster(t, "log.retention.hours=5")
	createTopic(t, s, newTestTopic("t", 1), 0)
	req := kmsg.NewPtrAlterConfigsRequest()
	resource := kmsg.NewAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceType(metadata.ResourceTopic), "t"
	for _, c := range describeOne(t, s, metadata.ResourceTopic, "t").Configs {
		resource.Configs = append(resource.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: c.Name, Value: c.Value})
	}
	req.Resources = append(req.Resources, resource)
	if got := ask[kmsg.AlterConfigsResponse](t, s, 2, req).Resources[0]; got.ErrorCode != 0 {
		t.Errorf("error %d %s", got.ErrorCode, textOf(got.ErrorMessage))
	}
}
