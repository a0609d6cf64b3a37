package controller

import (
	"fmt"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

func TestAssignDirectories(t *testing.T) {
	topicID, old, dir := uuid.New(), uuid.New(), uuid.New()
	img, _, _ := metadata.NewImage("c").Apply([]metadata.Record{
		&metadata.TopicRecord{Name: "orders", TopicID: topicID},
		&metadata.PartitionRecord{TopicID: topicID, Replicas: []int32{1, 2}, ISR: []int32{1, 2}, Leader: 1, Directories: []uuid.UUID{old, old}},
	}, 0, 1)
	f := func(broker int32, a DirectoryAssignment, want []uuid.UUID) {
		t.Helper()
		records := assignDirectories(img, broker, []DirectoryAssignment{a})
		if want == nil {
			if len(records) > 0 {
				t.Errorf("got %+v, want no change", records)
			}
			return
		}
		after, _, _ := img.Apply(records, 1, 1)
		got := after.TopicByID(topicID).Partitions[0].Directories
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	f(1, DirectoryAssignment{topicID, 0, dir}, []uuid.UUID{dir, old})
	f(2, DirectoryAssignment{topicID, 0, dir}, []uuid.UUID{old, dir})
	f(1, DirectoryAssignment{topicID, 0, old}, nil)
	f(3, DirectoryAssignment{topicID, 0, dir}, nil)
	f(1, DirectoryAssignment{topicID, 1, dir}, nil)
	f(1, DirectoryAssignment{uuid.New(), 0, dir}, nil)
}

func TestCordonedDirectories(t *testing.T) {
	s := newScript(t)
	r := registration(1)
	r.LogDirs = append(r.LogDirs, uuid.New())
	epoch, err := s.RegisterBroker(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	create := func(topic NewTopic, want Kind) {
		t.Helper()
		n++
		topic.Name = fmt.Sprint("t", n)
		results, err := s.CreateTopics(t.Context(), []NewTopic{topic}, false)
		if err != nil || KindOf(results[0].Err) != want {
			t.Errorf("%+v: got %v, %v, want %v", topic, results[0].Err, err, want)
		}
	}
	f := func(dirs []uuid.UUID, placed, assigned Kind) {
		t.Helper()
		if err := s.CordonDirectories(t.Context(), 1, epoch, dirs); err != nil {
			t.Fatal(err)
		}
		create(NewTopic{Partitions: 1, ReplicationFactor: 1}, placed)
		create(NewTopic{Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1}}}}, assigned)
	}
	f(r.LogDirs[:1], "", "")
	f(r.LogDirs, InvalidReplicationFactor, InvalidReplicaAssignment)
	f(nil, "", "")
	before := s.q.NextOffset()
	if err := s.CordonDirectories(t.Context(), 1, epoch, nil); err != nil || s.q.NextOffset() != before {
		t.Errorf("no change: got %v and %d records", err, s.q.NextOffset()-before)
	}
	if err := s.CordonDirectories(t.Context(), 1, epoch-1, nil); KindOf(err) != StaleBrokerEpoch {
		t.Errorf("old epoch: got %v", err)
	}
	if err := s.CordonDirectories(t.Context(), 9, epoch, nil); KindOf(err) != StaleBrokerEpoch {
		t.Errorf("a broker that is not registered: got %v", err)
	}
}
