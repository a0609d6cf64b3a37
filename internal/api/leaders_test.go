package api

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Whoever names a partition that there is not gets no leader, however far the number is from one.
func TestLeaderOf(t *testing.T) {
	s := imageServer(t, "", append([]metadata.Record{testBroker(1, false, testListener)}, testTopic("orders", 1, testPartition(1, 1), testPartition(1, 1))...)...)
	id := s.Metadata().Topic("orders").ID
	f := func(name string, id uuid.UUID, partition, want int32) {
		t.Helper()
		if leader, epoch := s.leaderOf([]byte(name), id, partition); leader != want || (epoch >= 0) != (want >= 0) {
			t.Errorf("%q %v partition %d: leader %d in epoch %d, want %d", name, id, partition, leader, epoch, want)
		}
	}
	for _, by := range []uuid.UUID{uuid.Zero, id} {
		f("orders", by, 0, 1)
		f("orders", by, 1, 1)
		f("orders", by, 2, -1)
		f("orders", by, 1<<31-1, -1)
		f("orders", by, -1, -1)
	}
	f("", id, 0, 1)
	f("cars", uuid.Zero, 0, -1)
	f("orders", uuid.UUID{1}, 0, -1)
}
