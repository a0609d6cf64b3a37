package controller

import (
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
