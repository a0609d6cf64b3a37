package api

import (
	"context"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/record"
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
var codes = []struct {
	err  error
	code *kerr.Error
}{
	{context.DeadlineExceeded, kerr.RequestTimedOut},
	{context.Canceled, kerr.RequestTimedOut},

	{replica.ErrUnknownTopicOrPartition, kerr.UnknownTopicOrPartition},
	{replica.ErrUnknownTopicID, kerr.UnknownTopicID},
	{replica.ErrInconsistentTopicID, kerr.InconsistentTopicID},
	{replica.ErrNotLeaderOrFollower, kerr.NotLeaderForPartition},
	{replica.ErrOffline, kerr.KafkaStorageError},
	{replica.ErrFencedLeaderEpoch, kerr.FencedLeaderEpoch},
	{replica.ErrUnknownLeaderEpoch, kerr.UnknownLeaderEpoch},
	{replica.ErrOffsetNotAvailable, kerr.OffsetNotAvailable},
	{replica.ErrNotEnoughReplicas, kerr.NotEnoughReplicas},
	{replica.ErrNotEnoughReplicasAfterAppend, kerr.NotEnoughReplicasAfterAppend},
	{replica.ErrTimedOut, kerr.RequestTimedOut},
	{replica.ErrPolicyViolation, kerr.PolicyViolation},
	{replica.ErrSessionNotFound, kerr.FetchSessionIDNotFound},
	{replica.ErrSessionEpoch, kerr.InvalidFetchSessionEpoch},
	{replica.ErrSessionTopicID, kerr.FetchSessionTopicIDError},

	{commitlog.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
	{commitlog.ErrRecordListTooLarge, kerr.RecordListTooLarge},
	{commitlog.ErrOutOfOrderSequence, kerr.OutOfOrderSequenceNumber},
	{commitlog.ErrInvalidProducerEpoch, kerr.InvalidProducerEpoch},
	{commitlog.ErrInvalidTxnState, kerr.InvalidTxnState},
	{commitlog.ErrTransactionCoordinatorFenced, kerr.TransactionCoordinatorFenced},
	{commitlog.ErrStorage, kerr.KafkaStorageError},

	{record.ErrUnsupportedForFormat, kerr.UnsupportedForMessageFormat},
	{logdir.ErrUnknownPartition, kerr.ReplicaNotAvailable},
	{logdir.ErrMayExist, kerr.KafkaStorageError},
	{logdir.ErrNoDirectory, kerr.LogDirNotFound},
	{logdir.ErrCordoned, kerr.InvalidReplicaAssignment},
	{logdir.ErrNameTooLong, kerr.InvalidTopicException},
	{logdir.ErrClosed, kerr.KafkaStorageError},

	{record.ErrTooLarge, kerr.MessageTooLarge},
	{record.ErrUnsupportedCompression, kerr.UnsupportedCompressionType},
	{record.ErrInvalidTimestamp, kerr.InvalidTimestamp},
	{record.ErrInvalidRecord, kerr.InvalidRecord},
	{record.ErrDecompressedTooLarge, kerr.InvalidRecord},
	{record.ErrCorrupt, kerr.CorruptMessage},
	{record.ErrShort, kerr.CorruptMessage},
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
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Code
	}
	if k, ok := byName[string(controller.KindOf(err))]; ok {
		return k.Code
	}
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code.Code
		}
	}
	if vfs.FaultOf(err) > vfs.ValueFault { // a read that failed, or found no descriptor
		return kerr.KafkaStorageError.Code
	}
	return kerr.UnknownServerError.Code
}

// message returns the text for the ErrorMessage field of an answer; nil for no error.
func message(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}
