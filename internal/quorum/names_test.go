package quorum

import (
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/segment"
)

const logSuffix = string(segment.LogFile)

// Names have as many digits as Kafka gives them, and nothing but digits.
func TestNames(t *testing.T) {
	offset := func(n string) string { return strings.Repeat("0", 20-len(n)) + n }
	log := func(name string, want int64) {
		t.Helper()
		if got, ok := parseSegment(name); ok != (want >= 0) || ok && got != want {
			t.Errorf("segment %s: got %d, %v", name, got, ok)
		}
	}
	log(offset("7")+".log", 7)
	log("0"+offset("7")+".log", 7)
	log(offset("7")[1:]+".log", -1)
	log(offset("7"), -1)
	log(offset("7")+".index", -1)
	log("+"+offset("7")[1:]+".log", -1)
	log(strings.Repeat("9", 20)+".log", -1)

	checkpoint := func(name string, want snapshotID, is bool) {
		t.Helper()
		if got, ok := parseCheckpoint(name); ok != is || ok && got != want {
			t.Errorf("checkpoint %s: got %v, %v", name, got, ok)
		}
	}
	checkpoint(offset("7")+"-0000000003.checkpoint", snapshotID{7, 3}, true)
	checkpoint(offset("0")+"-0000000000.checkpoint", bootstrapID, true)
	checkpoint(offset("7")+"-0000000003", snapshotID{}, false)
	checkpoint(offset("7")+".checkpoint", snapshotID{}, false)
	checkpoint(offset("7")[1:]+"-0000000003.checkpoint", snapshotID{}, false)
	checkpoint(offset("7")+"-000000003.checkpoint", snapshotID{}, false)
	checkpoint(offset("x")+"-0000000003.checkpoint", snapshotID{}, false)
	checkpoint(offset("7")+"-000000000x.checkpoint", snapshotID{}, false)
	checkpoint(offset("7")+"-4294967295.checkpoint", snapshotID{}, false)
}
