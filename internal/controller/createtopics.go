package controller

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A NewTopic is a topic to create. Counts of -1 ask for the defaults, and go with Assignments.
type NewTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	Assignments       []Assignment
	Configs           map[string]*string // nil values are refused
}

// An Assignment places one partition on brokers; the first one leads.
type Assignment struct {
	Partition int32
	Brokers   []int32
}

// A CreatedTopic is the answer for one NewTopic. With Err set only the name counts.
type CreatedTopic struct {
	Name              string
	ID                uuid.UUID
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]string // as set, without defaults
	Err               error
}

// CreateTopics creates topics and returns one answer for each, in order. The error is set when
// the request as a whole is refused or could not be committed.
func (c *Controller) CreateTopics(ctx context.Context, topics []NewTopic, validateOnly bool) ([]CreatedTopic, error) {
	return decide(ctx, c, validateOnly, func(img *metadata.Image, g given) ([]metadata.Record, []CreatedTopic, error) {
		return createTopics(img, topics, g)
	})
}

func createTopics(img *metadata.Image, topics []NewTopic, g given) ([]metadata.Record, []CreatedTopic, error) {
	defaultPartitions, defaultFactor := g.TopicDefaults()
	if countPartitions(topics, defaultPartitions) > recordsMax {
		return nil, nil, tooMany()
	}
	var records []metadata.Record
	results := make([]CreatedTopic, len(topics))
	names := newTopicNames(topics)
	source := g.source()
	place := newPlacer(img, rand.New(source))
	for i := range topics {
		t := topics[i]
		results[i].Name = t.Name
		if err := names.check(img, t.Name); err != nil {
			results[i].Err = err
			continue
		}
		if len(t.Assignments) == 0 {
			t.Partitions = orDefault(t.Partitions, defaultPartitions)
			t.ReplicationFactor = orDefault(t.ReplicationFactor, defaultFactor)
		}
		created, result, err := createTopic(t, uuid.From(source), place, &g.Rules)
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i] = result
		names.created[topic.CollisionKey(t.Name)] = t.Name
		records = append(records, created...)
	}
	return records, results, nil
}

func orDefault[T int16 | int32](v, def T) T {
	if v == -1 {
		return def
	}
	return v
}

// countPartitions counts what a request asks for; invalid counts are zero.
func countPartitions(topics []NewTopic, defaultPartitions int32) (n int64) {
	for i := range topics {
		switch t := &topics[i]; {
		case len(t.Assignments) > 0:
			n += int64(len(t.Assignments))
		case t.Partitions == -1:
			n += int64(defaultPartitions)
		default:
			n += int64(max(t.Partitions, 0))
		}
	}
	return n
}

// topicNames checks the names of one request against each other and the Image.
type topicNames struct {
	count   map[string]int    // how often the request has a name
	created map[string]string // collision key to name, of the topics accepted so far
}

func newTopicNames(topics []NewTopic) topicNames {
	n := topicNames{count: make(map[string]int, len(topics)), created: make(map[string]string, len(topics))}
	for i := range topics {
		n.count[topics[i].Name]++
	}
	return n
}

func (n topicNames) check(img *metadata.Image, name string) error {
	switch {
	case n.count[name] > 1:
		return refuse(InvalidRequest, "duplicate topic")
	case name == topic.ClusterMetadata:
		return refuse(InvalidRequest, "topic %s is the broker's own and cannot be created by a client", name)
	case img.Topic(name) != nil:
		return refuse(TopicAlreadyExists, "topic %s already exists", name)
	}
	if err := topic.ValidateName(name); err != nil {
		return refuse(InvalidTopic, "%v", err)
	}
	other := img.CollidingTopic(name)
	if other == "" {
		other = n.created[topic.CollisionKey(name)]
	}
	if other != "" {
		return refuse(InvalidTopic, "topic %s collides with topic %s: . and _ are the same in names of metrics", name, other)
	}
	return nil
}

// createTopic decides one topic whose name is good.
func createTopic(t NewTopic, id uuid.UUID, place *placer, rules *Rules) ([]metadata.Record, CreatedTopic, error) {
	configs, err := newTopicConfigs(t, rules)
	if err != nil {
		return nil, CreatedTopic{}, err
	}
	assignments, err := assign(t, place)
	if err != nil {
		return nil, CreatedTopic{}, err
	}
	records := make([]metadata.Record, 0, 1+len(configs)+len(assignments))
	records = append(records, &metadata.TopicRecord{Name: t.Name, TopicID: id})
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		value := configs[key]
		records = append(records, &metadata.ConfigRecord{ResourceType: metadata.ResourceTopic, ResourceName: t.Name, Name: key, Value: &value})
	}
	for n, brokers := range assignments {
		r, err := place.partition(id, int32(n), brokers)
		if err != nil {
			return nil, CreatedTopic{}, err
		}
		records = append(records, r)
	}
	return records, CreatedTopic{
		Name: t.Name, ID: id, Partitions: int32(len(assignments)), ReplicationFactor: int16(len(assignments[0])), Configs: configs,
	}, nil
}

func newTopicConfigs(t NewTopic, rules *Rules) (map[string]string, error) {
	configs := make(map[string]string, len(t.Configs))
	var null []string
	for key, value := range t.Configs {
		if value == nil {
			null = append(null, key)
			continue
		}
		configs[key] = *value
	}
	if len(null) > 0 {
		slices.Sort(null)
		return nil, refuse(InvalidConfig, "configs without a value: %s", strings.Join(null, ","))
	}
	if err := rules.validate(metadata.ConfigResource{Type: metadata.ResourceTopic, Name: t.Name}, configs); err != nil {
		return nil, err
	}
	return configs, nil
}

// assign returns the brokers of each partition. Defaults are in the place of -1 already.
func assign(t NewTopic, place *placer) ([][]int32, error) {
	switch {
	case len(t.Assignments) == 0 && t.ReplicationFactor < 1:
		return nil, refuse(InvalidReplicationFactor, "replication factor %d: want at least 1, or -1 for the default", t.ReplicationFactor)
	case len(t.Assignments) == 0 && t.Partitions < 1:
		return nil, refuse(InvalidPartitions, "%d partitions: want at least 1, or -1 for the default", t.Partitions)
	case len(t.Assignments) == 0:
		return place.choose(0, int(t.Partitions), int(t.ReplicationFactor))
	case t.ReplicationFactor != -1:
		return nil, refuse(InvalidRequest, "replicas are assigned by hand: want replication factor -1, not %d", t.ReplicationFactor)
	case t.Partitions != -1:
		return nil, refuse(InvalidRequest, "replicas are assigned by hand: want -1 partitions, not %d", t.Partitions)
	}
	assignments := make([][]int32, len(t.Assignments))
	for _, a := range t.Assignments {
		switch {
		case a.Partition < 0 || int(a.Partition) >= len(assignments):
			return nil, refuse(InvalidReplicaAssignment, "the assignment has to name partitions 0, 1, 2 and so on, without a gap")
		case assignments[a.Partition] != nil:
			return nil, refuse(InvalidReplicaAssignment, "partition %d is assigned twice", a.Partition)
		}
		if err := place.checkManual(a.Brokers, len(t.Assignments[0].Brokers)); err != nil {
			return nil, err
		}
		assignments[a.Partition] = a.Brokers
	}
	return assignments, nil
}
