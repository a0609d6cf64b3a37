package logdir

import (
	"errors"
	"io/fs"
	"maps"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// leftAloneName is the file that lists the partitions that were left alone when the broker last
// went on: the next start need not ask again. It has the form of an offset checkpoint, with offsets
// of 0, is there only while there are such partitions, and is gregor's own; Kafka ignores it.
const leftAloneName = "gregor-left-alone"

// readLeftAlone reads the file. One that makes no sense is as good as none.
func (m *Manager) readLeftAlone(d *dir) (map[topic.Partition]int64, error) {
	list, err := checkpoint.ReadOffsets(m.cfg.FS, d.file(leftAloneName))
	if errors.Is(err, checkpoint.ErrCorrupt) {
		m.logger.Warn("file ignored", "file", d.file(leftAloneName), "err", err)
		return nil, nil
	}
	d.leftAlone = list
	return list, err
}

// writeLeftAlone brings the file up to date with what Load has left alone.
func (m *Manager) writeLeftAlone(d *dir) error {
	list := make(map[topic.Partition]int64)
	d.mu.Lock()
	for p, l := range d.mu.parked {
		if errors.Is(l.err, ErrLeftAlone) {
			list[p] = 0
		}
	}
	d.mu.Unlock()
	switch {
	case maps.Equal(list, d.leftAlone):
		return nil
	case len(list) > 0:
		return checkpoint.WriteOffsets(m.cfg.FS, d.file(leftAloneName), list)
	}
	if err := m.cfg.FS.Remove(d.file(leftAloneName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.cfg.FS.SyncDir(d.path)
}
