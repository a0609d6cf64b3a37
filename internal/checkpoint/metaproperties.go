package checkpoint

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gregor-kafka/gregor/internal/properties"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// NoNode is the node id of a file that names none.
const NoNode = -1

// MetaProperties says which cluster and which broker a log directory belongs to.
type MetaProperties struct {
	Version     int       // 1 since KRaft; 0 is that of a broker with ZooKeeper. Written is always 1
	ClusterID   string    // any text; "" when version 0 has none
	NodeID      int32     // broker.id in version 0; NoNode when version 0 has none
	DirectoryID uuid.UUID // zero when the file is older than KIP-858
}

// ReadMetaProperties reads a meta.properties file of version 0 or 1. One that is missing
// is an error that matches fs.ErrNotExist.
func ReadMetaProperties(fsys vfs.FS, path string) (MetaProperties, error) {
	data, err := vfs.ReadFile(fsys, path, math.MaxUint16)
	if err != nil {
		return MetaProperties{}, err
	}
	m, err := parseMetaProperties(data)
	if err != nil {
		return MetaProperties{}, &CorruptError{Path: path, Err: err}
	}
	return m, nil
}

func parseMetaProperties(data []byte) (MetaProperties, error) {
	p := make(map[string]string)
	for property, err := range properties.Parse(data) {
		if err != nil {
			return MetaProperties{}, err
		}
		p[property.Key] = property.Value
	}
	m := MetaProperties{ClusterID: p["cluster.id"], NodeID: NoNode}
	var err error
	if text, ok := p["directory.id"]; ok {
		if m.DirectoryID, err = uuid.Parse(text); err != nil {
			return MetaProperties{}, fmt.Errorf("directory.id=%s: %w", text, err)
		}
	}
	switch version, ok := p["version"]; {
	case !ok || version == "0":
		m.NodeID, err = nodeID(p, "broker.id")
	case version == "1":
		m.Version = 1
		if m.ClusterID == "" {
			return MetaProperties{}, fmt.Errorf("no cluster.id, which version 1 needs")
		}
		if m.NodeID, err = nodeID(p, "node.id"); err == nil && m.NodeID == NoNode {
			err = fmt.Errorf("no node.id, which version 1 needs")
		}
	default:
		err = fmt.Errorf("version=%s is not supported: want 0 or 1", version)
	}
	if err != nil {
		return MetaProperties{}, err
	}
	return m, nil
}

func nodeID(p map[string]string, key string) (int32, error) {
	text, ok := p[key]
	if !ok {
		return NoNode, nil
	}
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id < 0 {
		return NoNode, fmt.Errorf("%s=%s: want a number from 0 to %d", key, text, math.MaxInt32)
	}
	return int32(id), nil
}

// WriteMetaProperties replaces the file, as version 1. now stands in a comment.
func WriteMetaProperties(fsys vfs.FS, path string, m MetaProperties, now time.Time) error {
	return vfs.WriteFileAtomic(fsys, path, appendMetaProperties(nil, m, now))
}

func appendMetaProperties(b []byte, m MetaProperties, now time.Time) []byte {
	b = append(b, "#\n#"...)
	b = append(now.AppendFormat(b, "Mon Jan 02 15:04:05 MST 2006"), '\n')
	b = appendProperty(b, "cluster.id", m.ClusterID)
	b = appendProperty(b, "version", "1")
	if !m.DirectoryID.IsZero() {
		b = appendProperty(b, "directory.id", m.DirectoryID.String())
	}
	return appendProperty(b, "node.id", strconv.Itoa(int(m.NodeID)))
}
