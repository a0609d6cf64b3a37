package check

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// remoteIndexDir is Kafka's cache for tiered storage.
const remoteIndexDir = "remote-log-index-cache"

// A logDir is what a log directory says about its partitions.
type logDir struct {
	dir     string
	isDir   bool // false: nothing says that it is a log directory
	meta    checkpoint.MetaProperties
	hasMeta bool // meta.properties is there, readable or not
	clean   bool
	kraft   bool
	offsets map[string]map[topic.Partition]int64 // by the checkpoint's name
	empty   []string                             // checkpoints of no bytes
	sizes   map[topic.Partition]map[int64]int64  // of .log files at the last stop, if it was a clean one of gregor
	topics  topics
}

func (c *checkRun) exists(path string) bool {
	_, err := c.o.FS.Stat(path)
	return err == nil
}

// readLogDir reads the files of a log directory. What is wrong with them is reported if the
// whole directory is checked.
func (c *checkRun) readLogDir(ctx context.Context, dir string, d *dirCheck) (*logDir, error) {
	s := &logDir{dir: dir, offsets: map[string]map[topic.Partition]int64{}}
	found := d.collector
	if !d.logDir {
		found = &collector{} // not asked for
	}
	entries, err := c.o.FS.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		kind, _ := files.Classify(e.Name())
		switch {
		case e.IsDir() && e.Name() == metadataDir:
			err = c.readTopics(ctx, path, &s.topics)
		case e.IsDir():
		case kind == files.OffsetCheckpoint:
			err = s.readOffsets(c, path, found)
		case kind == files.CleanShutdown:
			s.clean = true
		case kind == files.MetaProperties:
			err = s.readMeta(c, path, found)
		case kind == files.Leftover && c.exists(path):
			found.note(path, -1, -1, "left over: %s", files.LeftoverReason(path))
		case kind == files.CleanState:
			err = s.readCleanState(c, path, found)
		case kind == files.LeftAlone:
			err = c.checkLeftAlone(path, found)
		case kind == files.KRaftSnapshot:
			err = newPartition(c.o.FS, dir, found).checkKRaftSnapshot(ctx, path)
		}
		if err != nil {
			return nil, err
		}
	}
	s.isDir = s.isDir || len(s.offsets) > 0
	if s.isDir {
		s.report(d, found)
	}
	return s, nil
}

// readCleanState reads gregor-clean-state. It is a hint that saves time, so that damage to it is no more than a note.
func (s *logDir) readCleanState(c *checkRun, path string, found *collector) error {
	data, err := files.Read(c.o.FS, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !files.RightCleanState(data) {
		found.note(path, -1, -1, "damaged; the next start of gregor takes longer without it")
		return nil
	}
	if marker, err := c.o.FS.Stat(filepath.Join(s.dir, checkpoint.CleanShutdown)); err == nil {
		s.sizes = files.LogSizes(data, marker.ModTime())
	}
	return nil
}

// report looks at what the files of the directory say together.
func (s *logDir) report(d *dirCheck, found *collector) {
	if !s.clean {
		found.note(s.dir, -1, -1, "no clean stop: %s is missing; a broker runs, or the next start recovers", checkpoint.CleanShutdown)
	}
	if !d.logDir {
		return
	}
	here := map[topic.Partition]bool{}
	for _, p := range d.partitions {
		name, aside, ok := files.ParseDir(p.dir)
		switch {
		case aside != "":
			found.note(p.dir, -1, -1, "%s", aside)
		case !ok:
			found.note(p.dir, -1, -1, "holds segments, but its name is no partition's")
		}
		here[name] = true
	}
	s.reportOffsets(found, here)
	s.reportMeta(found, d.partitions)
}

// lists reports whether one of the two checkpoints that a clean stop writes for every partition
// has one, so that it is missing where the other has not.
func (s *logDir) lists(p topic.Partition) bool {
	points, marks := s.offsets[checkpoint.RecoveryPoints], s.offsets[checkpoint.HighWatermarks]
	if !s.clean || points == nil || marks == nil {
		return false
	}
	_, point := points[p]
	_, mark := marks[p]
	return point || mark
}

// tell gives each partition what is known about it.
func (s *logDir) tell(partitions []*partition) {
	get := func(file string, p topic.Partition) int64 {
		if v, ok := s.offsets[file][p]; ok && v >= 0 {
			return v
		}
		return unknown
	}
	for _, p := range partitions {
		name, aside, ok := files.ParseDir(p.dir)
		p.known.aside = aside != ""
		if aside != "" || !ok {
			continue
		}
		p.known = known{
			leaderEpoch: s.topics.leaderEpoch(name), spread: s.topics.coordinatorPartitions(name.Topic), nodeID: s.meta.NodeID,
			recoveryPoint: get(checkpoint.RecoveryPoints, name), highWatermark: get(checkpoint.HighWatermarks, name),
			logStart: get(checkpoint.LogStartOffsets, name), cleaned: get(checkpoint.CleanerOffsets, name),
			around: s.isDir, clean: s.clean, listed: s.lists(name), kraft: s.kraft, topicID: s.topics.ids[name.Topic], compacted: s.topics.compact[name.Topic],
			sizes: s.sizes[name],
		}
		switch {
		case name.Topic == topic.ClusterMetadata:
			p.records = decodeMetadata
			p.topicID = uuid.Zero
		case s.topics.ids != nil && p.topicID.IsZero():
			p.note(p.dir, -1, -1, "the metadata log has no topic of this name, so that the partition is a stray")
		}
	}
}

// decodeMetadata reports records of the metadata log that cannot be understood.
func decodeMetadata(_ record.Batch, r *record.Record) error {
	_, err := metadata.Decode(r.Value)
	return err
}
