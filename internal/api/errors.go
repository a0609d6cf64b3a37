package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/controller"
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

	{&controller.Error{Kind: controller.UnknownTopicOrPartition}, kerr.UnknownTopicOrPartition},
	{&controller.Error{Kind: controller.InvalidTopic}, kerr.InvalidTopicException},
	{&controller.Error{Kind: controller.TopicAlreadyExists}, kerr.TopicAlreadyExists},
	{&controller.Error{Kind: controller.InvalidPartitions}, kerr.InvalidPartitions},
	{&controller.Error{Kind: controller.InvalidReplicationFactor}, kerr.InvalidReplicationFactor},
	{&controller.Error{Kind: controller.InvalidReplicaAssignment}, kerr.InvalidReplicaAssignment},
	{&controller.Error{Kind: controller.InvalidConfig}, kerr.InvalidConfig},
	{&controller.Error{Kind: controller.InvalidRequest}, kerr.InvalidRequest},
	{&controller.Error{Kind: controller.PolicyViolation}, kerr.PolicyViolation},
	{&controller.Error{Kind: controller.StaleBrokerEpoch}, kerr.StaleBrokerEpoch},
	{&controller.Error{Kind: controller.UnknownTopicID}, kerr.UnknownTopicID},
	{&controller.Error{Kind: controller.DuplicateBrokerRegistration}, kerr.DuplicateBrokerRegistration},
	{&controller.Error{Kind: controller.BrokerIDNotRegistered}, kerr.BrokerIDNotRegistered},
	{&controller.Error{Kind: controller.InvalidRegistration}, kerr.InvalidRegistration},
}

// code returns the Kafka error code of err; 0 for nil. It is the only table from Go errors
// to codes. What it does not know is UNKNOWN_SERVER_ERROR, which clients take badly.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Code
	}
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code.Code
		}
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
