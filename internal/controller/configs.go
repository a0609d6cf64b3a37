package controller

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A ConfigOp says what to do with one key.
type ConfigOp int8

// The operations of IncrementalAlterConfigs, with Kafka's numbers.
const (
	ConfigSet      ConfigOp = 0
	ConfigDelete   ConfigOp = 1 // back to the default
	ConfigAppend   ConfigOp = 2 // of items to a list, those that are not there
	ConfigSubtract ConfigOp = 3 // of items from a list
)

// A ConfigChange changes one key.
type ConfigChange struct {
	Key   string
	Op    ConfigOp
	Value *string // not for ConfigDelete
}

// An AlterConfig changes keys of one resource. With Replace those that are not named go back to
// their default (AlterConfigs of old), else they stay (IncrementalAlterConfigs).
type AlterConfig struct {
	Resource metadata.ConfigResource
	Replace  bool
	Changes  []ConfigChange
}

// AlterConfigs changes configurations and returns one error (or nil) for each resource, in order.
// The changes of one resource happen together or not at all.
func (c *Controller) AlterConfigs(ctx context.Context, resources []AlterConfig, validateOnly bool) ([]error, error) {
	return decide(ctx, c, validateOnly, func(img *metadata.Image, g given) ([]metadata.Record, []error, error) {
		return alterConfigs(img, resources, g)
	})
}

func alterConfigs(img *metadata.Image, resources []AlterConfig, g given) ([]metadata.Record, []error, error) {
	var records []metadata.Record
	results := make([]error, len(resources))
	count := make(map[metadata.ConfigResource]int, len(resources))
	for _, r := range resources {
		count[r.Resource]++
	}
	for i, r := range resources {
		if count[r.Resource] > 1 {
			results[i] = refuse(InvalidRequest, "duplicate resource")
			continue
		}
		changed, err := alterConfig(img, r, &g.Rules)
		results[i] = err
		records = append(records, changed...)
	}
	return records, results, nil
}

// validate refuses configs as INVALID_CONFIG, unless ValidateConfigs knows a better kind.
func (o *Rules) validate(r metadata.ConfigResource, configs map[string]string) error {
	err := o.ValidateConfigs(r, configs)
	if err == nil || KindOf(err) != "" {
		return err
	}
	return refuse(InvalidConfig, "%v", err)
}

func alterConfig(img *metadata.Image, r AlterConfig, rules *Rules) ([]metadata.Record, error) {
	if err := checkResource(img, r.Resource); err != nil {
		return nil, err
	}
	before := img.Configs(r.Resource)
	after, touched := map[string]string{}, map[string]bool{}
	if !r.Replace {
		maps.Copy(after, before)
	}
	for _, change := range r.Changes {
		if touched[change.Key] {
			return nil, refuse(InvalidRequest, "duplicate key %s", change.Key)
		}
		touched[change.Key] = true
		if err := applyChange(after, r.Resource, change, rules); err != nil {
			return nil, err
		}
	}
	if err := rules.validate(r.Resource, after); err != nil {
		return nil, err
	}
	if r.Replace {
		for key := range before {
			touched[key] = true
		}
	}
	return configRecords(r.Resource, before, after, touched), nil
}

// applyChange changes one key of after.
func applyChange(after map[string]string, r metadata.ConfigResource, c ConfigChange, rules *Rules) error {
	switch {
	case c.Op == ConfigDelete:
		delete(after, c.Key)
		return nil
	case c.Op < ConfigSet || c.Op > ConfigSubtract:
		return refuse(InvalidRequest, "operation %d on key %s: want 0 (set), 1 (delete), 2 (append) or 3 (subtract)", c.Op, c.Key)
	case c.Value == nil:
		return refuse(InvalidRequest, "key %s has no value: delete it to reset it", c.Key)
	case c.Op == ConfigSet:
		after[c.Key] = *c.Value
		return nil
	}
	current, isList := rules.ListConfig(r, c.Key)
	if !isList {
		return refuse(InvalidConfig, "key %s is not a list: it can be set or deleted, nothing else", c.Key)
	}
	if set, ok := after[c.Key]; ok {
		current = set
	}
	items := splitList(current)
	for _, item := range splitList(*c.Value) {
		at := slices.Index(items, item)
		switch {
		case c.Op == ConfigAppend && at < 0:
			items = append(items, item)
		case c.Op == ConfigSubtract && at >= 0:
			items = slices.Delete(items, at, at+1)
		}
	}
	after[c.Key] = strings.Join(items, ",")
	return nil
}

// splitList splits a value of list type; the empty string is the empty list.
func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// configRecords writes the touched keys, also those that keep their value: setting a key again
// makes brokers read again what it points to (KAFKA-14136).
func configRecords(r metadata.ConfigResource, before, after map[string]string, touched map[string]bool) []metadata.Record {
	var records []metadata.Record
	for _, key := range slices.Sorted(maps.Keys(touched)) {
		record := &metadata.ConfigRecord{ResourceType: r.Type, ResourceName: r.Name, Name: key}
		if value, ok := after[key]; ok {
			record.Value = &value
		} else if _, was := before[key]; !was {
			continue
		}
		records = append(records, record)
	}
	return records
}

// checkResource refuses resources that do not exist.
func checkResource(img *metadata.Image, r metadata.ConfigResource) error {
	switch r.Type {
	case metadata.ResourceTopic:
		if img.Topic(r.Name) == nil {
			return unknownTopic(r.Name)
		}
	case metadata.ResourceBroker:
		if r.Name == "" {
			return nil
		}
		id, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil {
			return refuse(InvalidRequest, "broker %q: want the number of a broker, or nothing for all of them", r.Name)
		}
		if img.Broker(int32(id)) == nil {
			return refuse(BrokerIDNotRegistered, "broker %d is not registered", id)
		}
	case metadata.ResourceClientMetrics, metadata.ResourceGroup:
		if r.Name == "" {
			return refuse(InvalidRequest, "resource type %d has no cluster-wide default: name a resource", r.Type)
		}
	default:
		return refuse(InvalidRequest, "resources of type %d have no configs", r.Type)
	}
	return nil
}
