package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/record"
)

// Types of control records in the metadata log (Kafka class ControlRecordType).
const (
	controlLeaderChange   = 2
	controlSnapshotHeader = 3
	controlSnapshotFooter = 4
	controlKRaftVersion   = 5
	controlKRaftVoters    = 6
)

// A controlRecord is a control record with the number of its type.
type controlRecord struct {
	kind  int16
	value metadata.ControlRecord
}

// dataBatch makes a batch of metadata records, with base offset 0.
func dataBatch(records []metadata.Record, level int16, epoch int32, timestamp int64) ([]byte, error) {
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: epoch})
	var value []byte
	for i, r := range records {
		value = metadata.Append(value[:0], r, level)
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: timestamp, Value: value}); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

// controlBatch makes a control batch, with base offset 0.
func controlBatch(epoch int32, timestamp int64, records ...controlRecord) ([]byte, error) {
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: epoch, Control: true})
	for i, r := range records {
		key := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, 0), uint16(r.kind))
		value := metadata.AppendControl(nil, r.value, 0)
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: timestamp, Key: key, Value: value}); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

// decodeData returns the records of a batch. They share no memory with it.
func decodeData(b record.Batch) ([]metadata.Record, error) {
	records := make([]metadata.Record, 0, min(b.Count(), int32(b.Size()))) // the count may lie
	for r, err := range b.Records() {
		if err != nil {
			return nil, err
		}
		m, err := metadata.Decode(r.Value)
		if err != nil {
			return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		records = append(records, m)
	}
	return records, nil
}

// decodeControl returns the control records of a batch; those of unknown types are left out.
func decodeControl(b record.Batch) ([]controlRecord, error) {
	var records []controlRecord
	for r, err := range b.Records() {
		if err != nil {
			return nil, err
		}
		if len(r.Key) < 4 {
			return nil, errors.New("control record with a short key")
		}
		c := controlRecord{kind: int16(binary.BigEndian.Uint16(r.Key[2:]))}
		switch c.kind {
		case controlLeaderChange:
			c.value = metadata.NewLeaderChangeMessage()
		case controlSnapshotHeader:
			c.value = metadata.NewSnapshotHeaderRecord()
		case controlSnapshotFooter:
			c.value = metadata.NewSnapshotFooterRecord()
		case controlKRaftVersion:
			c.value = metadata.NewKRaftVersionRecord()
		case controlKRaftVoters:
			c.value = metadata.NewVotersRecord()
		default:
			continue
		}
		if err := metadata.DecodeControl(r.Value, c.value); err != nil {
			return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		records = append(records, c)
	}
	return records, nil
}

// leaderChange is what a new leader writes first. sole, if not nil, makes it the only voter.
func leaderChange(leader int32, sole *metadata.VotersRecord, epoch int32, timestamp int64) ([]byte, error) {
	voters := []metadata.Voter{{VoterID: leader}}
	records := []controlRecord{{controlLeaderChange, &metadata.LeaderChangeMessage{
		LeaderID: leader, Voters: voters, GrantingVoters: voters,
	}}}
	if sole != nil {
		records = append(records, controlRecord{controlKRaftVoters, sole})
	}
	return controlBatch(epoch, timestamp, records...)
}
