package record

import (
	"encoding/binary"
	"fmt"
)

// A ControlType says what a control record means. Its key has it; types that a reader
// does not know are to be skipped.
type ControlType int16

// The control records. Those of a transaction occur in any log, the others in the metadata
// log and its snapshots only.
const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
)

func (t ControlType) String() string {
	names := [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("UNKNOWN(%d)", int16(t))
	}
	return names[t]
}

// ParseControl returns the type that the key of a control record has. Versions above 0 are
// read like 0, as Kafka does. The error matches ErrInvalidRecord.
func ParseControl(key []byte) (ControlType, error) {
	if len(key) < 4 {
		return 0, invalid("control record key of %d bytes", len(key))
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return 0, invalid("control record key of version %d", version)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// ControlType returns the type of the first record of a control batch, false if it is none, or has
// no record that makes sense, as one that compaction emptied.
func (b Batch) ControlType() (ControlType, bool) {
	if !b.IsControl() {
		return 0, false
	}
	for r, err := range b.Records() {
		if err != nil {
			break
		}
		t, err := ParseControl(r.Key)
		return t, err == nil
	}
	return 0, false
}

// ControlKey returns the key of a control record.
func ControlKey(t ControlType) []byte {
	key := make([]byte, 4) // version 0 first
	binary.BigEndian.PutUint16(key[2:], uint16(t))
	return key
}

// ParseEndTxn returns the coordinator epoch in the value of a ControlAbort or ControlCommit record. The
// error matches ErrInvalidRecord.
func ParseEndTxn(value []byte) (coordinatorEpoch int32, err error) {
	if len(value) < 6 {
		return 0, invalid("transaction marker of %d bytes", len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 {
		return 0, invalid("transaction marker of version %d", version)
	}
	return int32(binary.BigEndian.Uint32(value[2:])), nil
}

// EndTxn is a transaction marker.
type EndTxn struct {
	Type             ControlType // ControlAbort or ControlCommit
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32
	Timestamp        int64 // ms since 1970
	BaseOffset       int64
	LeaderEpoch      *int32 // nil: none, -1
}

// EndTxnMarker returns the batch that ends a transaction in one partition.
func EndTxnMarker(m EndTxn) []byte {
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.CoordinatorEpoch))
	return ControlBatch(BuilderOptions{
		BaseOffset:    m.BaseOffset,
		LeaderEpoch:   m.LeaderEpoch,
		Producer:      &Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch, BaseSequence: -1},
		Transactional: true,
	}, m.Timestamp, m.Type, value)
}

// ControlBatch returns a batch with one control record at the base offset.
func ControlBatch(o BuilderOptions, timestamp int64, t ControlType, value []byte) []byte {
	o.Control = true
	b := NewBuilder(o)
	err := b.Append(Record{Offset: o.BaseOffset, Timestamp: timestamp, Key: ControlKey(t), Value: value})
	if err != nil {
		panic("BUG: control record: " + err.Error())
	}
	return b.Build()
}
