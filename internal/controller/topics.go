package controller

import (
	"context"
	"math/rand/v2"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A TopicRef names a topic to delete, by name or, when Name is empty, by id.
type TopicRef struct {
	Name string
	ID   uuid.UUID
}

// A DeletedTopic is the answer for one TopicRef, with both names when the topic is known.
type DeletedTopic struct {
	Name string
	ID   uuid.UUID
	Err  error
}

// DeleteTopics deletes topics and returns one answer for each, in order.
func (c *Controller) DeleteTopics(ctx context.Context, topics []TopicRef) ([]DeletedTopic, error) {
	return decide(ctx, c, false, func(img *metadata.Image, _ given) ([]metadata.Record, []DeletedTopic, error) {
		return deleteTopics(img, topics)
	})
}

func deleteTopics(img *metadata.Image, topics []TopicRef) ([]metadata.Record, []DeletedTopic, error) {
	var records []metadata.Record
	results := make([]DeletedTopic, len(topics))
	count := map[uuid.UUID]int{}
	found := make([]*metadata.Topic, len(topics))
	for i, ref := range topics {
		results[i] = DeletedTopic{Name: ref.Name, ID: ref.ID}
		if found[i], results[i].Err = findTopic(img, ref); found[i] != nil {
			results[i].Name, results[i].ID = found[i].Name, found[i].ID
			count[found[i].ID]++
		}
	}
	for i, t := range found {
		switch {
		case t == nil:
		case count[t.ID] > 1 && topics[i].Name != "":
			results[i].Err = refuse(InvalidRequest, "duplicate topic")
		case count[t.ID] > 1:
			results[i].Err = refuse(InvalidRequest, "duplicate topic id")
		default:
			records = append(records, &metadata.RemoveTopicRecord{TopicID: t.ID})
		}
	}
	return records, results, nil
}

func findTopic(img *metadata.Image, ref TopicRef) (*metadata.Topic, error) {
	switch {
	case ref.Name != "" && !ref.ID.IsZero():
		return nil, refuse(InvalidRequest, "a topic is given by name or by id, not by both")
	case ref.Name == "" && ref.ID.IsZero():
		return nil, refuse(InvalidRequest, "the topic has neither a name nor an id")
	case ref.Name == "":
		if t := img.TopicByID(ref.ID); t != nil {
			return t, nil
		}
		return nil, refuse(UnknownTopicID, "no topic has this topic id")
	}
	if t := img.Topic(ref.Name); t != nil {
		return t, nil
	}
	return nil, unknownTopic(ref.Name)
}

func unknownTopic(name string) error {
	return refuse(UnknownTopicOrPartition, "topic %q does not exist", name)
}

// A PartitionsIncrease asks for Count partitions in all. Assignments, if any, has the brokers
// of each partition to add.
type PartitionsIncrease struct {
	Topic       string
	Count       int32
	Assignments [][]int32
}

// CreatePartitions adds partitions to topics and returns one error (or nil) for each, in order.
func (c *Controller) CreatePartitions(ctx context.Context, topics []PartitionsIncrease, validateOnly bool) ([]error, error) {
	return decide(ctx, c, validateOnly, func(img *metadata.Image, g given) ([]metadata.Record, []error, error) {
		return createPartitions(img, topics, g)
	})
}

func createPartitions(img *metadata.Image, topics []PartitionsIncrease, g given) ([]metadata.Record, []error, error) {
	var records []metadata.Record
	results := make([]error, len(topics))
	count := map[string]int{}
	for i := range topics {
		count[topics[i].Topic]++
	}
	place := newPlacer(img, rand.New(g.source()))
	for i, t := range topics {
		if count[t.Topic] > 1 {
			results[i] = refuse(InvalidRequest, "duplicate topic")
			continue
		}
		added, err := addPartitions(img, t, place)
		if results[i] = err; err != nil {
			continue
		}
		if records = append(records, added...); len(records) > recordsMax {
			return nil, nil, tooMany()
		}
	}
	return records, results, nil
}

func addPartitions(img *metadata.Image, increase PartitionsIncrease, place *placer) ([]metadata.Record, error) {
	t := img.Topic(increase.Topic)
	if t == nil {
		return nil, unknownTopic(increase.Topic)
	}
	have, want := len(t.Partitions), int(increase.Count)
	added, given := want-have, increase.Assignments
	switch {
	case added < 0:
		return nil, refuse(InvalidPartitions, "topic %s has %d partitions: %d would be fewer", t.Name, have, want)
	case added == 0:
		return nil, refuse(InvalidPartitions, "topic %s has %d partitions already", t.Name, have)
	case added > recordsMax:
		return nil, tooMany()
	case given != nil && len(given) != added:
		return nil, refuse(InvalidReplicaAssignment, "%d partitions are added, and replicas are assigned for %d", added, len(given))
	}
	factor := len(t.Partitions[0].Replicas)
	for _, brokers := range given {
		if err := place.checkManual(brokers, factor); err != nil {
			return nil, err
		}
	}
	if given == nil {
		var err error
		if given, err = place.choose(have, added, factor); err != nil {
			return nil, err
		}
	}
	records := make([]metadata.Record, 0, added)
	for i, brokers := range given {
		r, err := place.partition(t.ID, int32(have+i), brokers)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}
