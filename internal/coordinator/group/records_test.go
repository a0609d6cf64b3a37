package group

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/record"
)

// goldenRecords calls f for each data record of the golden sets.
func goldenRecords(t testing.TB, f func(path string, r coordinator.Replayed)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/golden/*/*.log")
	if err != nil || len(paths) != 8 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range record.Batches(data) {
			if err != nil {
				t.Fatal(err)
			}
			if b.IsControl() {
				continue
			}
			for r, err := range b.Records() {
				if err != nil {
					t.Fatal(err)
				}
				f(path, coordinator.Replayed{Record: coordinator.Record{Key: r.Key, Value: r.Value}, Offset: r.Offset, ProducerID: -1})
			}
		}
	}
}

// What we write for the content of a record that Kafka 4.4 wrote are the same bytes.
func TestRecordsAreKafkas(t *testing.T) {
	count := 0
	goldenRecords(t, func(path string, r coordinator.Replayed) {
		var got coordinator.Record
		k, err := parseKeyType(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case k == keyOffset && len(r.Value) > 1 && r.Value[1] == offsetVersion:
			o, err := parseOffset(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			group, topic, partition := splitOffsetKey(t, r.Key)
			got = offsetRecord(group, topic, partition, o)
		case k == keyGroup && r.Value != nil:
			g, err := parseGroup(string(r.Key[4:]), r.Value)
			if err != nil {
				t.Fatal(err)
			}
			got = g.record(g.assignments())
		default:
			return
		}
		count++
		if diff := cmp.Diff(r.Record, got); diff != "" {
			t.Errorf("%s offset %d (-Kafka +gregor):\n%s", path, r.Offset, diff)
		}
	})
	if count < 30 {
		t.Errorf("compared %d records only", count)
	}
}

func splitOffsetKey(t *testing.T, key []byte) (group, topic string, partition int32) {
	t.Helper()
	s := replayed(coordinator.Replayed{Record: coordinator.Record{Key: key, Value: make([]byte, 2+8+2+8)}, ProducerID: -1})
	for _, g := range s.groups {
		for topic, partitions := range g.offsets {
			for p := range partitions {
				return g.id, topic, p
			}
		}
	}
	t.Fatalf("key %x has no offset", key)
	return
}

// replayed is a shard that has read some records; those it cannot read do not matter.
func replayed(records ...coordinator.Replayed) *Shard {
	s := NewShard(DefaultConfig(), func() string { return newID(rand.Reader) }, nil)
	for _, r := range records {
		_ = s.Replay(r)
	}
	return s
}

// Values of old releases lack fields, which must not turn into zeros.
func TestOldValues(t *testing.T) {
	f := func(name string, value []byte, want offset) {
		t.Helper()
		got, err := parseOffset(value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if *got != want {
			t.Errorf("%s: got %+v, want %+v", name, *got, want)
		}
	}
	number := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	cat := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	m := []byte{0, 1, 'm'}
	f("version 0", cat([]byte{0, 0}, number(5), m, number(9)), offset{offset: 5, leaderEpoch: -1, metadata: "m", committedMs: 9, expiresMs: -1})
	f("version 1", cat([]byte{0, 1}, number(5), m, number(9), number(8)), offset{offset: 5, leaderEpoch: -1, metadata: "m", committedMs: 9, expiresMs: 8})
	f("version 2", cat([]byte{0, 2}, number(5), m, number(9)), offset{offset: 5, leaderEpoch: -1, metadata: "m", committedMs: 9, expiresMs: -1})
	f("version 3", cat([]byte{0, 3}, number(5), []byte{0, 0, 0, 7}, m, number(9)), offset{offset: 5, leaderEpoch: 7, metadata: "m", committedMs: 9, expiresMs: -1})
	if _, err := parseOffset(cat([]byte{0, 5}, number(5), m, number(9))); err == nil {
		t.Error("version 5 was read as if it were known")
	}
}

func FuzzReplay(f *testing.F) {
	goldenRecords(f, func(_ string, r coordinator.Replayed) {
		f.Add(append([]byte(nil), r.Key...), append([]byte(nil), r.Value...), int64(-1))
	})
	f.Add([]byte{0, 2, 0, 1, 'g'}, []byte{0, 3, 0, 0}, int64(7))
	f.Fuzz(func(t *testing.T, key, value []byte, producerID int64) {
		r := coordinator.Replayed{Record: coordinator.Record{Key: key, Value: value}, ProducerID: producerID}
		s := replayed(r, coordinator.Replayed{Record: coordinator.Record{Key: key}})
		for _, g := range s.groups {
			if len(g.offsets) > 0 || len(g.modernKeys) > 0 || g.pending > 0 {
				t.Errorf("something is left of %x after its tombstone", key)
			}
		}
		s = replayed(r)
		for id, g := range s.groups {
			s.Describe(id)
			g.isSubscribed("t")
			if len(g.members) > 0 {
				g.selectProtocol()
			}
		}
		s.EndTransaction(producerID, true)
	})
}
