package commitlog

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// Pauses of rolls differ by log, segment and seed, stay below their bound, and are the same each time.
func TestRollJitter(t *testing.T) {
	a, b := topic.Partition{Topic: "t"}, topic.Partition{Topic: "t", Partition: 1}
	const bound = 1 << 40
	first := rollJitter(1, a, 0, bound)
	if again := rollJitter(1, a, 0, bound); again != first {
		t.Errorf("got %d and %d", first, again)
	}
	seen := map[int64]bool{first: true}
	for _, other := range []int64{rollJitter(2, a, 0, bound), rollJitter(1, b, 0, bound), rollJitter(1, a, 1, bound)} {
		if seen[other] {
			t.Errorf("%d is there twice", other)
		}
		seen[other] = true
	}
	for base := range int64(1000) {
		if got := rollJitter(1, a, base, 7); got < 0 || got >= 7 {
			t.Fatalf("got %d of 7", got)
		}
	}
}
