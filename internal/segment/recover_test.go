package segment

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// TestCorruptLog is a broken batch in the middle: what is in front is served, what is behind is
// reported.
func TestCorruptLog(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	must(t, s.Close())
	f, err := m.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0, 0, 0, 1}, 10*size+8) // the length
	must(t, err)
	must(t, f.Close())
	must(t, m.Remove(s.Path(IndexFile)))
	s, err = Open(m, testDir, 0, smallConfig())
	must(t, err)
	if p, ok, err := s.Translate(19, 0); p.BaseOffset != 18 || !ok || err != nil {
		t.Errorf("in front: got %+v, %v, %v", p, ok, err)
	}
	for name, err := range map[string]error{"Translate": second(s.Translate(20, 0)), "Check": s.Check()} {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Position != 10*size || corrupt.Path != s.Path(LogFile) {
			t.Errorf("%s: got %v, want corruption at byte %d", name, err, 10*size)
		}
	}
	cut, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
	want := Damage{Position: 10 * size, Size: size, First: 20, End: 22}
	if d := s.Damages(); cut != 0 || err != nil || len(d) != 1 || d[0].Err == nil {
		t.Fatalf("Recover: cut %d, %v, damage %v, want %v", cut, err, d, want)
	} else if d[0].Err = nil; d[0] != want {
		t.Errorf("Recover: damage %v, want %v", d[0], want)
	}
	must(t, s.Check())
}

func second(_ BatchPosition, _ bool, err error) error { return err }

func TestRecoverStopsAt(t *testing.T) {
	garbage := randomBytes(rand.New(rand.NewPCG(2, 2)), 15)
	flipped := batch(t, 40, 2, t0, 50)
	flipped[len(flipped)-1] ^= 1
	huge := batch(t, 40, 2, t0, 50)
	copy(huge[8:], []byte{0x7f, 0xff, 0xff, 0xff})
	f := func(name string, tail []byte) {
		t.Helper()
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		fill(t, s, 40)
		good := s.Size()
		must(t, s.Close())
		file, err := m.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
		must(t, err)
		_, err = file.WriteAt(tail, good)
		must(t, err)
		must(t, file.Close())
		s = open(t, m, 0, smallConfig())
		var seen int64
		cut, err := s.Recover(func(b Located) error { seen = b.Batch.NextOffset(); return nil }, math.MaxInt64, nil)
		if cut != int64(len(tail)) || err != nil || seen != 40 || s.Size() != good || fileSize(t, s, LogFile) != good {
			t.Errorf("%s: cut %d, %v, saw %d, size %d; want cut %d, size %d", name, cut, err, seen, s.Size(), len(tail), good)
		}
		if ts, offset, err := s.MaxTimestamp(); ts != t0+39 || offset != 39 || err != nil {
			t.Errorf("%s: MaxTimestamp: got %d, %d, %v", name, ts-t0, offset, err)
		}
	}
	f("nothing", nil)
	f("garbage", garbage)
	f("zeros", make([]byte, 5000))
	f("torn header", batch(t, 40, 2, t0, 50)[:30])
	f("torn batch", batch(t, 40, 2, t0, 50)[:150])
	f("wrong crc", flipped)
	f("length of 2 GiB", huge)
	f("offsets again", batch(t, 38, 2, t0, 50))
}

func TestRecoverErrors(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	stop := errors.New("stop")
	if _, err := s.Recover(func(b Located) error {
		if b.Batch.BaseOffset() == 10 {
			return stop
		}
		return nil
	}, math.MaxInt64, nil); err != stop || s.Size() != fileSize(t, s, LogFile) {
		t.Errorf("visit failed: got %v, size %d", err, s.Size())
	}
	m.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead {
			return io.ErrClosedPipe
		}
		return nil
	})
	if _, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("reading failed: got %v", err)
	}
	m.SetHook(nil)
	if _, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil); err != nil || s.Size() != fileSize(t, s, LogFile) {
		t.Errorf("got %v, size %d", err, s.Size())
	}

	must(t, vfs.WriteFileAtomic(m, filepath.Join(testDir, Name(100, LogFile, "")), batch(t, 50, 1, t0, 1)))
	low, err := Open(m, testDir, 100, smallConfig())
	must(t, err)
	if cut, err := low.Recover(func(Located) error { return nil }, math.MaxInt64, nil); err != nil || cut == 0 || low.Size() != 0 {
		t.Errorf("offset below the base: got %v, cut %d, size %d", err, cut, low.Size())
	}
}

// TestHugeLength is a batch that claims to fill a sparse file of 1 GiB: no memory for that.
func TestHugeLength(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(vfs.OS, dir, 0, smallConfig(), time.Now())
	must(t, err)
	fill(t, s, 4)
	good := s.Size()
	must(t, s.Close())
	f, err := os.OpenFile(s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	bad := batch(t, 4, 1, t0, 10)
	copy(bad[8:], []byte{0x04, 0, 0, 0})
	_, err = f.WriteAt(bad, good)
	must(t, err)
	must(t, f.Truncate(good+(64<<20)+12))
	must(t, f.Close())
	s, err = Open(vfs.OS, dir, 0, smallConfig())
	must(t, err)
	var cut int64
	if got := allocatedBytes(func() { cut, err = s.Recover(func(Located) error { return nil }, math.MaxInt64, nil) }); got > 4<<20 {
		t.Errorf("Recover allocated %d bytes", got)
	}
	if cut != 64<<20+12 || err != nil {
		t.Errorf("cut %d, %v", cut, err)
	}
	must(t, s.Close())
}
