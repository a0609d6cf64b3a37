package offline

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// remoteIndexDir is Kafka's cache for tiered storage.
const remoteIndexDir = "remote-log-index-cache"

// A surrounding is what a log directory says about its partitions.
type surrounding struct {
	dir     string
	isDir   bool // false: nothing says that it is a log directory
	meta    checkpoint.MetaProperties
	clean   bool
	kraft   bool
	offsets map[string]map[topic.Partition]int64 // by the checkpoint's name
	topics  topics
}

func (c *checking) exists(path string) bool {
	_, err := c.o.FS.Stat(path)
	return err == nil
}

// topics are what the metadata log says about them.
type topics struct {
	ids     map[string]uuid.UUID
	compact map[string]bool
}

// readLogDir reads the files of a log directory. What is wrong with them is reported if the
// whole directory is checked.
func (c *checking) readLogDir(ctx context.Context, dir string, d *dirCheck) (*surrounding, error) {
	s := &surrounding{dir: dir, offsets: map[string]map[topic.Partition]int64{}}
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
		kind, _ := classify(e.Name())
		switch {
		case e.IsDir() && e.Name() == metadataDir:
			err = c.readTopics(ctx, path, &s.topics)
		case e.IsDir():
		case kind == offsetCheckpoint:
			err = s.readOffsets(c, path, found)
		case kind == cleanShutdown:
			s.clean = true
		case kind == metaProperties:
			err = s.readMeta(c, path, found)
		case kind == leftover && c.exists(path):
			found.note(path, -1, -1, "left over: %s", leftovers[filepath.Ext(path)])
		case kind == cleanState:
			err = c.checkCleanState(path, found)
		case kind == kraftSnapshot:
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

func (s *surrounding) readMeta(c *checking, path string, found *collector) error {
	m, err := checkpoint.ReadMetaProperties(c.o.FS, path)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		found.damage(path, -1, -1, "%s", reason(err))
		return nil
	}
	s.isDir, s.meta, s.kraft = true, m, !m.DirectoryID.IsZero()
	return err
}

// checkCleanState looks at gregor-clean-state: "GCS1", then the CRC-32C of what follows. It is a
// hint that saves time, so that damage to it is no more than a note.
func (c *checking) checkCleanState(path string, found *collector) error {
	data, err := vfs.ReadFile(c.o.FS, path, indexSizeMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(data) < 8 || string(data[:4]) != "GCS1" || crc32.Checksum(data[8:], castagnoli) != binary.BigEndian.Uint32(data[4:]) {
		found.note(path, -1, -1, "damaged; the next start of gregor takes longer without it")
	}
	return nil
}

func (s *surrounding) readOffsets(c *checking, path string, found *collector) error {
	m, err := checkpoint.ReadOffsets(c.o.FS, path)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		found.damage(path, -1, -1, "%s", reason(err))
		return nil
	}
	s.offsets[filepath.Base(path)] = m
	return err
}

// report looks at what the files of the directory say together.
func (s *surrounding) report(d *dirCheck, found *collector) {
	if !s.clean {
		found.note(s.dir, -1, -1, "no clean stop: %s is missing; a broker runs, or the next start recovers", checkpoint.CleanShutdown)
	}
	if !d.logDir {
		return
	}
	here := map[topic.Partition]bool{}
	for _, p := range d.partitions {
		name, aside, ok := parseDir(p.dir)
		switch {
		case aside != "":
			found.note(p.dir, -1, -1, "%s", aside)
		case !ok:
			found.note(p.dir, -1, -1, "holds segments, but its name is no partition's")
		}
		here[name] = true
	}
	s.missing(found, checkpoint.RecoveryPoints, checkpoint.HighWatermarks)
	s.missing(found, checkpoint.HighWatermarks, checkpoint.RecoveryPoints)
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
func (s *surrounding) missing(found *collector, name, other string) {
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

// tell gives each partition what is known about it.
func (s *surrounding) tell(partitions []*partition) {
	get := func(file string, p topic.Partition) int64 {
		if v, ok := s.offsets[file][p]; ok && v >= 0 {
			return v
		}
		return unknown
	}
	for _, p := range partitions {
		name, aside, ok := parseDir(p.dir)
		if aside != "" || !ok {
			continue
		}
		p.known = known{
			recoveryPoint: get(checkpoint.RecoveryPoints, name), highWatermark: get(checkpoint.HighWatermarks, name),
			logStart: get(checkpoint.LogStartOffsets, name), cleaned: get(checkpoint.CleanerOffsets, name),
			clean: s.clean, kraft: s.kraft, topicID: s.topics.ids[name.Topic], compacted: s.topics.compact[name.Topic],
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

const metadataDir = topic.ClusterMetadata + "-0"

// readTopics collects what the metadata log says about topics, snapshots first. Damage in it
// is for its own check to report.
func (c *checking) readTopics(ctx context.Context, dir string, t *topics) error {
	entries, err := c.o.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	t.ids, t.compact = map[string]uuid.UUID{}, map[string]bool{}
	names := map[uuid.UUID]string{}
	for _, want := range []fileKind{kraftSnapshot, logFile} {
		for _, e := range entries {
			if kind, _ := classify(e.Name()); kind != want || e.IsDir() {
				continue
			}
			if err := c.eachRecord(ctx, filepath.Join(dir, e.Name()), func(r metadata.Record) { t.apply(r, names) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *topics) apply(r metadata.Record, names map[uuid.UUID]string) {
	switch r := r.(type) {
	case *metadata.TopicRecord:
		t.ids[r.Name], names[r.TopicID] = r.TopicID, r.Name
	case *metadata.RemoveTopicRecord:
		delete(t.ids, names[r.TopicID])
	case *metadata.ConfigRecord:
		if r.ResourceType == topicResource && r.Name == "cleanup.policy" && r.Value != nil && strings.Contains(*r.Value, "compact") {
			t.compact[r.ResourceName] = true // for good: what was compacted once has holes
		}
	}
}

// topicResource is the resource type of topics.
const topicResource = 2

func (c *checking) eachRecord(ctx context.Context, path string, visit func(metadata.Record)) (err error) {
	scan, err := openScanner(c.o.FS, path, 0)
	if errors.Is(err, fs.ErrNotExist) { // replaced by a newer snapshot since
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scan.close()) }()
	for {
		sp, err := scan.next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if sp.Err != nil || sp.Batch.IsControl() {
			continue
		}
		for r, err := range sp.Batch.Records() {
			if err != nil {
				break
			}
			if m, err := metadata.Decode(r.Value); err == nil {
				visit(m)
			}
		}
	}
}
