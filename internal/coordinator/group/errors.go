package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Refusals are Kafka's errors: what the coordinator decides is what the client is told.
var (
	errUnknownMember      error = kerr.UnknownMemberID
	errFenced             error = kerr.FencedInstanceID
	errRebalance          error = kerr.RebalanceInProgress
	errGeneration         error = kerr.IllegalGeneration
	errProtocol           error = kerr.InconsistentGroupProtocol
	errMemberIDRequired   error = kerr.MemberIDRequired
	errGroupFull          error = kerr.GroupMaxSizeReached
	errSessionTimeout     error = kerr.InvalidSessionTimeout
	errInvalidGroup       error = kerr.InvalidGroupID
	errGroupNotFound      error = kerr.GroupIDNotFound
	errNonEmpty           error = kerr.NonEmptyGroup
	errSubscribed         error = kerr.GroupSubscribedToTopic
	errUnstableOffset     error = kerr.UnstableOffsetCommit
	errMetadataTooLarge   error = kerr.OffsetMetadataTooLarge
	errCoordinatorMissing error = kerr.CoordinatorNotAvailable
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
