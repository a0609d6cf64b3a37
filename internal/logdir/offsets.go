package logdir

import (
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A checkpointKind is one of the offset checkpoints that the manager keeps.
type checkpointKind int

const (
	recoveryPoints checkpointKind = iota
	logStarts
	highWatermarks
	checkpointKinds
)

var checkpointNames = [checkpointKinds]string{
	recoveryPoints: checkpoint.RecoveryPoints,
	logStarts:      checkpoint.LogStartOffsets,
	highWatermarks: checkpoint.HighWatermarks,
}

// offsets holds the content of the checkpoints of one directory.
type offsets [checkpointKinds]map[topic.Partition]int64

func (o *offsets) forget(p topic.Partition) {
	for _, entries := range o {
		delete(entries, p)
	}
}

// partitions lists those that have an entry.
func (o *offsets) partitions() []topic.Partition {
	set := make(map[topic.Partition]bool)
	for _, entries := range o {
		for p := range entries {
			set[p] = true
		}
	}
	return slices.Collect(maps.Keys(set))
}

// offsetOf is what the checkpoint has to say about a log. Log start offsets are noted only
// where the first segment does not tell.
func (k checkpointKind) offsetOf(l *commitlog.Log) (offset int64, ok bool) {
	switch k {
	case recoveryPoints:
		return l.RecoveryPoint(), true
	case logStarts:
		start := l.Offsets().LogStart
		return start, start > l.Segments()[0].BaseOffset
	default:
		return min(l.Offsets().HighWatermark, l.DataEnd()), true
	}
}

// current is what the checkpoint of the directory should hold now.
func (m *Manager) current(d *dir, k checkpointKind) map[topic.Partition]int64 {
	entries := make(map[topic.Partition]int64)
	for _, e := range append(m.places.entriesOf(d), m.places.allFutures(d)...) {
		if offset, ok := k.offsetOf(e.log); ok {
			entries[e.log.Partition()] = offset
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.mu.parked {
		if offset, ok := d.mu.found[k][p]; ok {
			entries[p] = offset
		}
	}
	for p := range d.mu.missing {
		if offset, ok := d.mu.found[k][p]; ok {
			entries[p] = offset
		}
	}
	return entries
}

// writeCheckpoint brings one file up to date. It does not touch a file that is.
func (m *Manager) writeCheckpoint(d *dir, k checkpointKind) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.failure(); err != nil {
		return err
	}
	entries := m.current(d, k)
	if d.written[k] != nil && maps.Equal(d.written[k], entries) {
		return nil
	}
	if err := checkpoint.WriteOffsets(m.cfg.FS, d.file(checkpointNames[k]), entries); err != nil {
		return err
	}
	d.written[k] = entries
	return nil
}

func (m *Manager) writeCheckpoints(d *dir, kinds ...checkpointKind) error {
	for _, k := range kinds {
		if err := m.writeCheckpoint(d, k); err != nil {
			return err
		}
	}
	return nil
}

// checkpointAll writes one kind of checkpoint in every directory; one where that fails
// goes offline.
func (m *Manager) checkpointAll(k checkpointKind) {
	for _, d := range m.dirs.online() {
		if err := m.writeCheckpoint(d, k); err != nil {
			m.failSoon(d, err)
		}
	}
}

// readCheckpoint reads a file at start. A line that makes no sense is as good as none: recovery
// and clamping to the log make up for it. A file that could not be opened for want of descriptors
// is an error: what it says must not be forgotten.
func (m *Manager) readCheckpoint(d *dir, k checkpointKind) (map[topic.Partition]int64, error) {
	path := d.file(checkpointNames[k])
	entries, err := checkpoint.ReadOffsets(m.cfg.FS, path)
	if vfs.FaultOf(err) == vfs.ProcessFault {
		return nil, err
	}
	if err != nil {
		m.logger.Error("checkpoint is damaged, offsets that cannot be read count as 0", "file", path, "read", len(entries), "err", err)
	}
	return entries, nil
}
