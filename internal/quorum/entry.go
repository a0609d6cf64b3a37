package quorum

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

// entryOf returns a batch as raft's entry. In Data are, and in Extensions where raft has a use of its
// own for Data, the bytes of the batch as they are in the file: with them a follower stores the same.
func entryOf(index uint64, batch record.Batch) (raft.Log, error) {
	log := raft.Log{Index: index, Term: uint64(batch.LeaderEpoch()), Type: raft.LogCommand, Data: batch}
	if !batch.IsControl() {
		return log, nil
	}
	records, err := decodeControl(batch)
	if err != nil {
		return log, err
	}
	log.Type = raft.LogNoop
	if voters := votersAmong(records); voters != nil {
		log.Type, log.Data, log.Extensions = raft.LogConfiguration, raft.EncodeConfiguration(configurationIn(voters)), batch
	}
	return log, nil
}

func votersAmong(records []controlRecord) (voters *metadata.VotersRecord) {
	for _, r := range records {
		if v, ok := r.value.(*metadata.VotersRecord); ok {
			voters = v
		}
	}
	return voters
}

// unplaced is the base offset of a proposal: the leader's log gives it one.
const unplaced = -1

// An origin is where a batch continues the log.
type origin struct {
	offset int64
	epoch  int32 // of the batch before
}

// receivedBatch returns the batch of an entry that another leader made, nil of one that this node is
// to make. It is refused unless it is, to the byte, what follows: offset and index go apart only
// where two voters number their logs differently, and then no entry may pass between them.
func receivedBatch(log *raft.Log, at origin) (record.Batch, error) {
	b := log.Data
	if log.Type == raft.LogConfiguration {
		b = log.Extensions
	}
	if len(b) == 0 {
		return nil, nil
	}
	batch, err := record.First(b)
	switch {
	case err != nil:
		return nil, err
	case batch.Size() != len(b):
		return nil, errors.New("an entry is not one batch")
	case log.Type == raft.LogCommand && batch.BaseOffset() == unplaced:
		return nil, nil // of Propose
	}
	if err := checkBatch(batch, at); err != nil {
		return nil, fmt.Errorf("entry %d from the leader of epoch %d: %w", log.Index, log.Term, err)
	}
	entry, err := entryOf(log.Index, batch)
	if err == nil && (entry.Term != log.Term || entry.Type != log.Type || !bytes.Equal(entry.Data, log.Data)) {
		err = fmt.Errorf("entry %d of type %v and term %d has a batch of type %v and epoch %d", log.Index, log.Type, log.Term, entry.Type, entry.Term)
	}
	if index := anchorIn(batch); err == nil && index != 0 && uint64(index) != log.Index {
		err = fmt.Errorf("%w: the leader sends entry %d, which says it is entry %d", errNumbering, log.Index, index)
	}
	return batch, err
}

// anchorIn returns the index that a batch says it has, 0 if it does not.
func anchorIn(batch record.Batch) int64 {
	if !batch.IsControl() {
		return 0
	}
	records, _ := decodeControl(batch)
	for _, r := range records {
		if m, ok := r.value.(*metadata.LeaderChangeMessage); ok {
			return m.RaftIndex
		}
	}
	return 0
}

// checkBatch says whether a batch is a good continuation of the log.
func checkBatch(batch record.Batch, at origin) error {
	if err := batch.Verify(); err != nil {
		return err
	}
	switch {
	case batch.Magic() != 2:
		return fmt.Errorf("batch of format %d", batch.Magic())
	case batch.BaseOffset() != at.offset:
		return fmt.Errorf("batch has offset %d", batch.BaseOffset())
	case batch.LastOffsetDelta() < 0 || batch.Count() < 1:
		return fmt.Errorf("batch has %d records up to offset delta %d", batch.Count(), batch.LastOffsetDelta())
	case batch.LeaderEpoch() < max(at.epoch, 0):
		return fmt.Errorf("batch has leader epoch %d", batch.LeaderEpoch())
	}
	return nil
}
