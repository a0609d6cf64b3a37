package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Record is what a consumer of Kafka's saw.
type Record struct {
	Topic         string
	Partition     int32
	Offset        int64
	Timestamp     int64
	TimestampType string // CreateTime, LogAppendTime, NoTimestampType
	LeaderEpoch   *int32 // nil: none
	Key, Value    []byte // nil is null
	Headers       []Header
}

// A Header of a record.
type Header struct {
	Name  string
	Value []byte // nil is null
}

// UnmarshalJSON reads [name, value].
func (h *Header) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&h.Name, &h.Value})
}

// Offsets are what Kafka answers about a partition.
type Offsets struct {
	Topic          string
	Partition      int32
	LogStart       int64
	HighWatermark  int64 // and the log end
	LastStable     int64
	Records        int      // how many Records there are
	ByTimestamp    []Answer // ListOffsets by timestamp
	MaxTimestamp   *Answer  // nil where the release cannot say
	EarliestLocal  *Answer
	SegmentOffsets []int64 // ListOffsets 0 of 0.8.2.2, newest first
}

// ID returns the partition.
func (o *Offsets) ID() topic.Partition {
	return topic.Partition{Topic: o.Topic, Partition: o.Partition}
}

// An Answer of ListOffsets. Offset and Timestamp are -1 for none.
type Answer struct {
	Query       int64 // the timestamp
	Offset      int64
	Timestamp   int64
	LeaderEpoch *int32
}

// A Topic as Kafka's Admin describes it.
type Topic struct {
	Topic      string
	TopicID    string // "" before 2.8
	Partitions int
	Replicas   int
	Configs    map[string]string // set on the topic
}

// name returns the name of one of the expected files.
func (d Dir) name(suffix string) string { return d.Set + "." + d.Name + "." + suffix }

// Records returns what a read_uncommitted consumer reads, by partition, in order of offsets.
func (d Dir) Records(t testing.TB) map[topic.Partition][]Record {
	t.Helper()
	records := map[topic.Partition][]Record{}
	for decoder := json.NewDecoder(bytes.NewReader(d.RecordLines(t))); ; {
		var r Record
		err := decoder.Decode(&r)
		if err == io.EOF {
			return records
		}
		if err != nil {
			t.Fatal(err)
		}
		id := topic.Partition{Topic: r.Topic, Partition: r.Partition}
		records[id] = append(records[id], r)
	}
}

// RecordLines returns the same as JSON, one record a line, sorted by topic, partition, offset.
func (d Dir) RecordLines(t testing.TB) []byte {
	t.Helper()
	return File(t, d.name("records.jsonl.gz"))
}

// Uncommitted returns the offsets of Records that a read_committed consumer does not get:
// those of aborted transactions, and all from the last stable offset on.
func (d Dir) Uncommitted(t testing.TB) map[topic.Partition]map[int64]bool {
	t.Helper()
	list := map[topic.Partition]map[int64]bool{}
	name := d.name("uncommitted.txt")
	if !exists(name) {
		return list // no transactions
	}
	for line := range strings.Lines(string(File(t, name))) {
		var dir string
		var offset int64
		if _, err := fmt.Sscan(line, &dir, &offset); err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
		id, err := topic.ParsePartition(dir)
		if err != nil {
			t.Fatal(err)
		}
		if list[id] == nil {
			list[id] = map[int64]bool{}
		}
		list[id][offset] = true
	}
	return list
}

// Offsets returns what Kafka answers about each partition.
func (d Dir) Offsets(t testing.TB) []Offsets {
	t.Helper()
	var all struct{ Partitions []Offsets }
	unmarshal(t, d.name("offsets.json.gz"), &all)
	return all.Partitions
}

// Topics describes the topics of a set by name.
func Topics(t testing.TB, set string) map[string]Topic {
	t.Helper()
	var list []Topic
	unmarshal(t, set+".topics.json.gz", &list)
	topics := map[string]Topic{}
	for _, topic := range list {
		topics[topic.Topic] = topic
	}
	return topics
}

// Damage returns what was done to the crash set to make the torn one: for each file, by its
// name in the archive, the position of the batch, or -1.
func Damage(t testing.TB) map[string]int64 {
	t.Helper()
	damage := map[string]int64{}
	for line := range strings.Lines(string(File(t, "kafka-4.4.0-torn.damage.txt"))) {
		file, what, _ := strings.Cut(line, " ")
		position := int64(-1)
		if _, after, ok := strings.Cut(what, "at position "); ok {
			if _, err := fmt.Sscan(after, &position); err != nil {
				t.Fatal(err)
			}
		}
		damage["data/"+file] = position
	}
	return damage
}

func unmarshal(t testing.TB, name string, to any) {
	t.Helper()
	if err := json.Unmarshal(File(t, name), to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
