package check

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// offsetsIn reads a file in the form of an offset checkpoint. What is damaged in it is reported; it is not
// ok if entries are.
func (c *checkRun) offsetsIn(path string, found *collector) (m map[topic.Partition]int64, ok bool, err error) {
	m, err = checkpoint.ReadOffsets(c.o.FS, path)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		found.damage(path, -1, -1, "%s", reason(err))
		return m, checkpoint.Whole(err), nil
	}
	return m, err == nil, err
}

func (s *logDir) readOffsets(c *checkRun, path string, found *collector) error {
	m, ok, err := c.offsetsIn(path, found)
	if !ok {
		return err
	}
	if info, err := c.o.FS.Stat(path); err == nil && info.Size() == 0 {
		s.empty = append(s.empty, filepath.Base(path))
	}
	s.offsets[filepath.Base(path)] = m
	return nil
}

// reportOffsets looks at the checkpoints of a log directory together. here are the partitions
// that lie in it.
func (s *logDir) reportOffsets(found *collector, here map[topic.Partition]bool) {
	s.missing(found, checkpoint.RecoveryPoints, checkpoint.HighWatermarks)
	s.missing(found, checkpoint.HighWatermarks, checkpoint.RecoveryPoints)
	s.reportEmpty(found)
	if _, ok := s.offsets[checkpoint.LogStartOffsets]; !ok && s.kraft && s.offsets[checkpoint.RecoveryPoints] != nil {
		found.note(filepath.Join(s.dir, checkpoint.LogStartOffsets), -1, -1, "missing; records that were deleted may be back")
	}
	for name, m := range s.offsets {
		path := filepath.Join(s.dir, name)
		var strangers []string
		for p, offset := range m {
			if !here[p] {
				strangers = append(strangers, p.String())
			} else if offset < 0 {
				found.damage(path, -1, -1, "offset %d of %v", offset, p)
			}
		}
		if n := len(strangers); n > 0 {
			slices.Sort(strangers)
			found.note(path, -1, -1, "%d partitions are not here: %s", n, strings.Join(strangers[:min(n, 5)], ", "))
		}
	}
}

// missing reports a checkpoint that is not there: whoever writes the other writes both. Without
// either the partitions were put here by hand. A new broker writes its first recovery points
// later than the other.
func (s *logDir) missing(found *collector, name, other string) {
	_, here := s.offsets[name]
	path := filepath.Join(s.dir, name)
	corrupt := slices.ContainsFunc(found.findings, func(f Finding) bool { return f.File == path })
	if _, both := s.offsets[other]; !both || here || corrupt {
		return
	}
	if name == checkpoint.RecoveryPoints && !s.clean {
		found.note(path, -1, -1, "missing; if no broker runs, the next start recovers all there is")
	} else {
		found.damage(path, -1, -1, "missing")
	}
}

// reportEmpty reports checkpoints of no bytes. Kafka makes them so when it starts the first time;
// what it writes has two lines at least, and at a clean stop it writes all but the cleaner's.
func (s *logDir) reportEmpty(found *collector) {
	for _, name := range s.empty {
		path := filepath.Join(s.dir, name)
		switch {
		case name == checkpoint.CleanerOffsets:
		case s.clean:
			found.damage(path, -1, -1, "empty; a clean stop writes it")
		default:
			found.note(path, -1, -1, "empty; a broker that was killed within a minute of its first start leaves that")
		}
	}
}

// reportMoved reports entries of a checkpoint for partitions that lie in another directory of
// the same broker: after a clean stop no move explains them. The file of the one is then in the
// place of the other's.
func (s *logDir) reportMoved(found *collector, partitions map[topic.Partition]string) {
	for _, name := range []string{checkpoint.RecoveryPoints, checkpoint.LogStartOffsets, checkpoint.HighWatermarks} {
		var first topic.Partition
		count := 0
		for p := range s.offsets[name] {
			if dir, ok := partitions[p]; ok && filepath.Dir(dir) != s.dir {
				if count++; count == 1 || p.Compare(first) < 0 {
					first = p
				}
			}
		}
		if count == 0 {
			continue
		}
		severity := Note
		if s.clean {
			severity = Damage
		}
		found.add(Finding{filepath.Join(s.dir, name), -1, -1, severity, itoa(int64(count)) + " partitions lie in other directories: " +
			first.String() + " in " + partitions[first]})
	}
}
