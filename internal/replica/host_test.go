package replica

import (
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// notedLogs notes which logs were created, and whether as new ones.
type notedLogs struct {
	Logs
	mu      sync.Mutex // logs are created beside each other
	created map[string]bool
}

func (l *notedLogs) Create(p topic.Partition, id uuid.UUID, c commitlog.Config, dir uuid.UUID, isNew bool) (*commitlog.Log, error) {
	l.mu.Lock()
	l.created[p.String()] = isNew
	l.mu.Unlock()
	return l.Logs.Create(p, id, c, dir, isNew)
}

// Logs are created for replicas of this broker, once; the one of a partition that has changed before
// this broker saw it is not new.
func TestHosting(t *testing.T) {
	b := newBench(t, nil)
	noted := &notedLogs{Logs: b.o.Logs, created: map[string]bool{}}
	b.o.Logs = noted
	named := metadata.NewTopicRecord()
	named.Name, named.TopicID = "t", topicID(1)
	records := []metadata.Record{named}
	for i, replicas := range [][]int32{{testNode}, {2, testNode}, {2, 3}, {testNode, 2}} {
		p := metadata.NewPartitionRecord()
		p.PartitionID, p.TopicID, p.Leader, p.Replicas, p.ISR = int32(i), named.TopicID, replicas[0], replicas, replicas
		p.PartitionEpoch = int32(i / 3)
		p.Directories = make([]uuid.UUID, len(replicas))
		records = append(records, p)
	}
	b.apply(records...)
	want := map[string]bool{"t-0": true, "t-1": true, "t-3": false}
	check := func(when string) {
		t.Helper()
		if len(noted.created) != len(want) {
			t.Errorf("%s: created %v, want %v", when, noted.created, want)
		}
		for name, isNew := range want {
			if got, ok := noted.created[name]; !ok || got != isNew {
				t.Errorf("%s: created %v, want %v", when, noted.created, want)
			}
		}
	}
	check("at first")
	clear(noted.created)
	clear(want)
	b.lead(1, testNode, testNode) // of a partition that there is
	check("later")

	// Another manager finds the logs of the first, unless they are of another topic.
	again := NewManager(b.o)
	img := metadata.NewImage("test-cluster")
	for _, c := range []struct {
		name string
		id   byte
		want map[string]bool
	}{{"t", 1, nil}, {"u", 2, map[string]bool{"u-0": true}}} {
		img, delta, err := img.Apply([]metadata.Record{
			&metadata.TopicRecord{Name: c.name, TopicID: topicID(c.id)},
			&metadata.PartitionRecord{TopicID: topicID(c.id), Leader: testNode, Replicas: []int32{testNode}, ISR: []int32{testNode}, Directories: make([]uuid.UUID, 1)},
		}, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		_ = img
		clear(noted.created)
		if err := again.Apply(delta); err != nil {
			t.Fatal(err)
		}
		want = c.want
		check("anew, " + c.name)
	}
}
