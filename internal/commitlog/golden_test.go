package commitlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// goldenDir has directories that Kafka wrote, and offsets.json: what Kafka answers for them.
const goldenDir = "testdata"

type goldenPartition struct {
	Topic         string
	Partition     int32
	LogStart      int64
	HighWatermark int64
	LastStable    int64
	Records       int
	MaxTimestamp  goldenAnswer
	EarliestLocal goldenAnswer
	ByTimestamp   []goldenAnswer
}

type goldenAnswer struct {
	Query       int64
	Offset      int64
	Timestamp   int64
	LeaderEpoch int32
}

// TestGolden opens directories of Kafka 4.4.0, one set stopped cleanly and one damaged as
// by a power loss, and compares with what Kafka made of them.
func TestGolden(t *testing.T) {
	for set, clean := range map[string]bool{"kafka-4.4.0-kraft": true, "kafka-4.4.0-torn": false} {
		t.Run(set, func(t *testing.T) { testGoldenSet(t, filepath.Join(goldenDir, set), clean) })
	}
}

func testGoldenSet(t *testing.T, dir string, clean bool) {
	var golden struct{ Partitions []goldenPartition }
	b, err := os.ReadFile(filepath.Join(dir, "offsets.json"))
	must(t, err)
	must(t, json.Unmarshal(b, &golden))
	for _, want := range golden.Partitions {
		p := topic.Partition{Topic: want.Topic, Partition: want.Partition}
		t.Run(p.String(), func(t *testing.T) {
			mem := vfs.NewMem()
			o := testOptions(mem)
			must(t, vfs.MkdirAll(mem, o.Dir, 0o755))
			copyDir(t, mem, o.Dir, filepath.Join(dir, "data", p.String()))
			o.Partition, o.TopicID, o.Clean, o.LogStartOffset = p, uuid.Zero, clean, want.LogStart
			o.Config.Compact = strings.Contains(want.Topic, "compact") // elsewhere a gap is a loss
			l := openLog(t, o)
			l.SetHighWatermark(l.Offsets().End)
			wantOffsets(t, l, want.LogStart, want.LastStable, want.HighWatermark, want.HighWatermark)
			if values, _ := readAll(t, l, want.LogStart, ReadUncommitted); len(values) != want.Records {
				t.Errorf("%d records, want %d", len(values), want.Records)
			}
			checkAnswers(t, l, &want)
			mustCheck(t, l)

			// And it goes on: appended, stopped, opened again.
			must(t, l.AssignEpoch(100, want.HighWatermark))
			_, err := l.AppendAsLeader(spec{}.build(t), 100, AppendOptions{Origin: record.Client})
			must(t, err)
			must(t, l.Close())
			o.Clean, o.RecoveryPoint = true, l.RecoveryPoint()
			if end := openLog(t, o).Offsets().End; end != want.HighWatermark+1 {
				t.Errorf("log end %d, want %d", end, want.HighWatermark+1)
			}
		})
	}
}

func checkAnswers(t *testing.T, l *Log, want *goldenPartition) {
	t.Helper()
	f := func(timestamp int64, want goldenAnswer) {
		t.Helper()
		got, ok, err := l.Lookup(LookupRequest{timestamp, ReadUncommitted})
		must(t, err)
		answer := goldenAnswer{want.Query, got.Offset, got.Timestamp, got.LeaderEpoch}
		if !ok {
			answer = goldenAnswer{want.Query, -1, -1, -1}
		}
		if answer.Offset != want.Offset || answer.Timestamp != want.Timestamp {
			t.Errorf("lookup(%d) = %+v, want %+v", timestamp, answer, want)
		}
	}
	f(MaxTimestamp, want.MaxTimestamp)
	f(EarliestLocal, want.EarliestLocal)
	for _, q := range want.ByTimestamp {
		f(q.Query, q)
	}
}

// goldenTime is when Kafka stopped: an empty segment counts with the time of its file.
var goldenTime = time.UnixMilli(1_796_030_000_000)

func copyDir(t *testing.T, mem *vfs.Mem, to, from string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		must(t, err)
		name := filepath.Join(to, e.Name())
		must(t, writeFile(mem, name, b))
		must(t, mem.SetModTime(name, goldenTime))
	}
}
