package group

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A goldenLog serves partition files that a Kafka broker wrote. It takes no appends.
type goldenLog string

func (l goldenLog) Append(context.Context, topic.Partition, int32, []byte) (int64, error) {
	return -1, errors.New("read only")
}

func (l goldenLog) AwaitCommitted(context.Context, topic.Partition) error { return nil }

func (l goldenLog) Replay(_ context.Context, p topic.Partition, visit func(record.Batch) error) error {
	data, err := os.ReadFile(filepath.Join(string(l), strconv.Itoa(int(p.Partition))+".log"))
	if err != nil {
		return err
	}
	for b, err := range record.Batches(data) {
		if err != nil {
			return err
		}
		if err := visit(b); err != nil {
			return err
		}
	}
	return nil
}

// goldenGroup is an entry of groups.json.
type goldenGroup struct {
	Group   string         `json:"group"`
	Offsets []goldenOffset `json:"offsets"`
}

type goldenOffset struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Offset      int64  `json:"offset"`
	LeaderEpoch *int32 `json:"leaderEpoch"`
	Metadata    string `json:"metadata"`
}

// loadGolden returns a coordinator that has read a golden set.
func loadGolden(t *testing.T, set string) *Coordinator {
	t.Helper()
	c := New(Options{
		Config: DefaultConfig(), Log: goldenLog(filepath.Join("testdata/golden", set)),
		Partitions: func() int32 { return 4 },
	})
	t.Cleanup(c.Close)
	for p := range int32(4) {
		c.Lead(p, 0)
	}
	return c
}

func TestGoldenOffsets(t *testing.T) {
	for _, set := range []string{"kafka-3.9.1-kraft", "kafka-4.4.0-kraft"} {
		t.Run(set, func(t *testing.T) {
			c := loadGolden(t, set)
			data, err := os.ReadFile(filepath.Join("testdata/golden", set, "groups.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want []goldenGroup
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			for _, g := range want {
				got := goldenGroup{Group: g.Group, Offsets: fetchGolden(t, c, g.Group)}
				if diff := cmp.Diff(g, got); diff != "" {
					t.Errorf("group %s (-want +got):\n%s", g.Group, diff)
				}
			}
		})
	}
}

func fetchGolden(t *testing.T, c *Coordinator, group string) []goldenOffset {
	topics, err := c.Fetch(t.Context(), &FetchRequest{Group: group})
	if err != nil {
		t.Fatal(err)
	}
	list := []goldenOffset{}
	for _, topic := range topics {
		for _, o := range topic.Offsets {
			v := goldenOffset{topic.Topic, o.Partition, o.Offset, &o.LeaderEpoch, o.Metadata}
			if o.LeaderEpoch < 0 {
				v.LeaderEpoch = nil
			}
			list = append(list, v)
		}
	}
	return list
}

func TestGoldenGroups(t *testing.T) {
	f := func(set string, want ...Listing) {
		t.Helper()
		list, err := loadGolden(t, set).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(a.Group, b.Group) })
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
	common := []Listing{
		{"g-admin", "", "Empty", "classic"},
		{"g-classic", "consumer", "Empty", "classic"},
		{"g-classic-static", "consumer", "Stable", "classic"},
		{"g-compact-txn", "", "Empty", "classic"},
		{"g-txn", "", "Empty", "classic"},
		{"g-txn-open", "", "Empty", "classic"},
	}
	f("kafka-3.9.1-kraft", common...)
	f("kafka-4.4.0-kraft", slices.Insert(common, 4,
		Listing{"g-consumer", "consumer", "Empty", "consumer"},
		Listing{"g-consumer-static", "consumer", "Empty", "consumer"},
		Listing{"g-share", "share", "Empty", "share"},
		Listing{"g-streams", "streams", "Empty", "streams"},
	)...)
}

// An open transaction's offset is neither committed nor stable.
func TestGoldenOpenTransaction(t *testing.T) {
	c := loadGolden(t, "kafka-4.4.0-kraft")
	topics, err := c.Fetch(t.Context(), &FetchRequest{
		Group: "g-txn-open", RequireStable: true,
		Topics: []TopicPartitions{{"txn-open", []int32{0}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := topics[0].Offsets[0]
	if want := (PartitionOffset{Offset: -1, LeaderEpoch: -1, Err: ErrUnstableOffsetCommit}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
