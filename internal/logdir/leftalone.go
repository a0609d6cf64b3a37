package logdir

import (
	"errors"
	"io/fs"
	"maps"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// The file checkpoint.LeftAlone lists the partitions that were left alone when the broker last
// went on: the next start need not ask again. It has the form of an offset checkpoint, is there only
// while there are such partitions, and is gregor's own; Kafka ignores it. In place of an offset it
// says whether the log was clean when it was left: the marker of the directory speaks of the others.
const (
	leftClean   = 0
	leftUnclean = 1
)

// readLeftAlone reads the file. Of one that is damaged the lines count that make sense; of the other
// logs of the directory nobody knows any more whether they were clean.
func (m *Manager) readLeftAlone(d *dir) (map[topic.Partition]int64, error) {
	list, err := checkpoint.ReadOffsets(m.cfg.FS, d.file(checkpoint.LeftAlone))
	if errors.Is(err, checkpoint.ErrCorrupt) {
		d.leftAloneDamaged = true
		m.logger.Warn("file is damaged", "file", d.file(checkpoint.LeftAlone), "read", len(list), "err", err)
		err = nil
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
			list[p] = leftClean
			if !d.isClean(p) {
				list[p] = leftUnclean
			}
		}
	}
	d.mu.Unlock()
	switch {
	case maps.Equal(list, d.leftAlone) && !d.leftAloneDamaged:
		return nil
	case len(list) > 0:
		return checkpoint.WriteOffsets(m.cfg.FS, d.file(checkpoint.LeftAlone), list)
	}
	if err := m.cfg.FS.Remove(d.file(checkpoint.LeftAlone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.cfg.FS.SyncDir(d.path)
}

// isClean reports whether a log was closed cleanly before the start.
func (d *dir) isClean(p topic.Partition) bool {
	state, listed := d.leftAlone[p]
	if !listed {
		return d.startedClean && !d.leftAloneDamaged
	}
	return d.startedClean && state == leftClean
}
