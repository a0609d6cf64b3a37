package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/vfs"
)

// The program prints what Kafka's consumers read from the directories of all releases. Records below the start of
// a log are still in its files.
func TestPrintDirectory(t *testing.T) {
	for _, d := range golden.Dirs() {
		if !d.Expected || !d.Clean {
			continue
		}
		t.Run(d.String(), func(t *testing.T) {
			fsys := vfs.NewMem()
			golden.Unpack(t, fsys, "root", d.Set)
			var out strings.Builder
			if err := printDirectory(&out, fsys, filepath.Join("root", d.Name)); err != nil {
				t.Fatal(err)
			}
			printed := map[string][]string{}
			for line := range strings.Lines(out.String()) {
				partition, rest, _ := strings.Cut(line, "\t")
				printed[partition] = append(printed[partition], rest)
			}
			for partition, records := range d.Records(t) {
				var want []string
				for _, r := range records {
					want = append(want, fmt.Sprintf("%d\t%d\t%q\t%q\n", r.Offset, r.Timestamp, r.Key, r.Value))
				}
				got := printed[partition.String()]
				first, _, _ := strings.Cut(want[0], "\t")
				begin := max(0, slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, first+"\t") }))
				if diff := cmp.Diff(want, got[begin:]); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", partition, diff)
				}
			}
		})
	}
}
