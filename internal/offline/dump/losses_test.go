package dump

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Dump shows the files that are gregor's own.
func TestDumpKnownDamage(t *testing.T) {
	x := offlinetest.NewFixture(t)
	x.Lost(checkpoint.Loss{First: 20, End: 40})
	x.Undecided(checkpoint.LostTransaction{ProducerID: 4, FirstOffset: 9, EndOffset: 19})
	if err := checkpoint.WriteOffsets(x.Mem, "/data/gregor-left-alone", map[topic.Partition]int64{{Topic: "old"}: 1}); err != nil {
		t.Fatal(err)
	}
	x.Put("../gregor-clean-state", []byte("GCS1\x5e\x5f\xfe\x01\x00"))
	var out bytes.Buffer
	if err := Files(t.Context(), &out, []string{"/data"}, Options{FS: offlinetest.ReadOnly{FS: x.Mem}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Dumping /data/orders-0/gregor-losses\n0\n1\n20 40\n", "Dumping /data/orders-0/gregor-transactions\n0\n1\n4 9 19 UNDECIDED ",
		"Dumping /data/gregor-left-alone\n0\n1\nold 0 1\n", "Dumping /data/gregor-clean-state\n9 bytes of ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, fmt.Sprint(&out))
		}
	}
}
