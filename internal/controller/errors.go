package controller

import (
	"errors"
	"fmt"
)

// A Kind says why a request is refused: the name of Kafka's error code.
type Kind string

// The kinds, in the order of Kafka's codes.
const (
	UnknownTopicOrPartition     Kind = "UNKNOWN_TOPIC_OR_PARTITION"
	InvalidTopic                Kind = "INVALID_TOPIC_EXCEPTION"
	TopicAlreadyExists          Kind = "TOPIC_ALREADY_EXISTS"
	InvalidPartitions           Kind = "INVALID_PARTITIONS"
	InvalidReplicationFactor    Kind = "INVALID_REPLICATION_FACTOR"
	InvalidReplicaAssignment    Kind = "INVALID_REPLICA_ASSIGNMENT"
	InvalidConfig               Kind = "INVALID_CONFIG"
	NotController               Kind = "NOT_CONTROLLER"
	InvalidRequest              Kind = "INVALID_REQUEST"
	PolicyViolation             Kind = "POLICY_VIOLATION"
	StaleBrokerEpoch            Kind = "STALE_BROKER_EPOCH"
	FencedLeaderEpoch           Kind = "FENCED_LEADER_EPOCH"
	InvalidUpdateVersion        Kind = "INVALID_UPDATE_VERSION"
	IneligibleReplica           Kind = "INELIGIBLE_REPLICA"
	UnknownTopicID              Kind = "UNKNOWN_TOPIC_ID"
	DuplicateBrokerRegistration Kind = "DUPLICATE_BROKER_REGISTRATION"
	BrokerIDNotRegistered       Kind = "BROKER_ID_NOT_REGISTERED"
	InvalidRegistration         Kind = "INVALID_REGISTRATION"
)

// An Error is a refusal. Nothing was changed, unless its kind is NotController: another node may have
// taken over what was asked.
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

// KindOf returns the kind of a refusal, or "" when err is none.
func KindOf(err error) Kind {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func refuse(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}
