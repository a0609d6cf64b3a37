package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A consumed record is what a consumer of a real Kafka saw: a line of records.jsonl.gz.
type consumed struct {
	Topic         string
	Partition     int
	Offset        int64
	Timestamp     int64
	TimestampType string
	Key, Value    []byte
	Headers       [][2]*string
}

// readConsumed returns the records of a directory of testdata by partition and offset.
func readConsumed(t testing.TB, dir string) map[string]map[int64]consumed {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "records.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[int64]consumed{}
	for d := json.NewDecoder(z); d.More(); {
		var c consumed
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s-%d", c.Topic, c.Partition)
		if all[name] == nil {
			all[name] = map[int64]consumed{}
		}
		all[name][c.Offset] = c
	}
	return all
}

// eachLog runs a test for each segment of testdata, which real Kafka brokers wrote.
func eachLog(t *testing.T, f func(t *testing.T, partition, dir string, log []byte)) {
	logs, err := filepath.Glob("testdata/kafka-*/*.log")
	if err != nil || len(logs) < 20 {
		t.Fatalf("got %d logs (%v), want at least 20", len(logs), err)
	}
	for _, path := range logs {
		dir, file := filepath.Split(path)
		t.Run(filepath.Base(dir)+"/"+file, func(t *testing.T) {
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f(t, strings.TrimSuffix(file, ".log"), dir, log)
		})
	}
}

func TestKafkaLogs(t *testing.T) {
	expected := map[string]map[string]map[int64]consumed{}
	eachLog(t, func(t *testing.T, partition, dir string, log []byte) {
		if expected[dir] == nil {
			expected[dir] = readConsumed(t, dir)
		}
		want := expected[dir][partition]
		size, seen, next := 0, 0, int64(0)
		for b, err := range Batches(log) {
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Verify(); err != nil {
				t.Fatal(err)
			}
			size, next = size+b.Size(), b.NextOffset()
			for _, r := range mustRecords(t, b) {
				if b.IsControl() {
					if _, err := ParseControl(r.Key); err != nil {
						t.Error(err)
					}
					continue
				}
				seen++
				compareConsumed(t, want[r.Offset], r)
			}
		}
		if size != len(log) {
			t.Errorf("got %d bytes of batches, want %d", size, len(log))
		}
		count := 0
		for offset := range want {
			if offset < next {
				count++
			}
		}
		if seen != count || seen == 0 && partition != "compact-empty-0" {
			t.Errorf("got %d records, want %d", seen, count)
		}
	})
}

func compareConsumed(t *testing.T, want consumed, r Record) {
	t.Helper()
	got := consumed{Topic: want.Topic, Partition: want.Partition, Offset: r.Offset, Timestamp: r.Timestamp,
		TimestampType: r.TimestampType.String(), Key: r.Key, Value: r.Value, Headers: want.Headers}
	if !reflect.DeepEqual(want, got) {
		t.Fatal(cmp.Diff(want, got))
	}
	if len(r.Headers) != len(want.Headers) {
		t.Fatalf("offset %d: got %d headers, want %d", r.Offset, len(r.Headers), len(want.Headers))
	}
	for i, h := range r.Headers {
		var value []byte
		if v := want.Headers[i][1]; v != nil {
			if err := json.Unmarshal([]byte(`"`+*v+`"`), &value); err != nil {
				t.Fatal(err)
			}
		}
		if h.Key != *want.Headers[i][0] || !bytes.Equal(h.Value, value) || (h.Value == nil) != (want.Headers[i][1] == nil) {
			t.Errorf("offset %d: got header %q %q, want %q %q", r.Offset, h.Key, h.Value, *want.Headers[i][0], value)
		}
	}
}

// What we build from the records of a batch is the batch, unless it is compressed: then
// it is a batch with the same records, as two compressors rarely agree.
func TestRebuildKafkaLogs(t *testing.T) {
	eachLog(t, func(t *testing.T, _, _ string, log []byte) {
		for b, err := range Batches(log) {
			if err != nil {
				t.Fatal(err)
			}
			records := mustRecords(t, b)
			if len(records) == 0 {
				if got := EmptyBatch(b); !bytes.Equal(got, b) {
					t.Errorf("got empty batch %x, want %x", got, []byte(b))
				}
				continue
			}
			rebuilt := Batch(rebuild(t, b, records))
			if err := rebuilt.Verify(); err != nil {
				t.Fatal(err)
			}
			if b.Codec() == None && !bytes.Equal(rebuilt, b) {
				t.Errorf("got\n%x, want\n%x", []byte(rebuilt), []byte(b))
			}
			// cmp is slow, and this is many records.
			if got := mustRecords(t, rebuilt); !reflect.DeepEqual(records, got) {
				t.Error(cmp.Diff(records, got))
			}
		}
	})
}

// rebuild makes the batch b again from its records.
func rebuild(t *testing.T, b Batch, records []Record) []byte {
	t.Helper()
	if b.isMessage() {
		return buildSet(SetOptions{Magic: b.Magic(), Codec: b.Codec(), TimestampType: b.TimestampType(), AppendTime: b.MaxTimestamp()}, records...)
	}
	horizon, _ := b.DeleteHorizon()
	o := BuilderOptions{Codec: b.Codec(), BaseOffset: b.BaseOffset(), LeaderEpoch: new(b.LeaderEpoch()), Transactional: b.IsTransactional(),
		Control: b.IsControl(), TimestampType: b.TimestampType(), AppendTime: b.MaxTimestamp(), DeleteHorizon: horizon}
	if b.ProducerID() >= 0 {
		o.Producer = &Producer{b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()}
	}
	builder := NewBuilder(o)
	for _, r := range records {
		r.Timestamp += shift(b, r)
		if err := builder.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	builder.SetLastOffset(b.LastOffset())
	return builder.Build()
}

// shift returns what to add to the timestamp of a record to get the one that its producer
// gave it. With append time that is in the deltas only.
func shift(b Batch, r Record) int64 {
	if b.TimestampType() != LogAppendTime {
		return 0
	}
	c, err := b.open(new(scratch), DefaultMaxDecompressed)
	if err != nil {
		panic(err)
	}
	for c.next() {
		if b.BaseOffset()+int64(c.offsetDelta) == r.Offset {
			return b.BaseTimestamp() + c.timestampDelta - r.Timestamp
		}
	}
	return 0
}
