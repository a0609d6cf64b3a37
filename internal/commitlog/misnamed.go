package commitlog

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/segment"
)

// misnamedSuffix is added to the name of a .log file whose batches belong in front of it: a copy under
// another name, or a file of another log. Everybody passes by it then, Kafka too, and nobody removes it.
const misnamedSuffix = ".misnamed"

// setAsideMisnamed renames .log files that have the batches of another segment, and returns those that
// are left. A file that came here without indexes is looked at, and the last one.
func (l *Log) setAsideMisnamed(dir string, names []string, segments []*segment.Segment) ([]*segment.Segment, error) {
	var kept []*segment.Segment
	for i, s := range segments {
		_, indexed := slices.BinarySearch(names, segment.Name(s.BaseOffset(), segment.IndexFile, ""))
		bad := false
		if !indexed || i == len(segments)-1 {
			var err error
			if bad, err = isMisnamed(s, kept); err != nil {
				return nil, err
			}
		}
		if !bad {
			kept = append(kept, s)
			continue
		}
		if err := l.setAside(dir, s); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// isMisnamed reports whether a segment is another's copy; before are those in front of it. One batch
// below the base may be there because of one bit of its offset, unless the segment in front goes on
// beyond the base as well.
func isMisnamed(s *segment.Segment, before []*segment.Segment) (bool, error) {
	count, err := s.FirstBelowBase()
	if err != nil || count != 1 || len(before) == 0 {
		return count > 1, err
	}
	end, err := before[len(before)-1].NextOffset()
	if errors.Is(err, segment.ErrCorrupt) {
		return false, nil
	}
	return end > s.BaseOffset(), err
}

func (l *Log) setAside(dir string, s *segment.Segment) error {
	from := filepath.Join(dir, segment.Name(s.BaseOffset(), segment.LogFile, ""))
	l.logger.Error("file has batches from below the offset in its name, it is set aside", "partition", l.partition, "file", from, "now", from+misnamedSuffix)
	if err := s.Close(); err != nil {
		return err
	}
	if err := l.fs.Rename(from, from+misnamedSuffix); err != nil {
		return err
	}
	return l.fs.SyncDir(dir)
}
