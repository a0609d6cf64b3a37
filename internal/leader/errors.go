package leader

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
)

// ErrMalformed is an answer that makes no sense.
var ErrMalformed = errors.New("malformed answer")

// errs has what a follower can do something about. What is missing stays a *kerr.Error.
var errs = map[int16]error{
	kerr.OffsetOutOfRange.Code:         commitlog.ErrOffsetOutOfRange,
	kerr.UnknownTopicOrPartition.Code:  replica.ErrUnknownTopicOrPartition,
	kerr.UnknownTopicID.Code:           replica.ErrUnknownTopicID,
	kerr.InconsistentTopicID.Code:      replica.ErrInconsistentTopicID,
	kerr.NotLeaderForPartition.Code:    replica.ErrNotLeaderOrFollower,
	kerr.FencedLeaderEpoch.Code:        replica.ErrFencedLeaderEpoch,
	kerr.UnknownLeaderEpoch.Code:       replica.ErrUnknownLeaderEpoch,
	kerr.FetchSessionIDNotFound.Code:   replica.ErrSessionNotFound,
	kerr.InvalidFetchSessionEpoch.Code: replica.ErrSessionEpoch,
	kerr.FetchSessionTopicIDError.Code: replica.ErrSessionTopicID,
}
