package api

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A goldenRecord is what a consumer of Kafka's saw.
type goldenRecord struct {
	Topic         string
	Partition     int32
	Offset        int64
	Timestamp     int64
	TimestampType string
	Key, Value    *string // base64
	Headers       [][2]*string
}

type goldenPartition struct {
	Topic          string
	Partition      int32
	LogStart       int64
	HighWatermark  int64
	SegmentOffsets []int64 // what ListOffsets 0 answers
}

// TestOldDirectories serves the directories of Kafka 0.8.2.2, 0.10.2.2 and 1.1.1, in message
// formats v0, v1 and v2, to clients of all versions of Fetch.
func TestOldDirectories(t *testing.T) {
	for _, set := range []string{"kafka-0.8.2.2", "kafka-0.10.2.2", "kafka-1.1.1-mixed"} {
		t.Run(set, func(t *testing.T) {
			var golden struct{ Partitions []goldenPartition }
			b, err := os.ReadFile(filepath.Join("testdata", set+".json"))
			if err == nil {
				err = json.Unmarshal(b, &golden)
			}
			if err != nil {
				t.Fatal(err)
			}
			fsys := vfs.NewMem()
			unpack(t, fsys, filepath.Join("testdata", set+".tar.gz"))
			c := startNode(t, fsys, "data", nil).host(golden.Partitions).client()
			records := readGolden(t, filepath.Join("testdata", set+".jsonl.gz"))
			for _, p := range golden.Partitions {
				id := topic.Partition{Topic: p.Topic, Partition: p.Partition}
				for _, v := range []int16{0, 1, 2, 3, 4, 11, 12} {
					got := c.readAll(v, id, p.LogStart, p.HighWatermark)
					if diff := cmp.Diff(asVersion(v, records[id]), got); diff != "" {
						t.Errorf("%v, fetch version %d: (-want +got)\n%s", id, v, diff)
					}
				}
				if p.SegmentOffsets != nil {
					c.checkSegmentOffsets(id, p.SegmentOffsets)
				}
			}
		})
	}
}

// host makes the node lead the partitions.
func (n *node) host(partitions []goldenPartition) *node {
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
		n.apply(testTopic(name, id, list...)...)
		id++
	}
	return n
}

// unpack makes a directory of an archive, without the identity of the broker that wrote it.
func unpack(t *testing.T, fsys vfs.FS, archive string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err == nil && filepath.Base(h.Name) == "meta.properties" {
			continue
		}
		if err == nil && h.Typeflag == tar.TypeDir {
			err = vfs.MkdirAll(fsys, h.Name, 0o755)
		} else if err == nil {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = vfs.WriteFileAtomic(fsys, h.Name, b)
			}
			if err == nil {
				err = fsys.SetModTime(h.Name, h.ModTime)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readGolden(t *testing.T, path string) map[topic.Partition][]goldenRecord {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	records := map[topic.Partition][]goldenRecord{}
	for d := json.NewDecoder(z); ; {
		var r goldenRecord
		if err := d.Decode(&r); err == io.EOF {
			return records
		} else if err != nil {
			t.Fatal(err)
		}
		id := topic.Partition{Topic: r.Topic, Partition: r.Partition}
		if len(r.Headers) == 0 {
			r.Headers = nil
		}
		records[id] = append(records[id], r)
	}
}

// asVersion returns what clients of a version can see of records.
func asVersion(version int16, records []goldenRecord) []goldenRecord {
	records = slices.Clone(records)
	for i := range records {
		if version < 4 {
			records[i].Headers = nil
		}
		if version < 2 {
			records[i].Timestamp, records[i].TimestampType = -1, record.NoTimestamp.String()
		}
	}
	return records
}

// readAll fetches a partition from start to end.
func (c *client) readAll(version int16, id topic.Partition, start, end int64) (list []goldenRecord) {
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
					list = append(list, goldenOf(id, r))
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

func goldenOf(id topic.Partition, r record.Record) goldenRecord {
	g := goldenRecord{Topic: id.Topic, Partition: id.Partition, Offset: r.Offset, Timestamp: r.Timestamp,
		TimestampType: r.TimestampType.String(), Key: base64Of(r.Key), Value: base64Of(r.Value)}
	for _, h := range r.Headers {
		g.Headers = append(g.Headers, [2]*string{&h.Key, base64Of(h.Value)})
	}
	return g
}

func base64Of(b []byte) *string {
	if b == nil {
		return nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return &s
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
