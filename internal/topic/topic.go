// Package topic knows the rules for topic names and for the names of the directories
// that hold partitions. (Kafka classes Topic, TopicPartition and LocalLog.)
package topic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// NameLengthMax is the longest topic name: a directory name of 255 bytes less the
// longest suffix.
const NameLengthMax = 249

// Names of the topics that the broker keeps for itself.
const (
	ClusterMetadata  = "__cluster_metadata"
	ConsumerOffsets  = "__consumer_offsets"
	TransactionState = "__transaction_state"
	ShareGroupState  = "__share_group_state"
)

// A Partition names one partition of a topic.
type Partition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's directory: topic, dash, partition.
func (p Partition) String() string {
	return p.Topic + "-" + strconv.Itoa(int(p.Partition))
}

// Compare orders by topic, then partition.
func (p Partition) Compare(q Partition) int {
	return cmp.Or(strings.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition))
}

// ParsePartition is the inverse of String: it splits at the last dash.
func ParsePartition(dir string) (Partition, error) {
	i := strings.LastIndexByte(dir, '-')
	if i <= 0 || i == len(dir)-1 {
		return Partition{}, fmt.Errorf("%q is not a partition directory: want topic-partition", dir)
	}
	n, err := strconv.ParseUint(dir[i+1:], 10, 31) // which takes no sign
	if err != nil {
		return Partition{}, fmt.Errorf("%q is not a partition directory: %q is not a partition number", dir, dir[i+1:])
	}
	return Partition{dir[:i], int32(n)}, nil
}

// ValidateName says what is wrong with a topic name, or returns nil.
func ValidateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("topic name is empty")
	case name == "." || name == "..":
		return fmt.Errorf("topic name cannot be %q", name)
	case len(name) > NameLengthMax:
		return fmt.Errorf("topic name is %d characters long, at most %d are allowed: %q", len(name), NameLengthMax, name)
	}
	for i := range len(name) {
		if c := name[i]; !isLegal(c) {
			return fmt.Errorf("topic name %q has the illegal character %q: only ASCII letters, digits, '.', '_' and '-' are allowed", name, rune(c))
		}
	}
	return nil
}

func isLegal(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// CollisionKey is equal for names that would share a metric name: '.' and '_' count as
// the same character. Kafka refuses to create the second of two such topics.
func CollisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

// IsInternal reports whether clients may read but not write the topic.
func IsInternal(name string) bool {
	return name == ConsumerOffsets || name == TransactionState || name == ShareGroupState
}
