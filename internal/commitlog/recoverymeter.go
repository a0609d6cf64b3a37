package commitlog

import (
	"errors"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// A RecoveryMeter counts what logs check after an unclean stop: segments and bytes that are to
// be read, known when a log is opened, and those of them that are done. Logs share one, and
// anybody may read it meanwhile. (Kafka: remainingSegmentsToRecover.)
type RecoveryMeter struct {
	Logs                   atomic.Int64 // of which the others tell
	Segments, SegmentsDone atomic.Int64
	Bytes, BytesDone       atomic.Int64

	stopped atomic.Bool
}

// ErrStopped is the error of an Open that Stop has cut short. The files are for the next Open to
// recover.
var ErrStopped = errors.New("recovery was stopped")

// Stop makes every Open that uses the meter fail with ErrStopped, at its next batch.
func (m *RecoveryMeter) Stop() { m.stopped.Store(true) }

// add makes segments part of what is to be read.
func (m *RecoveryMeter) add(segments []*segment.Segment) *recoveryCount {
	if m == nil {
		m = &RecoveryMeter{}
	}
	c := &recoveryCount{meter: m, segments: int64(len(segments))}
	for _, s := range segments {
		c.bytes += s.Size()
	}
	m.Segments.Add(c.segments)
	m.Bytes.Add(c.bytes)
	m.Logs.Add(1)
	return c
}

// A recoveryCount is what one log has added to a meter and is not done yet.
type recoveryCount struct {
	meter    *RecoveryMeter
	segments int64
	bytes    int64
	position int64 // in the present segment, up to which its bytes are done
}

// countStep is how many bytes are read before the meter moves.
const countStep = 1 << 20

// read says up to which position the present segment has been read.
func (c *recoveryCount) read(position int64) error {
	if position-c.position >= countStep {
		c.done(0, position-c.position)
		c.position = position
	}
	if c.meter.stopped.Load() {
		return ErrStopped
	}
	return nil
}

// endSegment says that the present segment, which had a size, is done.
func (c *recoveryCount) endSegment(size int64) {
	c.done(1, size-c.position)
	c.position = 0
}

// end says that the log is done, whether everything has been read or was given up.
func (c *recoveryCount) end() { c.done(c.segments, c.bytes) }

func (c *recoveryCount) done(segments, bytes int64) {
	c.segments -= segments
	c.bytes -= bytes
	c.meter.SegmentsDone.Add(segments)
	c.meter.BytesDone.Add(bytes)
}
