package topic

import "testing"

func TestPartitionFor(t *testing.T) {
	f := func(id string, count, want int32) {
		t.Helper()
		if got := PartitionFor(id, count); got != want {
			t.Errorf("PartitionFor(%q, %d) = %d, want %d", id, count, got, want)
		}
	}
	// Where Kafka 4.4 put the groups of the golden set, with four partitions.
	f("g-txn", 4, 0)
	f("g-consumer-static", 4, 1)
	f("g-compact-txn", 4, 2)
	f("g-classic-static", 4, 3)
	// Java's hashCode: of the empty string 0, of "polygenelubricants" the smallest int32,
	// beyond the basic plane over surrogates.
	f("", 50, 0)
	f("polygenelubricants", 50, 0)
	f("😀", 1<<30, 1772899)
}

func FuzzPartitionFor(f *testing.F) {
	f.Add("group", int32(50))
	f.Add("\xff\xfe", int32(1))
	f.Fuzz(func(t *testing.T, id string, count int32) {
		if count <= 0 {
			return
		}
		if p := PartitionFor(id, count); p < 0 || p >= count {
			t.Errorf("PartitionFor(%q, %d) = %d", id, count, p)
		}
	})
}
