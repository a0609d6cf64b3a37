package logdir

import (
	"context"
	"time"
)

// spaceInterval is how often free space is looked at. What arrives in between should fit in
// the reserve; where it does not, appends meet the full disk and are undone.
const spaceInterval = time.Second

// watchSpace keeps appends out of the reserve until ctx ends.
func (m *Manager) watchSpace(ctx context.Context) {
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	for {
		m.checkSpace()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkSpace stops appends to directories with less room than gregor.disk.reserve.bytes, so
// that checkpoints, retention and deletions have some, and lets them go on where there is more
// again.
func (m *Manager) checkSpace() {
	for _, d := range m.online() {
		total, free, err := m.cfg.FS.Space(d.path)
		if err != nil {
			m.logger.Warn("free space is not known", "dir", d.path, "err", err)
			continue
		}
		reserve := m.reserveOf(total)
		full := free < reserve
		if full == d.disk.Full() {
			continue
		}
		d.disk.SetFull(full)
		if full {
			m.logger.Error("disk is full: appends are refused until there is room", "dir", d.path, "free", free, "reserve", reserve)
		} else {
			m.logger.Info("disk has room again: appends go on", "dir", d.path, "free", free)
		}
	}
}

// reserveOf is the reserve of a file system. Of a small one a twentieth is enough.
func (m *Manager) reserveOf(total int64) int64 { return min(m.cfg.DiskReserve, total/20) }

// A Space is the room for records in a log directory.
type Space struct {
	Path        string
	Total, Free int64 // bytes of the file system
	Reserve     int64 // below so many free bytes appends are refused
	Full        bool  // they are refused
}

// Spaces tells the space of the log directories that are online and whose file systems answer.
func (m *Manager) Spaces() (list []Space) {
	for _, d := range m.online() {
		if total, free, err := m.cfg.FS.Space(d.path); err == nil {
			list = append(list, Space{d.path, total, free, m.reserveOf(total), d.disk.Full()})
		}
	}
	return list
}
