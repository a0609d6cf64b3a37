package api

import (
	"bytes"
	"maps"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// TestOldDirectories serves the directories of Kafka 0.8.2.2, 0.10.2.2 and 1.1.1, in message
// formats v0, v1 and v2, to clients of all versions of Fetch.
func TestOldDirectories(t *testing.T) {
	for _, set := range []string{"kafka-0.8.2.2", "kafka-0.10.2.2", "kafka-1.1.1-mixed"} {
		t.Run(set, func(t *testing.T) {
			dir := golden.Dir{Set: set, Name: "data"}
			partitions, records := dir.Offsets(t), dir.Records(t)
			c := newNode(t, inMetadata(t, set, partitions), "data").client()
			for _, p := range partitions {
				id := p.ID()
				for _, v := range []int16{0, 1, 2, 3, 4, 11, 12} {
					got := c.readAll(v, id, p.LogStart, p.HighWatermark)
					if want := asVersion(v, records[id]); !reflect.DeepEqual(got, want) { // cmp takes long
						t.Errorf("%v, fetch version %d: (-want +got)\n%s", id, v, cmp.Diff(want, got))
					}
				}
				if p.SegmentOffsets != nil {
					c.checkSegmentOffsets(id, p.SegmentOffsets)
				}
			}
		})
	}
}

// inMetadata returns a golden set on a file system with metadata of its partitions, which node 1 leads.
func inMetadata(t *testing.T, set string, partitions []golden.Offsets) vfs.FS {
	t.Helper()
	fsys := vfs.NewMem()
	n := newNode(t, fsys, "data")
	n.host(partitions)
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		if err := vfs.RemoveAll(fsys, path.Join("data", p.ID().String())); err != nil {
			t.Fatal(err)
		}
	}
	golden.UnpackIf(t, fsys, "", set, func(name string) bool {
		return path.Base(name) != "meta.properties" // the identity of the broker that wrote it
	})
	return fsys
}

// host makes the node lead the partitions.
func (n *node) host(partitions []golden.Offsets) {
	counts := map[string]int32{}
	for _, p := range partitions {
		counts[p.Topic] = max(counts[p.Topic], p.Partition+1)
	}
	id := byte(100)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		var list []*metadata.PartitionRecord
		for range counts[name] {
			list = append(list, testPartition(testNode, testNode))
		}
		n.Commit(testTopic(name, id, list...)...)
		id++
	}
}

// asVersion returns what clients of a version can see of records.
func asVersion(version int16, records []golden.Record) []golden.Record {
	records = slices.Clone(records)
	for i := range records {
		if version < 4 {
			records[i].Headers, records[i].LeaderEpoch = []golden.Header{}, nil
		}
		if version < 2 {
			records[i].Timestamp, records[i].TimestampType = -1, record.NoTimestamp.String()
		}
	}
	return records
}

// readAll fetches a partition from start to end.
func (c *client) readAll(version int16, id topic.Partition, start, end int64) (list []golden.Record) {
	c.t.Helper()
	for start < end {
		req := fetchRequest(id.Partition, start)
		req.Topics[0].Topic = id.Topic
		req.Topics[0].Partitions[0].PartitionMaxBytes = 10_000
		got := call[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || got.HighWatermark != end {
			c.t.Fatalf("%v, version %d at %d: got error %d and high watermark %d, want %d", id, version, start, got.ErrorCode, got.HighWatermark, end)
		}
		before := start
		for b := range record.Batches(got.RecordBatches) {
			for r, err := range b.Records() {
				if err != nil {
					c.t.Fatal(err)
				}
				if r.Offset >= start && !b.IsControl() {
					list = append(list, goldenOf(id, b, r))
				}
				start = max(start, r.Offset+1)
			}
			if version >= 4 {
				start = max(start, b.NextOffset()) // an old client cannot know what is missing
			}
		}
		if start == before {
			return list // what is left are control records, or compaction took it
		}
	}
	return list
}

func goldenOf(id topic.Partition, b record.Batch, r record.Record) golden.Record {
	g := golden.Record{Topic: id.Topic, Partition: id.Partition, Offset: r.Offset, Timestamp: r.Timestamp,
		TimestampType: r.TimestampType.String(), Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Headers: []golden.Header{}}
	if epoch := b.LeaderEpoch(); b.Magic() == 2 && epoch >= 0 {
		g.LeaderEpoch = &epoch
	}
	for _, h := range r.Headers {
		g.Headers = append(g.Headers, golden.Header{Name: h.Key, Value: bytes.Clone(h.Value)})
	}
	return g
}

func (c *client) checkSegmentOffsets(id topic.Partition, want []int64) {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = id.Topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.MaxNumOffsets = id.Partition, commitlog.Latest, 100
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	got := call[*kmsg.ListOffsetsResponse](c, 0, req).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || !slices.Equal(got.OldStyleOffsets, want) {
		c.t.Errorf("%v: got segments at %v, error %d, want %v", id, got.OldStyleOffsets, got.ErrorCode, want)
	}
}
