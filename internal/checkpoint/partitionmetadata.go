package checkpoint

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// PartitionMetadata is what a partition directory says about itself.
type PartitionMetadata struct {
	Version int32 // 0 today; a later one is read all the same
	TopicID uuid.UUID
}

// ReadPartitionMetadata reads a partition.metadata file. One that is missing is an error
// that matches fs.ErrNotExist: Kafka before 2.8 wrote none.
func ReadPartitionMetadata(fsys vfs.FS, path string) (PartitionMetadata, error) {
	data, err := vfs.ReadFile(fsys, path, math.MaxUint16)
	if err != nil {
		return PartitionMetadata{}, err
	}
	m, err := parsePartitionMetadata(data)
	if err != nil {
		return PartitionMetadata{}, &CorruptError{Path: path, Err: err}
	}
	return m, nil
}

func parsePartitionMetadata(data []byte) (m PartitionMetadata, err error) {
	m.Version = -1
	for line := range bytes.Lines(data) {
		key, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if !ok {
			return m, fmt.Errorf("%q is not \"key: value\"", line)
		}
		switch value := trim(value); string(key) {
		case "version":
			var n int64
			n, err = strconv.ParseInt(value, 10, 32)
			m.Version = int32(n)
		case "topic_id":
			m.TopicID, err = uuid.Parse(value)
		}
		if err != nil {
			return m, err
		}
	}
	switch {
	case m.Version < 0:
		return m, fmt.Errorf("no valid version")
	case m.TopicID.IsZero():
		return m, fmt.Errorf("no valid topic_id")
	}
	return m, nil
}

// WritePartitionMetadata replaces the file. It must be durable before the first record
// of the partition: a log without a topic id is a stray to a KRaft broker.
func WritePartitionMetadata(fsys vfs.FS, path string, topicID uuid.UUID) error {
	return vfs.WriteFileAtomic(fsys, path, []byte("version: 0\ntopic_id: "+topicID.String()))
}
