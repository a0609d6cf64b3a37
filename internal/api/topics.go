package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// findTopic looks up a topic by name, or by id if byID is set, as requests do from version
// 10 of OffsetCommit and OffsetFetch on. The code is that of a topic that does not exist.
func findTopic(img *metadata.Image, byID bool, name string, id [16]byte) (*metadata.Topic, int16) {
	if byID {
		if t := img.TopicByID(uuid.UUID(id)); t != nil {
			return t, 0
		}
		return nil, kerr.UnknownTopicID.Code
	}
	if t := img.Topic(name); t != nil {
		return t, 0
	}
	return nil, kerr.UnknownTopicOrPartition.Code
}

func hasPartition(t *metadata.Topic, p int32) bool {
	return p >= 0 && int(p) < len(t.Partitions)
}
