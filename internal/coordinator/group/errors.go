package group

import (
	"errors"
	"fmt"
)

// Refusals, by Kafka's names. DescribeGroups and DeleteGroups show their texts to clients.
var (
	ErrUnknownMemberID           = errors.New("the group has no member of this id")
	ErrFencedInstanceID          = errors.New("another member has taken over the group instance id")
	ErrRebalanceInProgress       = errors.New("the group is rebalancing, the member has to join again")
	ErrIllegalGeneration         = errors.New("the generation is not that of the group")
	ErrInconsistentGroupProtocol = errors.New("the member's protocol type or protocols do not fit the group's")
	ErrMemberIDRequired          = errors.New("the member has to join with the id that it was given")
	ErrGroupMaxSizeReached       = errors.New("the group has as many members as it may have")
	ErrInvalidSessionTimeout     = errors.New("the session timeout is outside group.min.session.timeout.ms and group.max.session.timeout.ms")
	ErrInvalidGroupID            = errors.New("the group id is invalid")
	ErrGroupIDNotFound           = errors.New("the group does not exist")
	ErrNonEmptyGroup             = errors.New("the group is not empty")
	ErrGroupSubscribedToTopic    = errors.New("a member of the group is subscribed to the topic")
	ErrUnstableOffsetCommit      = errors.New("an open transaction has committed an offset of the partition")
	ErrOffsetMetadataTooLarge    = errors.New("the metadata of the offset is larger than offset.metadata.max.bytes")
	ErrCoordinatorNotAvailable   = errors.New("the topic of the group's coordinator does not exist yet")
)

// An AppendError says that a change of a group could not be written. Err is the reason
// that the log gave; the client gets the code that Kafka's coordinator makes of it.
type AppendError struct {
	Group string
	Err   error
}

func (e *AppendError) Error() string { return fmt.Sprintf("group %q: %v", e.Group, e.Err) }
func (e *AppendError) Unwrap() error { return e.Err }

func (g *group) appendError(err error) error {
	if err == nil {
		return nil
	}
	return &AppendError{g.id, err}
}
