package api

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/vfs"
)

// A refusal is an error of this package with a Kafka code of its own.
type refusal struct {
	err *kerr.Error
	msg string
}

func (r *refusal) Error() string { return r.msg }
func (r *refusal) Unwrap() error { return r.err }

// refuse returns an error whose code is err's and whose text is msg.
func refuse(err *kerr.Error, msg string) error { return &refusal{err, msg} }

// codes maps the errors of the packages below to Kafka's, in order: the first match counts.
//
// inGroup is what a group's client is told when the log of __consumer_offsets refuses a record
// with the error, where that is something else: it is to look for the coordinator again or to
// try later, not to believe that its own request was wrong.
var codes = []struct {
	err           error
	code, inGroup *kerr.Error
}{
	{context.DeadlineExceeded, kerr.RequestTimedOut, kerr.CoordinatorNotAvailable},
	{context.Canceled, kerr.RequestTimedOut, kerr.CoordinatorNotAvailable},

	{replica.ErrUnknownTopicOrPartition, kerr.UnknownTopicOrPartition, kerr.CoordinatorNotAvailable},
	{replica.ErrUnknownTopicID, kerr.UnknownTopicID, nil},
	{replica.ErrInconsistentTopicID, kerr.InconsistentTopicID, nil},
	{replica.ErrNotLeaderOrFollower, kerr.NotLeaderForPartition, kerr.NotCoordinator},
	{replica.ErrOffline, kerr.KafkaStorageError, kerr.NotCoordinator},
	{replica.ErrFencedLeaderEpoch, kerr.FencedLeaderEpoch, kerr.NotCoordinator},
	{replica.ErrUnknownLeaderEpoch, kerr.UnknownLeaderEpoch, nil},
	{replica.ErrOffsetNotAvailable, kerr.OffsetNotAvailable, nil},
	{replica.ErrNotEnoughReplicas, kerr.NotEnoughReplicas, kerr.CoordinatorNotAvailable},
	{replica.ErrNotEnoughReplicasAfterAppend, kerr.NotEnoughReplicasAfterAppend, kerr.CoordinatorNotAvailable},
	{replica.ErrTimedOut, kerr.RequestTimedOut, kerr.CoordinatorNotAvailable},
	{replica.ErrPolicyViolation, kerr.PolicyViolation, nil},
	{replica.ErrSessionNotFound, kerr.FetchSessionIDNotFound, nil},
	{replica.ErrSessionEpoch, kerr.InvalidFetchSessionEpoch, nil},
	{replica.ErrSessionTopicID, kerr.FetchSessionTopicIDError, nil},

	{coordinator.ErrNotCoordinator, kerr.NotCoordinator, nil},
	{coordinator.ErrLoading, kerr.CoordinatorLoadInProgress, nil},
	{coordinator.ErrClosed, kerr.CoordinatorNotAvailable, nil},
	{group.ErrCoordinatorNotAvailable, kerr.CoordinatorNotAvailable, nil},
	{group.ErrUnknownMemberID, kerr.UnknownMemberID, nil},
	{group.ErrFencedInstanceID, kerr.FencedInstanceID, nil},
	{group.ErrRebalanceInProgress, kerr.RebalanceInProgress, nil},
	{group.ErrIllegalGeneration, kerr.IllegalGeneration, nil},
	{group.ErrInconsistentGroupProtocol, kerr.InconsistentGroupProtocol, nil},
	{group.ErrMemberIDRequired, kerr.MemberIDRequired, nil},
	{group.ErrGroupMaxSizeReached, kerr.GroupMaxSizeReached, nil},
	{group.ErrInvalidSessionTimeout, kerr.InvalidSessionTimeout, nil},
	{group.ErrInvalidGroupID, kerr.InvalidGroupID, nil},
	{group.ErrGroupIDNotFound, kerr.GroupIDNotFound, nil},
	{group.ErrNonEmptyGroup, kerr.NonEmptyGroup, nil},
	{group.ErrGroupSubscribedToTopic, kerr.GroupSubscribedToTopic, nil},
	{group.ErrUnstableOffsetCommit, kerr.UnstableOffsetCommit, nil},
	{group.ErrOffsetMetadataTooLarge, kerr.OffsetMetadataTooLarge, nil},

	{commitlog.ErrOffsetOutOfRange, kerr.OffsetOutOfRange, nil},
	{commitlog.ErrRecordListTooLarge, kerr.RecordListTooLarge, kerr.UnknownServerError},
	{commitlog.ErrOutOfOrderSequence, kerr.OutOfOrderSequenceNumber, nil},
	{commitlog.ErrInvalidProducerEpoch, kerr.InvalidProducerEpoch, nil},
	{commitlog.ErrInvalidTxnState, kerr.InvalidTxnState, nil},
	{commitlog.ErrTransactionCoordinatorFenced, kerr.TransactionCoordinatorFenced, nil},
	{commitlog.ErrStorage, kerr.KafkaStorageError, kerr.NotCoordinator},

	{record.ErrUnsupportedForFormat, kerr.UnsupportedForMessageFormat, nil},
	{logdir.ErrUnknownPartition, kerr.ReplicaNotAvailable, nil},
	{logdir.ErrMayExist, kerr.KafkaStorageError, kerr.NotCoordinator},
	{logdir.ErrNoDirectory, kerr.LogDirNotFound, nil},
	{logdir.ErrCordoned, kerr.InvalidReplicaAssignment, nil},
	{logdir.ErrNameTooLong, kerr.InvalidTopicException, nil},
	{logdir.ErrClosed, kerr.KafkaStorageError, kerr.NotCoordinator},

	{record.ErrTooLarge, kerr.MessageTooLarge, kerr.UnknownServerError},
	{record.ErrUnsupportedCompression, kerr.UnsupportedCompressionType, nil},
	{record.ErrInvalidTimestamp, kerr.InvalidTimestamp, nil},
	{record.ErrInvalidRecord, kerr.InvalidRecord, nil},
	{record.ErrDecompressedTooLarge, kerr.InvalidRecord, nil},
	{record.ErrCorrupt, kerr.CorruptMessage, nil},
	{record.ErrShort, kerr.CorruptMessage, nil},
}

// byName has Kafka's errors by their names, which the kinds of the controller's refusals are.
var byName = func() map[string]*kerr.Error {
	names := map[string]*kerr.Error{}
	for code := range int16(math.MaxUint8) {
		if k := kerr.TypedErrorForCode(code); k != nil && k != kerr.UnknownServerError {
			names[k.Message] = k
		}
	}
	return names
}()

// code returns the Kafka error code of err; 0 for nil. It is the only way from Go errors
// to codes. What it does not know is UNKNOWN_SERVER_ERROR, which clients take badly.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	k, _ := kafkaErrors(err)
	return k.Code
}

// groupCode is the code of an error of the group coordinator.
func groupCode(err error) int16 {
	if failed := (*group.AppendError)(nil); !errors.As(err, &failed) {
		return code(err)
	}
	_, k := kafkaErrors(err)
	return k.Code
}

// kafkaErrors returns Kafka's error for err, and what it is when a coordinator's log says it.
func kafkaErrors(err error) (k, inGroup *kerr.Error) {
	if errors.As(err, &k) {
		return k, k
	}
	if k, ok := byName[string(controller.KindOf(err))]; ok {
		return k, k
	}
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code, cmp.Or(codes[i].inGroup, codes[i].code)
		}
	}
	if vfs.FaultOf(err) > vfs.ValueFault { // a read that failed, or found no descriptor
		return kerr.KafkaStorageError, kerr.NotCoordinator
	}
	return kerr.UnknownServerError, kerr.UnknownServerError
}

// message returns the text for the ErrorMessage field of an answer; nil for no error.
func message(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}
