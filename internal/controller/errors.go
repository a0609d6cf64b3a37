package controller

import (
	"errors"
	"fmt"
)

// A Kind says why a request is refused, with the name of Kafka's error code.
type Kind int

// The kinds, in the order of Kafka's codes.
const (
	UnknownTopicOrPartition     Kind = iota + 1 // 3
	InvalidTopic                                // 17
	TopicAlreadyExists                          // 36
	InvalidPartitions                           // 37
	InvalidReplicationFactor                    // 38
	InvalidReplicaAssignment                    // 39
	InvalidConfig                               // 40
	InvalidRequest                              // 42
	PolicyViolation                             // 44
	StaleBrokerEpoch                            // 77
	UnknownTopicID                              // 100
	DuplicateBrokerRegistration                 // 101
	BrokerIDNotRegistered                       // 102
	InvalidRegistration                         // 119
)

var kindNames = [...]string{
	"NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", "TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS",
	"INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT", "INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION",
	"STALE_BROKER_EPOCH", "UNKNOWN_TOPIC_ID", "DUPLICATE_BROKER_REGISTRATION", "BROKER_ID_NOT_REGISTERED", "INVALID_REGISTRATION",
}

// String returns the name of Kafka's error code.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// An Error is a refusal. Nothing was changed.
type Error struct {
	Kind    Kind
	Message string // for the client
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, &Error{Kind: k}) true for errors of kind k.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Message == ""
}

// KindOf returns the kind of a refusal, or 0 when err is none.
func KindOf(err error) Kind {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func refuse(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}
