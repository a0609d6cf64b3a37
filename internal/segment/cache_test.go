package segment

import (
	"bytes"
	"testing"
	"time"
)

func TestFileCacheEvicts(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Files = NewFileCache(3)
	var segments []*Segment
	for i := range int64(10) {
		s := create(t, m, i*10, cfg)
		fill(t, s, 10)
		segments = append(segments, s)
	}
	if n := cfg.Files.Len(); n != 3 {
		t.Errorf("%d descriptors, want 3", n)
	}
	for range 3 {
		for _, s := range segments {
			if next, err := s.NextOffset(); next != s.base+10 || err != nil {
				t.Errorf("NextOffset: got %d, %v", next, err)
			}
		}
	}
	if n := cfg.Files.Len(); n != 3 {
		t.Errorf("%d descriptors, want 3", n)
	}
	cfg.Files.CloseIdle()
	cfg.Files.CloseIdle()
	if n := cfg.Files.Len(); n != 0 {
		t.Errorf("%d descriptors after CloseIdle, want none", n)
	}
}

// However many slices there are, they hold no more descriptors than the cache allows, and read the
// same bytes as others.
func TestManySlicesHoldFewDescriptors(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Files = NewFileCache(2)
	var slices []Slice
	var segments []*Segment
	for i := range int64(20) {
		s := create(t, m, i*10, cfg)
		fill(t, s, 10)
		segments = append(segments, s)
		sl, err := s.Read(s.base, 1<<20, s.Size(), CutFirst)
		must(t, err)
		slices = append(slices, sl)
		if n := cfg.Files.Open(); n > 3*2 {
			t.Fatalf("%d descriptors are open with %d slices", n, len(slices))
		}
	}
	for i, sl := range slices {
		whole, err := m.OpenFile(segments[i].Path(LogFile), 0, 0)
		must(t, err)
		want, got := make([]byte, segments[i].Size()), make([]byte, sl.Size())
		_, err = whole.ReadAt(want, 0)
		must(t, err)
		must(t, whole.Close())
		if n, err := sl.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("slice %d: read %d bytes of %d, %v", i, n, len(want), err)
		}
	}
	gone, err := Create(m, testDir, 1000, cfg, time.UnixMilli(t0))
	must(t, err)
	fill(t, gone, 10)
	sl, err := gone.Read(1000, 1<<20, gone.Size(), CutFirst)
	must(t, err)
	must(t, gone.Remove())
	if _, err := sl.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("a slice without a descriptor outlives its segment")
	}
	for _, sl := range slices {
		sl.Release()
	}
	cfg.Files.CloseUnused()
	if n := cfg.Files.Open(); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
}

func TestFileCacheShrinks(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Files = NewFileCache(8)
	for i := range int64(8) {
		fill(t, create(t, m, i*10, cfg), 10)
	}
	cfg.Files.SetMax(3)
	if n, open := cfg.Files.Len(), cfg.Files.Open(); n != 3 || open != 3 {
		t.Errorf("%d descriptors cached and %d open, want 3", n, open)
	}
}

func TestIndexCacheEvicts(t *testing.T) {
	m := newFS(t)
	cfg := smallConfig()
	cfg.Indexes = NewIndexCache(2000)
	var segments []*Segment
	for i := range int64(10) {
		s := create(t, m, i*100, cfg)
		fill(t, s, 60)
		must(t, s.Seal())
		segments = append(segments, s)
	}
	for range 2 {
		for _, s := range segments {
			if p, ok, err := s.Translate(s.base+51, 0); p.BaseOffset != s.base+50 || !ok || err != nil {
				t.Errorf("Translate: got %+v, %v, %v", p, ok, err)
			}
		}
	}
	if count, size := cfg.Indexes.Size(); size > 2000 || count == 0 || count > 5 {
		t.Errorf("%d indexes of %d bytes cached, want at most 2000", count, size)
	}
	must(t, segments[0].Append(batch(t, 60, 1, t0+100, 50)))
	cfg.Indexes.DropIdle()
	cfg.Indexes.DropIdle()
	if count, _ := cfg.Indexes.Size(); count != 0 {
		t.Errorf("%d indexes cached after DropIdle", count)
	}
	if segments[0].idx.Load() == nil || segments[1].idx.Load() != nil {
		t.Error("the index of a writer was dropped, or that of a sealed segment kept")
	}
}
