package segment

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// offsetsOf reads as a client does: on from the end of each batch, and where the answer is an
// error one offset further. It fails the test for a batch that is broken.
func offsetsOf(t *testing.T, s *Segment, end int64) (served map[int64]bool, refused int) {
	t.Helper()
	served = map[int64]bool{}
	for next := s.BaseOffset(); next < end; {
		sl, err := s.Read(next, 1000, s.Size(), WholeFirst)
		if err == ErrNotFound {
			return served, refused
		}
		if errors.Is(err, ErrCorrupt) {
			refused++
			next++
			continue
		}
		must(t, err)
		b := make([]byte, sl.Size())
		_, err = sl.ReadAt(b, 0)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		sl.Release()
		before := next
		for batch, err := range record.Batches(b) {
			if err != nil {
				break // cut by the limit of bytes
			}
			if err := batch.Verify(); err != nil {
				t.Fatalf("read at %d: a broken batch: %v", next, err)
			}
			for o := batch.BaseOffset(); o <= batch.LastOffset(); o++ {
				served[o] = true
			}
			next = batch.NextOffset()
		}
		if next <= before {
			t.Fatalf("read at %d: stays there, %d bytes", before, len(b))
		}
	}
	return served, refused
}

func flip(t *testing.T, fs vfs.FS, path string, bit int64) {
	t.Helper()
	f, err := fs.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], bit/8)
	must(t, err)
	b[0] ^= 1 << (bit % 8)
	_, err = f.WriteAt(b[:], bit/8)
	must(t, err)
	must(t, f.Close())
}

// Every bit of a header, and bits of the rest, in the first, a middle and the last batch: what
// is outside of the batch is served, and nothing wrong is.
func TestOneFlippedBit(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 1000, smallConfig())
	var starts []int64
	for i := range int64(40) {
		starts = append(starts, s.Size())
		must(t, s.Append(batch(t, 1000+3*i, 3, t0+i, 40)))
	}
	end, size := int64(1000+3*40), s.Size()
	must(t, s.Close())
	path := s.Path(LogFile)
	epoch := func(bit int64) bool { return bit/8 >= 12 && bit/8 < 16 } // nothing tells that it is wrong
	try := func(i int, bit int64, unclean bool) {
		t.Helper()
		flip(t, m, path, starts[i]*8+bit)
		defer flip(t, m, path, starts[i]*8+bit)
		found := 0
		s, err := Open(m, testDir, 1000, smallConfig())
		must(t, err)
		s.OnDamage(func(string, Damage) { found++ })
		defer s.log.close()
		if unclean {
			cut, err := s.Recover(func(Located) error { return nil }, end, func(int64) (int64, bool, error) { return end, true, nil })
			if cut != 0 || err != nil {
				t.Fatalf("batch %d bit %d: Recover: cut %d, %v", i, bit, cut, err)
			}
		}
		s.Guard(end)
		served, refused := offsetsOf(t, s, end)
		for o := int64(1000); o < end; o++ {
			touched := o >= 1000+3*int64(i) && o < 1003+3*int64(i)
			if served[o] == touched && !(touched && epoch(bit)) {
				t.Fatalf("batch %d bit %d, unclean %v: offset %d served: %v; damage %v", i, bit, unclean, o, served[o], s.Damages())
			}
		}
		if next, err := s.NextOffset(); next != end || err != nil {
			t.Fatalf("batch %d bit %d, unclean %v: NextOffset %d, %v, want %d", i, bit, unclean, next, err, end)
		}
		if !epoch(bit) && (refused != 3 || found != 1) {
			t.Fatalf("batch %d bit %d, unclean %v: %d offsets refused, %d damages told of", i, bit, unclean, refused, found)
		}
		got, ok, err := s.OffsetByTimestamp(t0+20, 1000)
		if want := int64(1056); i != 18 && (got.Offset != want || !ok || err != nil) {
			t.Fatalf("batch %d bit %d, unclean %v: by time: got %v, %v, %v, want %d", i, bit, unclean, got, ok, err, want)
		}
		must(t, s.Check())
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, i := range []int{0, 1, 17, 20, 39} {
		bits := int64(record.HeaderSize * 8)
		for bit := range bits {
			try(i, bit, bit%2 == 0)
			try(i, bit, bit%2 == 1)
		}
		for range 50 {
			rest := size - starts[i]
			if i+1 < len(starts) {
				rest = starts[i+1] - starts[i]
			}
			try(i, bits+rng.Int64N(rest*8-bits), rng.IntN(2) == 0)
		}
	}
}

// Neighbours are damaged, and pieces are missing and too much: all good batches are served.
func TestDamageOfManyKinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		var file []byte
		good := map[int64]bool{}
		const batches = 30
		before := 0
		for i := range int64(batches) {
			b := batch(t, 2*i, 2, t0+i, 30+rng.IntN(60))
			ok := true
			n := rng.IntN(20)
			if before == 3 && n == 3 { // two wrong base offsets in a row confirm each other
				n = 4
			}
			before = n
			switch {
			case i == batches-1:
			case n == 0: // a hole of zeros
				clear(b)
				ok = false
			case n == 1: // a piece is missing
				at := 12 + rng.IntN(len(b)-32)
				b = append(b[:at:at], b[at+1+rng.IntN(19):]...)
				ok = false
			case n == 2: // bytes were put in front
				b = append(randomBytes(rng, 1+rng.IntN(50)), b...)
			case n == 3: // a bit
				b[rng.IntN(12)] ^= 1 << rng.IntN(8)
				ok = false
			case n == 4:
				b[17+rng.IntN(len(b)-17)] ^= 1 << rng.IntN(8)
				ok = false
			}
			good[2*i], good[2*i+1] = ok, ok
			file = append(file, b...)
		}
		must(t, s.Close())
		must(t, vfs.WriteFileAtomic(m, s.Path(LogFile), file))
		for _, unclean := range []bool{true, false} {
			s, err := Open(m, testDir, 0, smallConfig())
			must(t, err)
			if unclean {
				cut, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
				if cut != 0 || err != nil {
					t.Fatalf("round %d: cut %d, %v", round, cut, err)
				}
			}
			s.Guard(2 * batches)
			served, _ := offsetsOf(t, s, 2*batches)
			for o, ok := range good {
				if ok != served[o] {
					t.Fatalf("round %d, unclean %v: offset %d served: %v, want %v; damage %v", round, unclean, o, served[o], ok, s.Damages())
				}
			}
			must(t, s.Check())
			must(t, s.Close())
		}
	}
}

// A search through damage that is full of things that look like batches ends.
func TestSearchIsBounded(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 2)
	good := s.Size()
	must(t, s.Close())
	decoy := batch(t, 10, 1, t0, 0)
	decoy[8], decoy[9] = 0, 3 // long
	decoy[20] ^= 1
	file, err := vfs.ReadFile(m, s.Path(LogFile), 1<<20)
	must(t, err)
	for len(file) < 400<<10 {
		file = append(file, decoy...)
	}
	must(t, vfs.WriteFileAtomic(m, s.Path(LogFile), file))
	s, err = Open(m, testDir, 0, smallConfig())
	must(t, err)
	cut, err := s.Recover(func(Located) error { return nil }, math.MaxInt64, nil)
	if cut != int64(len(file))-good || err != nil {
		t.Errorf("cut %d, %v, want %d", cut, err, int64(len(file))-good)
	}
}

// What is appended behind damage is there, and a truncation takes the damage away.
func TestAppendAndTruncateBehindDamage(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 40)
	size := s.Size() / 20
	must(t, s.Close())
	flip(t, m, s.Path(LogFile), (10*size+30)*8)
	flip(t, m, s.Path(LogFile), (19*size+8)*8+7) // the last one, in its length
	s, err := Open(m, testDir, 0, smallConfig())
	must(t, err)
	s.Guard(40)
	must(t, s.Append(batch(t, 40, 2, t0, 50)))
	if served, refused := offsetsOf(t, s, 42); len(served) != 38 || refused != 4 {
		t.Errorf("%d served, %d refused, want 38 and 4", len(served), refused)
	}
	for _, offset := range []int64{41, 39, 25, 21, 5} {
		_, err := s.TruncateTo(offset)
		must(t, err)
		must(t, s.Check())
		for _, d := range s.Damages() {
			if d.end() > s.Size() {
				t.Errorf("truncated to %d, size %d: %v is left", offset, s.Size(), d)
			}
		}
	}
	if n := len(s.Damages()); n != 0 {
		t.Errorf("%d damages are left", n)
	}
}

// Damage that looks like a batch leads no truncation to the wrong place, and does not make the
// segment end where it claims to.
func TestTruncateBehindLookalike(t *testing.T) {
	f := func(name string, claimed int64) {
		t.Run(name, func(t *testing.T) {
			m := newFS(t)
			cfg := smallConfig()
			cfg.IndexIntervalBytes = 1 << 20 // no entries: walks begin at the start of the file
			s := create(t, m, 100, cfg)
			for base := int64(100); base < 120; base += 4 {
				must(t, s.Append(batch(t, base, 4, t0, 50)))
			}
			must(t, s.Close())
			file, err := vfs.ReadFile(m, s.Path(LogFile), 1<<20)
			must(t, err)
			record.Batch(file).SetBaseOffset(claimed)
			must(t, vfs.WriteFileAtomic(m, s.Path(LogFile), file))

			s = open(t, m, 100, cfg)
			s.Guard(120)
			_, err = s.TruncateTo(110) // inside the third batch
			must(t, err)
			next, err := s.NextOffset()
			if next != 108 || err != nil {
				t.Errorf("next offset %d, %v, want 108", next, err)
			}
			if d := s.Damages(); len(d) != 1 || d[0].First != 100 || d[0].End != 104 {
				t.Errorf("damages %v, want offsets [100,104)", d)
			}
		})
	}
	f("below the segment", 0)
	f("in front of the next one", 99)
	f("where it is cut", 109)
	f("beyond the end", 1<<20)
}

// Guarding costs no allocation once a segment is proven.
func TestGuardedReadDoesNotAllocate(t *testing.T) {
	s, err := Create(vfs.OS, t.TempDir(), 0, Config{}, time.Now())
	must(t, err)
	fill(t, s, 2000)
	must(t, s.Close())
	s, err = Open(vfs.OS, s.files.directory(), 0, Config{})
	must(t, err)
	s.Guard(2000)
	read := func() {
		sl, err := s.Read(1000, 4096, math.MaxInt64, WholeFirst)
		must(t, err)
		sl.Release()
	}
	read()
	if n := testing.AllocsPerRun(100, read); n > 0 {
		t.Errorf("a read of proven bytes allocates %v times", n)
	}
}
