package api

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/vfs"
)

// kafkaAPIs reads what Kafka 4.4.0 lists in ApiVersions: names, and the lowest and highest version.
func kafkaAPIs(t *testing.T) (names map[int16]string, versions map[int16][2]int16) {
	t.Helper()
	text, err := os.ReadFile("testdata/api-versions-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, versions = map[int16]string{}, map[int16][2]int16{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, "(")
		var key, low, high int16
		if n, _ := fmt.Sscanf(rest, "%d): %d to %d", &key, &low, &high); n == 2 {
			high = low
		} else if n != 3 {
			t.Fatalf("%s: cannot read %q", name, rest)
		}
		names[key], versions[key] = name, [2]int16{low, high}
	}
	return names, versions
}

// The README names every API of Kafka that is missing, and none that is there.
func TestReadmeNamesWhatIsMissing(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(readme), "\nNot yet: ")
	list, _, _ = strings.Cut(list, "\n## ")
	var named []string // the middle column
	for line := range strings.Lines(list) {
		if columns := strings.Split(line, "|"); len(columns) == 5 {
			for name := range strings.SplitSeq(columns[2], ",") {
				named = append(named, strings.TrimSpace(name))
			}
		}
	}
	want := []string{"---", "APIs that are missing"}
	names, _ := kafkaAPIs(t)
	n := startNode(t, vfs.NewMem(), "data")
	for key, name := range names {
		if n.find(key) == nil {
			want = append(want, name)
		}
	}
	slices.Sort(named)
	slices.Sort(want)
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("APIs that are missing (-) and what README.md names (+):\n%s", diff)
	}
}

// What is served lies within what kmsg can read and, at its upper end, within what Kafka
// serves, and reaches down to where Kafka does.
func TestVersionsAgainstKafka(t *testing.T) {
	_, kafka := kafkaAPIs(t)
	n := startNode(t, vfs.NewMem(), "data")
	for _, a := range n.apis {
		if a == nil {
			continue
		}
		name := kmsg.NameForKey(a.key)
		k, ok := kafka[a.key]
		if a.unlisted {
			if ok {
				t.Errorf("%s is listed by Kafka", name)
			}
			continue
		}
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
