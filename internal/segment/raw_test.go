package segment

import (
	"bytes"
	"testing"
)

func TestReadBytes(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	want := append(batch(t, 0, 3, t0, 10), batch(t, 3, 2, t0, 200)...)
	must(t, s.Append(want))
	got := make([]byte, s.Size())
	if err := s.ReadBytes(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	if err := s.ReadBytes(got[:5], s.Size()-5); err != nil || !bytes.Equal(got[:5], want[len(want)-5:]) {
		t.Errorf("got %x, %v", got[:5], err)
	}
	if err := s.ReadBytes(got, 1); err == nil {
		t.Error("no error beyond the end")
	}
}

// The sizes are the same whether the indexes are in memory or not.
func TestIndexSizes(t *testing.T) {
	fsys := newFS(t)
	s := create(t, fsys, 0, smallConfig())
	fill(t, s, 40)
	must(t, s.Close())
	s = open(t, fsys, 0, smallConfig())
	offsets, times, err := s.IndexSizes()
	must(t, err)
	if offsets != fileSize(t, s, IndexFile) || times != fileSize(t, s, TimeIndexFile) || offsets == 0 || times == 0 {
		t.Errorf("sizes %d and %d", offsets, times)
	}
	if _, ok, err := s.Translate(20, 0); !ok || err != nil { // reads them
		t.Fatal(ok, err)
	}
	if o, ts, err := s.IndexSizes(); o != offsets || ts != times || err != nil {
		t.Errorf("sizes %d and %d in memory, %v, want %d and %d", o, ts, err, offsets, times)
	}
}
