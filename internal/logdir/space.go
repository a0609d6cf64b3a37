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
// again. Of a small file system a twentieth is enough.
func (m *Manager) checkSpace() {
	for _, d := range m.online() {
		total, free, err := m.cfg.FS.Space(d.path)
		if err != nil {
			m.logger.Warn("free space is not known", "dir", d.path, "err", err)
			continue
		}
		reserve := min(m.cfg.DiskReserve, total/20)
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
