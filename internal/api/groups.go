package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
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
