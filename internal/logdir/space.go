package logdir

import (
	"context"
	"log/slog"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// spaceInterval is how often free space is looked at. What arrives in between should fit in
// the reserve; where it does not, appends meet the full disk and are undone.
const spaceInterval = time.Second

// diskSpace keeps the reserve of the disks free.
type diskSpace struct {
	fs      vfs.FS
	dirs    directories
	reserve int64 // gregor.disk.reserve.bytes
	logger  *slog.Logger
}

func (m *Manager) space() *diskSpace {
	return &diskSpace{fs: m.cfg.FS, dirs: m.dirs, reserve: m.cfg.DiskReserve, logger: m.logger}
}

// watch keeps appends out of the reserve until ctx ends.
func (s *diskSpace) watch(ctx context.Context) {
	ticker := time.NewTicker(spaceInterval)
	defer ticker.Stop()
	for {
		s.check()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// check stops appends to directories with less room than gregor.disk.reserve.bytes, so
// that checkpoints, retention and deletions have some, and lets them go on where there is more
// again.
func (s *diskSpace) check() {
	for _, d := range s.dirs.online() {
		total, free, err := s.fs.Space(d.path)
		if err != nil {
			s.logger.Warn("free space is not known", "dir", d.path, "err", err)
			continue
		}
		reserve := s.reserveOf(total)
		full := free < reserve
		if full == d.disk.Full() {
			continue
		}
		d.disk.SetFull(full)
		if full {
			s.logger.Error("disk is full: appends are refused until there is room", "dir", d.path, "free", free, "reserve", reserve)
		} else {
			s.logger.Info("disk has room again: appends go on", "dir", d.path, "free", free)
		}
	}
}

// reserveOf is the reserve of a file system. Of a small one a twentieth is enough.
func (s *diskSpace) reserveOf(total int64) int64 { return min(s.reserve, total/20) }

// A Space is the room for records in a log directory.
type Space struct {
	Path        string
	Total, Free int64 // bytes of the file system
	Reserve     int64 // below so many free bytes appends are refused
	Full        bool  // they are refused
}

// Spaces tells the space of the log directories that are online and whose file systems answer.
func (m *Manager) Spaces() []Space { return m.space().list() }

func (s *diskSpace) list() (list []Space) {
	for _, d := range s.dirs.online() {
		if total, free, err := s.fs.Space(d.path); err == nil {
			list = append(list, Space{d.path, total, free, s.reserveOf(total), d.disk.Full()})
		}
	}
	return list
}
