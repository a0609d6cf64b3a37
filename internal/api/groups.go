package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// groupOperations is what everybody may do with a group without an authorizer: read,
// delete, describe, describe-configs, alter-configs.
const groupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11

// appendCodes says what a group's client is told when the log of __consumer_offsets
// refuses a record. It is to look for the coordinator again or to try later, not to
// believe that its own request was wrong.
var appendCodes = map[int16]*kerr.Error{
	kerr.UnknownTopicOrPartition.Code:      kerr.CoordinatorNotAvailable,
	kerr.NotEnoughReplicas.Code:            kerr.CoordinatorNotAvailable,
	kerr.NotEnoughReplicasAfterAppend.Code: kerr.CoordinatorNotAvailable,
	kerr.RequestTimedOut.Code:              kerr.CoordinatorNotAvailable,
	kerr.NotLeaderForPartition.Code:        kerr.NotCoordinator,
	kerr.FencedLeaderEpoch.Code:            kerr.NotCoordinator,
	kerr.KafkaStorageError.Code:            kerr.NotCoordinator,
	kerr.MessageTooLarge.Code:              kerr.UnknownServerError,
	kerr.RecordListTooLarge.Code:           kerr.UnknownServerError,
}

// groupCode is the Kafka error code of an error of the group coordinator.
func groupCode(err error) int16 {
	c := code(err)
	var failed *group.AppendError
	if errors.As(err, &failed) {
		if told := appendCodes[c]; told != nil {
			return told.Code
		}
	}
	return c
}

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
