package quorum

import (
	"errors"
	"io"
	"iter"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
)

// Bounds of a checkpoint's size and of the data batches in it.
const (
	checkpointSizeMax    = 4 << 30
	checkpointBatchBytes = 512 << 10
)

// A checkpointData is the content of a snapshot.
type checkpointData struct {
	epoch        int32                        // of the last record in it
	timestamp    int64                        // of the same, in ms
	kraftVersion *metadata.KRaftVersionRecord // nil in a quorum of version 0
	voters       *metadata.VotersRecord
	place        place
	records      []metadata.Record
}

// A place is where a snapshot belongs in the log: what its file says of itself, so that it can travel.
// It is zero in one of Kafka's.
type place struct {
	endOffset   int64
	index       uint64 // raft's, of the last entry in it
	votersIndex uint64 // of the entry with its voters, 0 when unknown or in the configuration
}

// writeCheckpoint writes a checkpoint as Kafka does: header, data batches, footer. Offsets
// count from 0.
func writeCheckpoint(w io.Writer, c checkpointData, records iter.Seq[metadata.Record], level int16, epoch int32, now int64) error {
	cw := &checkpointWriter{w: w}
	cw.write(controlBatch(epoch, now, c.header()...))
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: new(epoch)})
	for r := range records {
		value := metadata.Append(nil, r, level)
		if err := b.Append(record.Record{Offset: int64(b.Count()), Timestamp: now, Value: value}); err != nil {
			return err
		}
		if b.Size() >= checkpointBatchBytes {
			cw.write(b.Build(), nil)
			b.Reset(record.BuilderOptions{LeaderEpoch: new(epoch)})
		}
	}
	cw.write(b.Build(), nil)
	cw.write(controlBatch(epoch, now, controlRecord{record.ControlSnapshotFooter, &metadata.SnapshotFooterRecord{}}))
	return cw.err
}

// header is the records of the first batch.
func (c *checkpointData) header() []controlRecord {
	header := []controlRecord{{record.ControlSnapshotHeader, &metadata.SnapshotHeaderRecord{
		LastContainedLogTimestamp: c.timestamp,
		RaftIndex:                 int64(c.place.index), EndOffset: c.place.endOffset, VotersIndex: int64(c.place.votersIndex),
	}}}
	if c.kraftVersion != nil {
		header = append(header, controlRecord{record.ControlKRaftVersion, c.kraftVersion})
	}
	if c.voters != nil {
		header = append(header, controlRecord{record.ControlKRaftVoters, c.voters})
	}
	return header
}

// A checkpointWriter gives batches their offsets. After an error it does nothing.
type checkpointWriter struct {
	w      io.Writer
	offset int64
	err    error
}

func (c *checkpointWriter) write(b []byte, err error) {
	if c.err == nil {
		c.err = err
	}
	if c.err != nil || b == nil {
		return
	}
	batch := record.Batch(b)
	batch.SetBaseOffset(c.offset)
	c.offset = batch.NextOffset()
	_, c.err = c.w.Write(b)
}

// readCheckpoint reads a checkpoint. One without its footer was not written to the end.
func readCheckpoint(b []byte) (checkpointData, error) {
	var c checkpointData
	first, done := true, false
	for batch, err := range record.Batches(b) {
		if err == nil {
			err = batch.Verify()
		}
		switch {
		case err != nil:
			return c, err
		case done:
			return c, errors.New("a batch follows the footer")
		case first != batchHasHeader(batch):
			return c, errors.New("the header is not the first batch")
		}
		first = false
		if done, err = c.add(batch); err != nil {
			return c, err
		}
	}
	if !done {
		return c, errors.New("the footer is missing")
	}
	return c, nil
}

func batchHasHeader(b record.Batch) bool {
	if !b.IsControl() {
		return false
	}
	records, err := decodeControl(b)
	return err == nil && len(records) > 0 && records[0].kind == record.ControlSnapshotHeader
}

// add takes one batch; done reports the footer.
func (c *checkpointData) add(b record.Batch) (done bool, err error) {
	if !b.IsControl() {
		records, err := decodeData(b)
		c.records = append(c.records, records...)
		return false, err
	}
	records, err := decodeControl(b)
	for _, r := range records {
		switch v := r.value.(type) {
		case *metadata.SnapshotHeaderRecord:
			c.epoch, c.timestamp = b.LeaderEpoch(), v.LastContainedLogTimestamp
			c.place = place{endOffset: v.EndOffset, index: uint64(max(v.RaftIndex, 0)), votersIndex: uint64(max(v.VotersIndex, 0))}
		case *metadata.KRaftVersionRecord:
			c.kraftVersion = v
		case *metadata.VotersRecord:
			c.voters = v
		case *metadata.SnapshotFooterRecord:
			done = true
		}
	}
	return done, err
}
