package segment

import (
	"testing"
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
