package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// producedTwiceMax bounds the partitions of a Produce request that has some twice: no client is
// known that sends any, and putting such a request right takes memory for each.
const producedTwiceMax = 10_000

// produceOnce returns a valid Produce request with each topic and each partition once, with the
// record set that came last.
func produceOnce(body []byte, version int16) ([]byte, error) {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	var once merged[kmsg.ProduceRequestTopicPartition]
	topics := map[string]kmsg.ProduceRequestTopic{}
	for _, t := range req.Topics {
		name := t.Topic
		if version >= 13 {
			name = string(t.TopicID[:])
		}
		topics[name] = t
		for _, p := range t.Partitions {
			once.add(name, p.Partition, p)
		}
	}
	req.Topics = req.Topics[:0]
	for _, t := range once.topics {
		answered := topics[t.name]
		answered.Partitions = nil
		for _, p := range t.partitions {
			answered.Partitions = append(answered.Partitions, p.said)
		}
		req.Topics = append(req.Topics, answered)
	}
	return req.AppendTo(nil), nil
}
