package segment

import (
	"bytes"
	"os"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// A damage that is copied has the same bytes and offsets, and is found again when the copy is opened.
func TestAppendDamage(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	must(t, s.Close())
	flip(t, m, s.Path(LogFile), (10*size+70)*8)
	s = open(t, m, 0, smallConfig())
	s.Guard(40)
	_, err := s.Scrub(nil)
	must(t, err)
	d := s.Damages()[0]

	const other = "/other"
	must(t, vfs.MkdirAll(m, other, 0o755))
	c, err := Create(m, other, 0, smallConfig(), s.Created())
	must(t, err)
	set := make([]byte, d.Position)
	must(t, s.ReadBytes(set, 0))
	must(t, c.Append(set))
	must(t, c.AppendDamage(s, d))
	if c.TxnsComplete() {
		t.Error("nobody has looked what became of transactions")
	}
	wantDamage := func() {
		t.Helper()
		if served, refused := offsetsOf(t, c, 22); len(served) != 20 || refused != 2 {
			t.Errorf("%d served, %d refused, want 20 and 2", len(served), refused)
		}
		if got := c.Damages(); len(got) != 1 || got[0].First != 20 || got[0].End != 22 || got[0].Size != d.Size {
			t.Errorf("got %v, want %v", got, d)
		}
	}
	wantDamage()
	must(t, c.Close())
	c, err = Open(m, other, 0, smallConfig())
	must(t, err)
	c.Guard(22)
	wantDamage()
	got, want := make([]byte, d.Size), make([]byte, d.Size)
	must(t, c.ReadBytes(got, d.Position))
	must(t, s.ReadBytes(want, d.Position))
	if !bytes.Equal(got, want) {
		t.Error("bytes have changed")
	}
	must(t, c.Close())
}

// A few bytes at the end, which once were more, may have been a marker.
func TestRemainsOfWhatIsCut(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	must(t, s.Close())
	f, err := m.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	must(t, f.Truncate(10*size+1))
	must(t, f.Close())
	s, err = Open(m, testDir, 0, smallConfig())
	must(t, err)
	s.Guard(40)
	_, err = s.Scrub(nil)
	must(t, err)
	remains, err := s.Remains(s.Damages()[0])
	must(t, err)
	if !remains.Marker || !remains.Room {
		t.Errorf("got %+v, want a marker and room for records", remains)
	}
}
