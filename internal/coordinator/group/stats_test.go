package group

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestStats(t *testing.T) {
	const set = "kafka-4.4.0-kraft"
	c := loadGolden(t, set)
	data, err := os.ReadFile(filepath.Join("testdata/golden", set, "groups.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden []goldenGroup
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	offsets := 0
	for _, g := range golden {
		offsets += len(g.Offsets)
	}
	stats := c.Stats(t.Context())
	for stats.Loading > 0 {
		runtime.Gosched()
		stats = c.Stats(t.Context())
	}
	if stats.Shards != 4 || stats.Offsets != offsets || stats.NumGroups() < len(golden) {
		t.Errorf("got %+v, want 4 shards, %d offsets and at least %d groups", stats, offsets, len(golden))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if stats := c.Stats(ctx); stats.Shards != 4 {
		t.Errorf("without time: got %+v, want 4 shards", stats)
	}
}
