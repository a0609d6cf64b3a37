package record

import "github.com/gregor-kafka/gregor/internal/record"

// A ControlType says what a control record means. Its key has it; readers skip types that they do not know.
type ControlType = record.ControlType

// The control records. Those of a transaction occur in any log, the others in the metadata log and its snapshots only.
const (
	ControlAbort          = record.ControlAbort
	ControlCommit         = record.ControlCommit
	ControlLeaderChange   = record.ControlLeaderChange
	ControlSnapshotHeader = record.ControlSnapshotHeader
	ControlSnapshotFooter = record.ControlSnapshotFooter
	ControlKRaftVersion   = record.ControlKRaftVersion
	ControlKRaftVoters    = record.ControlKRaftVoters
)

// ParseControl returns the type that the key of a control record has. The error matches ErrInvalidRecord.
func ParseControl(key []byte) (ControlType, error) { return record.ParseControl(key) }

// An EndTxn is a transaction marker.
type EndTxn = record.EndTxn

// EndTxnMarker returns the batch that ends a transaction in one partition.
func EndTxnMarker(m EndTxn) []byte { return record.EndTxnMarker(m) }

// ParseEndTxn returns the coordinator epoch in the value of a ControlAbort or ControlCommit record. The error matches
// ErrInvalidRecord.
func ParseEndTxn(value []byte) (coordinatorEpoch int32, err error) { return record.ParseEndTxn(value) }
