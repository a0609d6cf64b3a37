package api

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

var oldCodecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4}

// messages builds a set of an old format.
func messages(t testing.TB, o record.SetOptions, values ...string) []byte {
	t.Helper()
	b, err := record.NewSetBuilder(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if err := b.Append(record.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// oldLog is a node whose logs have a message format.
func oldLog(t testing.TB, format int8) *node {
	return startNode(t, vfs.NewMem(), "data", "message.format.version", []string{"0.9.0", "0.10.0", "2.0"}[format])
}

// consume fetches partition 0 from an offset to its end, as clients of a version do, and
// returns the values. Every answer has to bring the client on.
func (c *client) consume(version int16, from int64, maxBytes int32) (list []string) {
	c.t.Helper()
	req := fetchRequest(0, from)
	p := &req.Topics[0].Partitions[0]
	p.PartitionMaxBytes = maxBytes
	for {
		got := call[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
		if got.ErrorCode != 0 {
			c.t.Fatalf("version %d at %d: got error %d", version, p.FetchOffset, got.ErrorCode)
		}
		before := p.FetchOffset
		for b, err := range record.Batches(got.RecordBatches) {
			if err == nil {
				err = b.Verify()
			}
			if err != nil || b.Magic() > newestFormat(version) {
				c.t.Fatalf("version %d at %d: got format v%d, %v", version, before, b.Magic(), err)
			}
			for r, err := range b.Records() {
				if err != nil {
					c.t.Fatal(err)
				}
				if r.Offset >= p.FetchOffset {
					list = append(list, string(r.Value))
					p.FetchOffset = r.Offset + 1
				}
			}
		}
		switch {
		case p.FetchOffset >= got.HighWatermark:
			return list
		case p.FetchOffset == before:
			c.t.Fatalf("version %d at %d of %d: got %d bytes and no record", version, before, got.HighWatermark, len(got.RecordBatches))
		}
	}
}

// Every version of Produce writes to logs of every format, and every version of Fetch reads it.
func TestEveryFormat(t *testing.T) {
	for format := range int8(3) {
		for _, codec := range oldCodecs {
			n := oldLog(t, format)
			c := n.client()
			var want []string
			for v := int16(0); v <= 13; v++ {
				var set []byte
				value := fmt.Sprintf("of version %d", v)
				if v < 3 {
					set = messages(t, record.SetOptions{Magic: int8(v / 2), Codec: codec}, value, "second")
				} else {
					set = logtest.Values(t, record.BuilderOptions{Codec: codec}, value, "second")
				}
				got := c.produce(v, 1, 0, set)
				if got.ErrorCode != 0 || got.BaseOffset != int64(len(want)) {
					t.Fatalf("v%d %v: produce version %d: got %+v, want offset %d", format, codec, v, got, len(want))
				}
				want = append(want, value, "second")
			}
			for v := int16(0); v <= 18; v++ {
				for _, from := range []int64{0, 1, 7, int64(len(want)) - 1} {
					if diff := cmp.Diff(want[from:], c.consume(v, from, 1<<20)); diff != "" {
						t.Errorf("v%d %v: fetch version %d from %d: %s", format, codec, v, from, diff)
					}
				}
			}
		}
	}
}

// Uncompressed records for old clients begin at the offset that was asked for.
func TestKAFKA5360(t *testing.T) {
	c := oldLog(t, 2).client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "a", "b", "c", "d", "e"))
	for v := int16(0); v < 4; v++ {
		got := c.fetch(v, 0, 3)
		if list := values(t, got.RecordBatches, 0); fmt.Sprint(list) != "[d e]" {
			t.Errorf("version %d: got %v, want d and e", v, list)
		}
	}
}

// A compressed set of an old client whose inner offsets were never right is taken, in logs of
// every format; a v2 batch with wrong offsets is not.
func TestKAFKA9669(t *testing.T) {
	for format := range int8(3) {
		c := oldLog(t, format).client()
		for _, codec := range oldCodecs[1:] {
			var inner []byte
			for _, v := range []string{"a", "b", "c"} { // each with offset 0
				inner = append(inner, messages(t, record.SetOptions{Magic: 1}, v)...)
			}
			set := wrapperOf(t, codec, inner)
			before := c.fetch(12, 0, 0).HighWatermark
			if got := c.produce(2, 1, 0, set); got.ErrorCode != 0 || got.BaseOffset != before {
				t.Errorf("v%d %v: got %+v", format, codec, got)
			}
			for _, v := range []int16{0, 3, 12} {
				if list := c.consume(v, before, 1<<20); fmt.Sprint(list) != "[a b c]" {
					t.Errorf("v%d %v: fetch version %d: got %v", format, codec, v, list)
				}
			}
		}
		wrong := logtest.Values(t, record.BuilderOptions{}, "a", "b")
		binary.BigEndian.PutUint32(wrong[23:], 5) // last offset delta
		record.Batch(wrong).SetMaxTimestamp(record.CreateTime, 7)
		if got := c.produce(9, 1, 0, wrong); got.ErrorCode != kerr.InvalidRecord.Code {
			t.Errorf("v%d: got error %d for a v2 batch with wrong offsets", format, got.ErrorCode)
		}
	}
}

// wrapperOf makes the v1 wrapper of an inner set.
func wrapperOf(t testing.TB, codec record.Codec, inner []byte) []byte {
	t.Helper()
	set := messages(t, record.SetOptions{Magic: 1}, string(compressed(t, codec, inner)))
	b := record.Batch(set)
	b[17] |= byte(codec)
	timestamp := b.MaxTimestamp()
	b.SetMaxTimestamp(record.CreateTime, timestamp+1) // and the checksum
	b.SetMaxTimestamp(record.CreateTime, timestamp)
	return set
}

// compressed returns the bytes as a client of that codec sends them.
func compressed(t testing.TB, codec record.Codec, p []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch codec {
	case record.Gzip:
		w := gzip.NewWriter(&b)
		w.Write(p)
		w.Close()
	case record.Snappy:
		b.Write(snappy.Encode(nil, p)) // bare
	case record.LZ4:
		w := lz4.NewWriter(&b)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
			t.Fatal(err)
		}
		w.Write(p)
		w.Close()
	}
	return b.Bytes()
}

// What is too long to be converted at once is converted while it is sent.
func TestOldFetchStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, codec := range oldCodecs {
		n := oldLog(t, 2)
		c := n.client()
		var want []string
		for range 40 {
			var of []string
			for range 1 + rng.IntN(300) {
				of = append(of, fmt.Sprintf("%d:%s", rng.Uint64(), strings.Repeat("x", rng.IntN(300))))
			}
			c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: codec}, of...))
			want = append(want, of...)
		}
		for _, v := range []int16{0, 3} {
			for _, maxBytes := range []int32{100 << 10, 50 << 20} {
				if got := n.client().consume(v, 0, maxBytes); !slices.Equal(got, want) {
					t.Errorf("%v: version %d, %d bytes: got %d records, want %d", codec, v, maxBytes, len(got), len(want))
				}
			}
		}
	}
}

// A client with a small limit gets single messages of a batch that is larger. A message that
// is larger too is cut up to version 2, for the client to see, and whole in version 3.
func TestOldFetchSmallLimit(t *testing.T) {
	c := oldLog(t, 2).client()
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("%d%s", i, strings.Repeat("y", 500)))
	}
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, want...))
	for v := int16(0); v < 4; v++ {
		if got := c.consume(v, 0, 600); !slices.Equal(got, want) {
			t.Errorf("version %d: got %d records, want %d", v, len(got), len(want))
		}
		req := fetchRequest(0, 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 100
		got := call[*kmsg.FetchResponse](c, v, req).Topics[0].Partitions[0].RecordBatches
		_, err := record.First(got)
		if v < 3 && (len(got) != 100 || err != record.ErrShort) || v == 3 && err != nil {
			t.Errorf("version %d: got %d bytes, %v", v, len(got), err)
		}
	}
}

// Where nothing is left of a stretch, old clients get what follows, or wait for it.
func TestOldFetchOfMarkers(t *testing.T) {
	n := oldLog(t, 2)
	c := n.client()
	partition, err := n.Replicas.Partition(topic.Partition{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}
	mark := func() {
		m := record.EndTxnMarker(record.EndTxn{Type: record.ControlCommit, ProducerID: 9, Timestamp: time.Now().UnixMilli()})
		if _, err := partition.Append(m, replica.AppendOptions{Origin: record.Coordinator, LeaderEpoch: replica.NoEpoch}); err != nil {
			t.Fatal(err)
		}
	}
	for range 30 {
		mark()
	}
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "behind"))
	mark()
	for v := int16(0); v < 4; v++ {
		req := fetchRequest(0, 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = 200 // two markers at a time
		got := call[*kmsg.FetchResponse](c, v, req).Topics[0].Partitions[0]
		if list := values(t, got.RecordBatches, 0); fmt.Sprint(list) != "[behind]" {
			t.Errorf("version %d: got %v", v, list)
		}
	}
	// Only a marker is left: the client waits for what comes, and does not ask again and again.
	req := fetchRequest(0, 31)
	req.MaxWaitMillis = 10_000
	c.send(2, req)
	n.client().produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "new"))
	resp, ok := c.receive(req)
	if !ok {
		t.Fatal("the connection was closed")
	}
	if list := values(t, resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches, 0); fmt.Sprint(list) != "[new]" {
		t.Errorf("got %v", list)
	}
	req.MaxWaitMillis, req.Topics[0].Partitions[0].FetchOffset = 1, 33
	if got := call[*kmsg.FetchResponse](c, 2, req).Topics[0].Partitions[0]; got.ErrorCode != 0 || len(got.RecordBatches) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOldFetchErrors(t *testing.T) {
	n := oldLog(t, 2)
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: record.Zstd}, "v"))
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, strings.Repeat("after", 20_000)))
	f := func(offset int64, want *kerr.Error) {
		t.Helper()
		for v := int16(0); v < 4; v++ {
			if got := c.fetch(v, 0, offset); got.ErrorCode != want.Code || got.RecordBatches == nil || len(got.RecordBatches) > 0 {
				t.Errorf("version %d: got error %d, want %d", v, got.ErrorCode, want.Code)
			}
		}
	}
	f(0, kerr.UnsupportedCompressionType)
	f(9, kerr.OffsetOutOfRange)

	c.produce(9, 1, 1, logtest.Values(t, record.BuilderOptions{}, strings.Repeat("before", 20_000)))
	c.produce(9, 1, 1, logtest.Values(t, record.BuilderOptions{Codec: record.Zstd}, "v"))
	for v := int16(0); v < 4; v++ { // up to it, and then the error
		got := c.fetch(v, 1, 0)
		if got.ErrorCode != 0 || len(values(t, got.RecordBatches, 0)) != 1 {
			t.Errorf("version %d: got %+v", v, got)
		}
		if got := c.fetch(v, 1, 1); got.ErrorCode != kerr.UnsupportedCompressionType.Code {
			t.Errorf("version %d: got error %d", v, got.ErrorCode)
		}
	}

	c = startNode(t, vfs.NewMem(), "data", "message.downconversion.enable", "false").client()
	f(0, kerr.UnsupportedVersion)
	c = startNode(t, vfs.NewMem(), "data", "compression.type", "zstd").client()
	f(0, kerr.UnsupportedCompressionType)
}

// Conversion makes new checksums. It must not make them for bytes that rotted on the disk.
func TestOldFetchOfDamage(t *testing.T) {
	for _, codec := range oldCodecs {
		fsys := vfs.NewMem()
		c := startNode(t, fsys, "data").client()
		c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "good"))
		size := len(logtest.Values(t, record.BuilderOptions{}, "good"))
		c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: codec}, strings.Repeat("bad", 100)))
		f, err := fsys.OpenFile("data/t-0/00000000000000000000.log", os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte{0x55}, int64(size+70))
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		for v := int16(0); v < 4; v++ {
			if got := c.fetch(v, 0, 0); got.ErrorCode != 0 || fmt.Sprint(values(t, got.RecordBatches, 0)) != "[good]" {
				t.Errorf("%v: version %d before the damage: got %+v", codec, v, got)
			}
			if got := c.fetch(v, 0, 1); got.ErrorCode != kerr.CorruptMessage.Code {
				t.Errorf("%v: version %d: got error %d", codec, v, got.ErrorCode)
			}
		}
	}
}

func TestProduceToOldFormat(t *testing.T) {
	for format := range int8(2) {
		c := oldLog(t, format).client()
		f := func(set []byte, want *kerr.Error) {
			t.Helper()
			req := produceRequest(1, 0, set)
			req.TransactionID = kmsg.StringPtr("payments")
			if got := call[*kmsg.ProduceResponse](c, 9, req).Topics[0].Partitions[0].ErrorCode; got != want.Code {
				t.Errorf("v%d: got error %d, want %d", format, got, want.Code)
			}
		}
		f(logtest.Values(t, record.BuilderOptions{Producer: &record.Producer{ID: 5}}, "v"), kerr.UnsupportedForMessageFormat)
		f(logtest.Values(t, record.BuilderOptions{Producer: &record.Producer{ID: 5}, Transactional: true}, "v"), kerr.UnsupportedForMessageFormat)
		f(logtest.Values(t, record.BuilderOptions{Codec: record.Zstd}, "v"), kerr.UnsupportedCompressionType)
	}
}

func TestListOffsets0(t *testing.T) {
	n := startNode(t, vfs.NewMem(), "data", "internal.segment.bytes", "200")
	c := n.client()
	f := func(timestamp int64, count int32, want ...int64) {
		t.Helper()
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = "t"
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp, p.MaxNumOffsets = timestamp, count
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
		got := call[*kmsg.ListOffsetsResponse](c, 0, req).Topics[0].Partitions[0]
		if got.ErrorCode != 0 || !slices.Equal(got.OldStyleOffsets, want) {
			t.Errorf("%d: got %v, error %d, want %v", timestamp, got.OldStyleOffsets, got.ErrorCode, want)
		}
	}
	f(commitlog.Latest, 9, 0)
	for range 3 { // one segment each
		c.produce(1, 1, 0, messages(t, record.SetOptions{}, strings.Repeat("x", 80), "second"))
	}
	f(commitlog.Latest, 9, 6, 4, 2, 0)
	f(commitlog.Latest, 1, 6)
	f(commitlog.Latest, 0)
	f(commitlog.Earliest, 9, 0)
	f(time.Now().Add(time.Hour).UnixMilli(), 2, 6, 4)
	f(1, 9)
}

func TestOldClients(t *testing.T) {
	n := oldLog(t, 1)
	c := n.client()
	c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, "new client, old log"))
	c.produce(2, 1, 0, messages(t, record.SetOptions{Magic: 1}, "old client, old log"))
	c.produce(0, 1, 0, messages(t, record.SetOptions{Magic: 0}, "older client"))
	c.fetch(0, 0, 0)
	c.fetch(3, 0, 0)
	c.fetch(4, 0, 0)
	want := []OldClientCount{
		{OldClient{ClientID: "test", API: "Fetch", Version: 0}, 1, 3},
		{OldClient{ClientID: "test", API: "Fetch", Version: 3}, 1, 0},
		{OldClient{ClientID: "test", API: "Produce", Version: 0}, 1, 1},
		{OldClient{ClientID: "test", API: "Produce", Version: 2}, 1, 0},
		{OldClient{ClientID: "test", API: "Produce", Version: 9}, 1, 1},
	}
	if diff := cmp.Diff(want, n.OldClients()); diff != "" {
		t.Error(diff)
	}

	var many oldClients
	for i := range 3 * oldClientsMax {
		if many.add(OldClient{ClientID: fmt.Sprint(i)}, 1, false) {
			t.Fatalf("client %d of today is called an old one", i)
		}
		if isNew := many.add(OldClient{ClientID: fmt.Sprint(i)}, 1, true); isNew != (i <= oldClientsMax) {
			t.Fatalf("client %d: got new %v", i, isNew)
		}
	}
	if got := many.seen[OldClient{ClientID: "(others)"}]; len(many.seen) != oldClientsMax+1 || got.Requests != 4*oldClientsMax {
		t.Errorf("got %d rows, the last has %+v", len(many.seen), got)
	}
}

// A set that was refused record by record names the records.
func TestProduceBlamesRecords(t *testing.T) {
	c := startNode(t, vfs.NewMem(), "data", "cleanup.policy", "compact").client()
	for v := int16(0); v <= 13; v++ {
		set := logtest.Values(t, record.BuilderOptions{}, "a", "b")
		if v < 3 {
			set = messages(t, record.SetOptions{Magic: int8(v / 2), Codec: record.Gzip}, "a", "b")
		}
		got := c.produce(v, 1, 0, bytes.Clone(set))
		if got.ErrorCode != kerr.InvalidRecord.Code {
			t.Errorf("version %d: got error %d", v, got.ErrorCode)
		}
		if v >= 8 && (len(got.ErrorRecords) != 2 || got.ErrorRecords[1].RelativeOffset != 1) {
			t.Errorf("version %d: got %+v", v, got.ErrorRecords)
		}
	}
}
