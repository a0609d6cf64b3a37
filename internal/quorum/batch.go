package quorum

import (
	"fmt"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

// A controlRecord is a control record with its type.
type controlRecord struct {
	kind  record.ControlType
	value metadata.ControlRecord
}

// version is the one that the value is written in.
func (r controlRecord) version() int16 {
	if m, ok := r.value.(*metadata.LeaderChangeMessage); ok {
		return m.Version
	}
	return 0
}

// proposedBatch makes a batch of metadata records that were decided in an epoch. Its place is yet to be
// given to it.
func proposedBatch(records []metadata.Record, level int16, epoch int32, timestamp int64) (record.Batch, error) {
	b, err := dataBatch(records, level, epoch, timestamp)
	if err != nil {
		return nil, err
	}
	record.Batch(b).SetBaseOffset(unplaced)
	return b, nil
}

// dataBatch makes a batch of metadata records, with base offset 0.
func dataBatch(records []metadata.Record, level int16, epoch int32, timestamp int64) ([]byte, error) {
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: new(epoch)})
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
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: new(epoch), Control: true})
	for i, r := range records {
		value := metadata.AppendControl(nil, r.value, r.version())
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: timestamp, Key: record.ControlKey(r.kind), Value: value}); err != nil {
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
		kind, err := record.ParseControl(r.Key)
		if err != nil {
			return nil, err
		}
		c := controlRecord{kind: kind}
		switch kind {
		case record.ControlLeaderChange:
			c.value = metadata.NewLeaderChangeMessage()
		case record.ControlSnapshotHeader:
			c.value = metadata.NewSnapshotHeaderRecord()
		case record.ControlSnapshotFooter:
			c.value = metadata.NewSnapshotFooterRecord()
		case record.ControlKRaftVersion:
			c.value = metadata.NewKRaftVersionRecord()
		case record.ControlKRaftVoters:
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

// A leaderChange is what a new leader writes first.
type leaderChange struct {
	leader   int32
	index    uint64  // raft's, of the batch: an anchor of the numbering
	voters   []int32 // all of them
	granting []int32 // who voted for the leader
	kraft    kraftState
	records  []controlRecord // that go into the same batch
}

// batch makes it, with base offset 0. Directory ids are part of it where voters are in the log.
func (c leaderChange) batch(epoch int32, timestamp int64) ([]byte, error) {
	list := func(ids []int32) (voters []metadata.Voter) {
		for _, id := range ids {
			voters = append(voters, metadata.Voter{VoterID: id, VoterDirectoryID: directoryIn(c.kraft.voters, id)})
		}
		return voters
	}
	message := &metadata.LeaderChangeMessage{
		Version: min(c.kraft.level(), 1), LeaderID: c.leader, Voters: list(c.voters), GrantingVoters: list(c.granting), RaftIndex: int64(c.index),
	}
	return controlBatch(epoch, timestamp, append([]controlRecord{{record.ControlLeaderChange, message}}, c.records...)...)
}

// noOp is a batch without a change, which stands for an entry of raft's that asks for nothing. Every
// level of metadata.version that is supported has the record.
func noOp(timestamp int64) ([]byte, error) {
	return dataBatch([]metadata.Record{metadata.NewNoOpRecord()}, metadata.LevelCurrent, 0, timestamp)
}
