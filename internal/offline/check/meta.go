package check

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/properties"
	"github.com/gregor-kafka/gregor/vfs"
)

// readMeta reads meta.properties. Whoever writes it ends its last line.
func (s *logDir) readMeta(c *checkRun, path string, found *collector) error {
	s.hasMeta = true
	data, err := vfs.ReadFile(c.o.FS, path, 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := checkpoint.ReadMetaProperties(c.o.FS, path)
	switch {
	case errors.Is(err, checkpoint.ErrCorrupt):
		found.damage(path, -1, -1, "%s", reason(err))
		return nil
	case err != nil:
		return err
	case len(data) == 0 || data[len(data)-1] != '\n':
		found.damage(path, int64(len(data)), -1, "cut off: the last line has no end")
	case m.NodeID == checkpoint.NoNode && m.ClusterID == "":
		found.damage(path, -1, -1, "neither broker.id nor cluster.id")
	case m.ClusterID != "" && !kafkaID(m.ClusterID):
		found.note(path, -1, -1, "cluster.id %s is not one that Kafka makes; if it was not chosen by hand, it is damaged", m.ClusterID)
	}
	for property, err := range properties.Parse(data) {
		if err == nil && !slices.Contains(metaKeys, property.Key) {
			found.note(path, -1, -1, "key %q is none of Kafka's: one of those may be damaged", property.Key)
		}
	}
	s.isDir, s.meta, s.kraft = true, m, !m.DirectoryID.IsZero()
	return nil
}

var metaKeys = []string{"version", "broker.id", "node.id", "cluster.id", "directory.id"}

// kafkaID reports whether a text is an id as Kafka makes them: 16 bytes in URL-safe base64.
func kafkaID(text string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(b) == 16
}

// reportMeta reports a log directory without meta.properties. Kafka 0.8 writes it only where it
// has chosen broker.id itself, later ones always; they keep leader epochs too.
func (s *logDir) reportMeta(found *collector, partitions []*partition) {
	if s.hasMeta {
		return
	}
	path := filepath.Join(s.dir, checkpoint.MetaPropertyFile)
	modern := slices.ContainsFunc(partitions, func(p *partition) bool { return p.exists(checkpoint.LeaderEpochs) })
	if modern && (s.clean || s.topics.ids != nil) {
		found.damage(path, -1, -1, "missing; nothing says which cluster and which broker the directory belongs to")
	} else {
		found.note(path, -1, -1, "missing; Kafka 0.8 writes none where broker.id was set, and a copy may do without")
	}
}

func (p *partition) exists(name string) bool {
	_, err := p.fs.Stat(filepath.Join(p.dir, name))
	return err == nil
}
