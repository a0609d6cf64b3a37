package compaction

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A goldenPlan is a cleaning that Kafka did, by its own log.
type goldenPlan struct {
	stage     string // the directory that it led to
	now       time.Time
	partition topic.Partition
	Plan
}

// goldenPlans are in testdata/golden-plans.txt: stage, clock in ms, log, first dirty and first
// uncleanable offset. They are from the log of Kafka's cleaner; it says the time a moment too
// late, so the clock is that of the delete horizons that were set, if some were.
func goldenPlans(t *testing.T) (list []goldenPlan) {
	b, err := os.ReadFile("testdata/golden-plans.txt")
	must(t, err)
	for line := range strings.Lines(string(b)) {
		var p goldenPlan
		var ms int64
		var dir string
		_, err := fmt.Sscan(line, &p.stage, &ms, &dir, &p.FirstDirty, &p.FirstUncleanable)
		must(t, err)
		p.now = time.UnixMilli(ms)
		p.partition, err = topic.ParsePartition(dir)
		must(t, err)
		list = append(list, p)
	}
	return list
}

// TestGoldenCompaction does the cleanings that Kafka 4.4.0 did, at the same times, and compares
// with the files it left: byte for byte, and where there is a codec, record for record.
func TestGoldenCompaction(t *testing.T) {
	const set = "compaction-4.4.0"
	fs := vfs.NewMem()
	golden.Unpack(t, fs, "/", set)
	topics := golden.Topics(t, set)
	for _, p := range goldenPlans(t) {
		if p.stage == "cleaned" {
			continue
		}
		t.Run(p.stage+"/"+p.partition.String(), func(t *testing.T) {
			before := strings.Replace(p.stage, "after", "before", 1)
			dir := filepath.Join("/", before, p.partition.String())
			l := openGolden(t, fs, dir, &p, topics[p.partition.Topic].Configs)
			r, err := New(Options{MapBytes: 4 << 20, BufferBytes: 1 << 12, Now: func() time.Time { return p.now }}).Clean(t.Context(), l, p.Plan)
			must(t, err)
			if r.EndOffset != p.FirstUncleanable {
				t.Errorf("end %d, want %d", r.EndOffset, p.FirstUncleanable)
			}
			_, err = l.DeleteOldSegments(p.now)
			must(t, err)
			must(t, l.Check())
			must(t, l.Close())
			sameFiles(t, fs, dir, filepath.Join("/", p.stage, p.partition.String()))
		})
	}
}

func openGolden(t *testing.T, fs vfs.FS, dir string, p *goldenPlan, configs map[string]string) *commitlog.Log {
	t.Helper()
	c := commitlog.DefaultConfig()
	number := func(key string, or int64) int64 {
		if s, ok := configs[key]; ok {
			n, err := strconv.ParseInt(s, 10, 64)
			must(t, err)
			return n
		}
		return or
	}
	c.Compact, c.Delete = true, strings.Contains(configs["cleanup.policy"], "delete")
	c.DeleteRetentionMs = number("delete.retention.ms", c.DeleteRetentionMs)
	c.SegmentBytes = int(number("internal.segment.bytes", number("segment.bytes", int64(c.SegmentBytes))))
	c.SegmentIndexBytes = int(number("segment.index.bytes", int64(c.SegmentIndexBytes)))
	c.IndexIntervalBytes = int(number("index.interval.bytes", int64(c.IndexIntervalBytes)))
	c.RetentionMs, c.RetentionBytes = -1, number("retention.bytes", -1)
	l, err := commitlog.Open(commitlog.Options{
		FS: fs, Dir: dir, Partition: p.partition, Config: c, Clean: true, ProducerIDExpiration: 24 * time.Hour,
		Now: func() time.Time { return p.now }, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	l.SetHighWatermark(l.Offsets().End)
	return l
}

// sameFiles compares the segments of two directories.
func sameFiles(t *testing.T, fs vfs.FS, got, want string) {
	t.Helper()
	gotFiles, wantFiles := segmentFiles(t, fs, got), segmentFiles(t, fs, want)
	codec := hasCodec(wantFiles)
	for _, name := range slices.Sorted(maps.Keys(wantFiles)) {
		a, b := gotFiles[name], wantFiles[name]
		delete(gotFiles, name)
		if bytes.Equal(a, b) {
			continue
		}
		if !strings.HasSuffix(name, string(segment.LogFile)) {
			if !codec {
				t.Errorf("%s: %x\nwant %x", name, a, b)
			}
			continue
		}
		if a, b := contentOf(t, a), contentOf(t, b); a != b {
			t.Errorf("%s:\n%s\nwant\n%s", name, a, b)
		}
	}
	for name := range gotFiles {
		t.Errorf("%s is not in Kafka's directory", name)
	}
}

func hasCodec(files map[string][]byte) bool {
	for name, b := range files {
		if strings.HasSuffix(name, string(segment.LogFile)) {
			for b := range record.Batches(b) {
				if b.Codec() != record.None {
					return true
				}
			}
		}
	}
	return false
}

func segmentFiles(t *testing.T, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := fs.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if _, _, suffix, ok := segment.ParseName(e.Name()); ok && suffix == "" {
			b, err := vfs.ReadFile(fs, filepath.Join(dir, e.Name()), 1<<30)
			must(t, err)
			files[e.Name()] = b
		}
	}
	return files
}

// contentOf says all that is in batches, but not how it is compressed.
func contentOf(t *testing.T, set []byte) string {
	t.Helper()
	var s strings.Builder
	for b, err := range record.Batches(set) {
		must(t, err)
		must(t, b.Verify())
		fmt.Fprintf(&s, "%d-%d magic %d epoch %d attributes %x time %d-%d producer %d/%d/%d count %d\n", b.BaseOffset(), b.LastOffset(),
			b.Magic(), b.LeaderEpoch(), b.Attributes(), b.BaseTimestamp(), b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count())
		for r, err := range b.Records() {
			must(t, err)
			fmt.Fprintf(&s, "  %d %d %v %q %q %v\n", r.Offset, r.Timestamp, r.Value == nil, r.Key, r.Value, r.Headers)
		}
	}
	return s.String()
}

// TestGoldenOldFormats cleans logs of formats v0, v1 and v2 that Kafka 4.4.0 cleaned as well. The
// same records survive. Kafka 4 writes them as v2; here they stay what they were, as in every
// release before.
func TestGoldenOldFormats(t *testing.T) {
	const set = "kafka-4.4.0-old-formats"
	fs := vfs.NewMem()
	golden.Unpack(t, fs, "/", set)
	topics := golden.Topics(t, set)
	for _, p := range goldenPlans(t) {
		if p.stage != "cleaned" {
			continue
		}
		t.Run(p.partition.String(), func(t *testing.T) {
			dir := filepath.Join("/data", p.partition.String())
			l := openGolden(t, fs, dir, &p, topics[p.partition.Topic].Configs)
			formats := formatsOf(t, fs, dir)
			_, err := New(Options{MapBytes: 4 << 20, BufferBytes: 1 << 12, Now: func() time.Time { return p.now }}).Clean(t.Context(), l, p.Plan)
			must(t, err)
			_, err = l.DeleteOldSegments(p.now)
			must(t, err)
			must(t, l.Check())
			must(t, l.Close())
			got, want := survivors(t, fs, dir), survivors(t, fs, filepath.Join("/cleaned", p.partition.String()))
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for offset, f := range formatsOf(t, fs, dir) {
				if formats[offset] != f {
					t.Errorf("offset %d has %v, before the cleaning %v", offset, f, formats[offset])
				}
			}
		})
	}
}

// survivors lists the records of a log, by what no format changes.
func survivors(t *testing.T, fs vfs.FS, dir string) string {
	var s strings.Builder
	files := segmentFiles(t, fs, dir)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, string(segment.LogFile)) {
			continue
		}
		for b := range record.Batches(files[name]) {
			for r, err := range b.Records() {
				must(t, err)
				fmt.Fprintf(&s, "%d %d %v %q %q %v\n", r.Offset, r.Timestamp, r.Value == nil, r.Key, r.Value, r.Headers)
			}
		}
	}
	return s.String()
}

type format struct {
	magic     int8
	codec     record.Codec
	timestamp record.TimestampType
}

// formatsOf says of each record how it is stored.
func formatsOf(t *testing.T, fs vfs.FS, dir string) map[int64]format {
	formats := map[int64]format{}
	for name, file := range segmentFiles(t, fs, dir) {
		if !strings.HasSuffix(name, string(segment.LogFile)) {
			continue
		}
		for b := range record.Batches(file) {
			for r, err := range b.Records() {
				must(t, err)
				formats[r.Offset] = format{b.Magic(), b.Codec(), b.TimestampType()}
			}
		}
	}
	return formats
}
