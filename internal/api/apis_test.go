package api

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/vfs"
)

// What is served lies within what kmsg can read and, at its upper end, within what Kafka
// serves, and reaches down to where Kafka does.
func TestVersionsAgainstKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/api-versions-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	kafka := map[int16][2]int16{}
	for line := range strings.Lines(string(text)) {
		name, versions, _ := strings.Cut(line, "(")
		var key, low, high int16
		if n, _ := fmt.Sscanf(versions, "%d): %d to %d", &key, &low, &high); n == 2 {
			high = low
		} else if n != 3 {
			t.Fatalf("%s: cannot read %q", name, versions)
		}
		kafka[key] = [2]int16{low, high}
	}
	n := startNode(t, vfs.NewMem(), "data", nil)
	for _, a := range n.apis {
		if a == nil {
			continue
		}
		name := kmsg.NameForKey(a.key)
		k, ok := kafka[a.key]
		if !ok {
			t.Errorf("%s is not served by Kafka", name)
			continue
		}
		if a.max > k[1] || a.min > k[0] {
			t.Errorf("%s is served in versions %d to %d, by Kafka %d to %d", name, a.min, a.max, k[0], k[1])
		}
		if highest := kmsg.RequestForKey(a.key).MaxVersion(); a.max > highest {
			t.Errorf("%s is served up to version %d, kmsg reads up to %d", name, a.max, highest)
		}
	}
}
