package quorum

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// The sets of metadata directories that Apache Kafka wrote, and the metadata.version of each.
var goldenSets = map[string]int16{"kafka-4.4.0-kraft": 33, "kafka-4.4.0-kraft-dynamic": 33, "kafka-3.9.1-kraft": 21}

// copyIn puts a golden directory into a file system.
func copyIn(t testing.TB, fsys vfs.FS, dir, set string) {
	t.Helper()
	if err := vfs.MkdirAll(fsys, logDir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.checkpoint", "__cluster_metadata-0/*"} {
		files, err := filepath.Glob(filepath.Join("testdata", set, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name, err := filepath.Rel(filepath.Join("testdata", set), path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFileAtomic(fsys, filepath.Join(dir, name), b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A directory of Kafka's is continued: same topics, ids, configurations; the log goes on.
func TestKafkaDirectories(t *testing.T) {
	for set, level := range goldenSets {
		t.Run(set, func(t *testing.T) {
			fsys, dir := memDir(t)
			copyIn(t, fsys, dir, set)
			q := mustOpen(t, options(fsys, dir))
			checkTopics(t, q.Image(), set)
			img := q.Image()
			if img.Feature(metadata.MetadataVersion) != level || img.Broker(1) == nil || img.NextProducerID != 1000 && set != "kafka-4.4.0-kraft-dynamic" {
				t.Errorf("features %v, brokers %v, next producer id %d", img.Features(), img.Brokers(), img.NextProducerID)
			}
			if set == "kafka-4.4.0-kraft" {
				checkSecurity(t, img)
			}
			before := q.NextOffset()
			img = mustPropose(t, q, topicRecords(500)...)
			if img.Epoch != 2 || img.Offset != before+1 {
				t.Errorf("first change by gregor has offset %d and epoch %d, want %d and 2", img.Offset, img.Epoch, before+1)
			}
			state := stateOf(img)
			mustClose(t, q)
			checkEpochs(t, fsys, dir, checkpoint.EpochEntry{Epoch: 1, StartOffset: 0}, checkpoint.EpochEntry{Epoch: 2, StartOffset: before - 1})
			q = mustOpen(t, options(fsys, dir))
			if !slices.Equal(stateOf(q.Image()), state) {
				t.Error("the image differs after another start")
			}
		})
	}
}

// checkEpochs looks at leader-epoch-checkpoint: an epoch begins at its first batch, also where a
// snapshot holds what that says.
func checkEpochs(t *testing.T, fsys vfs.FS, dir string, want ...checkpoint.EpochEntry) {
	t.Helper()
	got, err := checkpoint.ReadEpochs(fsys, filepath.Join(logDir(dir), checkpoint.LeaderEpochs))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("leader epochs %v, %v, want %v", got, err, want)
	}
}

func checkTopics(t *testing.T, img *metadata.Image, set string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", set, "topics.json"))
	if err != nil {
		t.Fatal(err)
	}
	var topics []struct {
		Topic, TopicID       string
		Partitions, Replicas int
		Configs              map[string]string
	}
	if err := json.Unmarshal(b, &topics); err != nil {
		t.Fatal(err)
	}
	if len(topics) != img.NumTopics() || len(topics) == 0 {
		t.Errorf("%d topics, want %d", img.NumTopics(), len(topics))
	}
	for _, want := range topics {
		topic := img.Topic(want.Topic)
		if topic == nil {
			t.Errorf("no topic %s", want.Topic)
			continue
		}
		if topic.ID.String() != want.TopicID || len(topic.Partitions) != want.Partitions || len(topic.Partitions[0].Replicas) != want.Replicas {
			t.Errorf("topic %s: id %s, %d partitions, want %+v", want.Topic, topic.ID, len(topic.Partitions), want)
		}
		got := maps.Clone(img.TopicConfigs(want.Topic))
		for key := range got { // topics.json leaves out what the tool does not show
			if _, ok := want.Configs[key]; !ok {
				delete(got, key)
			}
		}
		if diff := cmp.Diff(want.Configs, got); len(want.Configs) > 0 && diff != "" {
			t.Errorf("configs of %s: %s", want.Topic, diff)
		}
	}
}

// checkSecurity checks what the set's metadata.txt shows of users and quotas.
func checkSecurity(t *testing.T, img *metadata.Image) {
	t.Helper()
	var users []string
	for key := range img.Scram() {
		users = append(users, key.User)
	}
	slices.Sort(users)
	if !slices.Equal(users, []string{"alice", "alice"}) { // bob's was removed
		t.Errorf("SCRAM users %v", users)
	}
	alice := "alice"
	q := img.ClientQuota([]metadata.EntityData{{EntityType: "user", EntityName: &alice}})
	if q == nil || q.Limits["producer_byte_rate"] != 1048576 {
		t.Errorf("quota of alice: %+v", q)
	}
	if len(img.ACLs()) == 0 {
		t.Error("no ACLs")
	}
}

// Kafka's snapshots are what the log adds up to, and ours of the same image reads the same.
func TestKafkaSnapshots(t *testing.T) {
	for set, level := range goldenSets {
		fsys, dir := memDir(t)
		copyIn(t, fsys, dir, set)
		b, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), segmentName(0)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		m := &stateMachine{applied: func(uint64) {}}
		m.image.Store(metadata.NewImage(clusterID))
		for batch, err := range record.Batches(b) {
			if err != nil {
				t.Fatal(err)
			}
			if !batch.IsControl() {
				if err := m.apply(batch); err != nil {
					t.Fatal(err)
				}
			}
			id := snapshotID{batch.NextOffset(), batch.LeaderEpoch()}
			file, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), id.String()+checkpoint.SnapshotSuffix), 1<<20)
			if err != nil {
				continue
			}
			compareSnapshot(t, m.image.Load(), file, level)
		}
	}
}

func compareSnapshot(t *testing.T, img *metadata.Image, file []byte, level int16) {
	t.Helper()
	kafka, err := readCheckpoint(file)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := metadata.NewImage(clusterID).Apply(kafka.records, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stateOf(want), stateOf(img)); diff != "" {
		t.Errorf("the log adds up to something else than Kafka's snapshot: %s", diff)
	}
	var buf bytes.Buffer
	if err := writeCheckpoint(&buf, kafka, img.Records(), level, 1, 7); err != nil {
		t.Fatal(err)
	}
	ours, err := readCheckpoint(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if ours.timestamp != kafka.timestamp || len(ours.records) != len(kafka.records) || cmp.Diff(ours.voters, kafka.voters) != "" || cmp.Diff(ours.kraftVersion, kafka.kraftVersion) != "" {
		t.Errorf("our snapshot has %d records, Kafka's %d; voters %v, %v", len(ours.records), len(kafka.records), ours.voters, kafka.voters)
	}
}
