package web

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/metrics"
)

func TestCleanerSamples(t *testing.T) {
	var text bytes.Buffer
	w := metrics.NewWriter(&text)
	writeCleanerTotals(w, &cleaner.Totals{Cleanings: 3, Failed: 1, RecordsRead: 10, RecordsKept: 4})
	writeCleanerThreads(w, []cleaner.ThreadStats{
		{Alive: true},
		{Alive: true, Partition: "orders-0", Progress: cleaner.ProgressReport{Phase: "map", MapBytes: 1, MapTotal: 4, BytesPerSecond: 1e6}},
		{Alive: true, Partition: "orders-1", Progress: cleaner.ProgressReport{Phase: "rewrite", MapBytes: 4, MapTotal: 4, ReadBytes: 1, ReadTotal: 2}},
		{Alive: true, Partition: "orders-2", Progress: cleaner.ProgressReport{Phase: "map"}},
	})
	writeByLabel(w, cleanerSkipped, map[cleaner.Skip]int{cleaner.SkipRatio: 2, cleaner.SkipBusy: 1})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`gregor_cleaner_cleanings_total{outcome="done"} 3`,
		`gregor_cleaner_cleanings_total{outcome="failed"} 1`,
		`gregor_cleaner_records_kept_total 4`,
		`gregor_cleaner_progress_ratio{thread="1",partition="orders-0",phase="map"} 0.25`,
		`gregor_cleaner_progress_ratio{thread="2",partition="orders-1",phase="rewrite"} 0.5`,
		`gregor_cleaner_progress_ratio{thread="3",partition="orders-2",phase="map"} 0`,
		`gregor_cleaner_bytes_per_second{thread="1",partition="orders-0"} 1e+06`,
		`gregor_cleaner_skipped_partitions{reason="` + string(cleaner.SkipRatio) + `"} 2`,
	} {
		if !strings.Contains(text.String(), "\n"+want+"\n") {
			t.Errorf("no line %s in\n%s", want, text.String())
		}
	}
}
