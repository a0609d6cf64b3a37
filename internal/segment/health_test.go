package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errOddBytes = errors.New("odd bytes")

// told returns a health that writes down what it is told of.
func told() (*health, *[]string) {
	var names []string
	h := new(health)
	h.mu.onDamage = func(_ string, d Damage) { names = append(names, fmt.Sprintf("%d+%d", d.Position, d.Size)) }
	return h, &names
}

// A damage is told of once, by where it is and how large.
func TestDamageIsToldOnce(t *testing.T) {
	h, names := told()
	f := func(want string, list ...Damage) {
		t.Helper()
		*names = nil
		news := h.setLocked(new(fileSet), list)
		if got := fmt.Sprint(*names); got != want || news != (len(*names) > 0) {
			t.Errorf("%v: told of %s, news %v, want %s", list, got, news, want)
		}
		if len(h.list()) != len(list) {
			t.Errorf("%v: the list is %v", list, h.list())
		}
	}
	a, b := Damage{Position: 10, Size: 5}, Damage{Position: 20, Size: 5}
	f("[10+5]", a)
	f("[]", a)
	f("[20+5]", a, b)
	f("[]", b)
	f("[10+5]", a)
	f("[10+7]", Damage{Position: 10, Size: 7})
	f("[]")
	f("[10+5 20+5]", a, b)
}

// A truncation takes damage away that is not whole in front of it, and losses whose offsets are cut.
func TestCutDamage(t *testing.T) {
	bytesLost := Damage{Position: 10, Size: 10, First: 5, End: 8, Err: errOddBytes}
	loss := Damage{Position: 20, First: 8, End: 12, Err: errOddBytes}
	f := func(position, offset int64, want ...Damage) {
		t.Helper()
		h, _ := told()
		h.setLocked(new(fileSet), []Damage{bytesLost, loss})
		h.cutLocked(new(fileSet), position, offset)
		if !slices.Equal(h.list(), want) {
			t.Errorf("cut at byte %d, offset %d: got %v, want %v", position, offset, h.list(), want)
		}
	}
	shorter := loss
	shorter.End = 9
	f(30, 20, bytesLost, loss)
	f(20, 12, bytesLost, loss)
	f(20, 9, bytesLost, shorter)
	f(20, 8, bytesLost)
	f(19, 8)
	f(10, 5)
}

// Who asks for what is lost behind the last batch is told so; behind that there is nothing.
func TestLossAt(t *testing.T) {
	f := func(list []Damage, offset int64, want bool) {
		t.Helper()
		h, _ := told()
		h.setLocked(new(fileSet), list)
		err := h.lossAt(new(fileSet), offset)
		if _, lost := errors.AsType[*CorruptError](err); lost != want || !lost && err != ErrNotFound {
			t.Errorf("offset %d with %v: got %v", offset, list, err)
		}
	}
	loss := []Damage{{Position: 20, First: 8, End: 12, Err: errOddBytes}}
	f(loss, 8, true)
	f(loss, 11, true)
	f(loss, 12, false)
	f(nil, 8, false)
	f([]Damage{{Position: 10, Size: 10, First: 8, End: 12}}, 9, false)
}

func TestDamageList(t *testing.T) {
	list := damageList{{Position: 10, Size: 5, First: 3, End: 5}, {Position: 20, Size: 5, First: 7, End: 8}}
	at := func(position int64, want int) {
		t.Helper()
		if d, ok := list.at(position); ok != (want >= 0) || ok && d != list[want] {
			t.Errorf("byte %d: got %v, %v", position, d, ok)
		}
	}
	at(9, -1)
	at(10, 0)
	at(14, 0)
	at(15, -1)
	at(20, 1)
	at(25, -1)
	with := func(offset int64, want int) {
		t.Helper()
		if d, ok := list.with(offset); ok != (want >= 0) || ok && d != list[want] {
			t.Errorf("offset %d: got %v, %v", offset, d, ok)
		}
	}
	with(2, -1)
	with(3, 0)
	with(4, 0)
	with(5, -1)
	with(7, 1)
	with(8, -1)
}

func TestDoubtFind(t *testing.T) {
	d := &doubt{[]span{{from: 10, to: 20}, {from: 30, to: 40}}}
	f := func(position int64, want int) {
		t.Helper()
		if i, ok := d.find(position); ok != (want >= 0) || ok && i != want {
			t.Errorf("byte %d: got %d, %v", position, i, ok)
		}
	}
	f(9, -1)
	f(10, 0)
	f(19, 0)
	f(20, -1)
	f(30, 1)
	f(40, -1)
}

// doubted is a segment of ten batches with offsets 0-19, opened with all of it in doubt.
func doubted(t *testing.T) (s *Segment, f *openFile, at func(batch int) int64) {
	t.Helper()
	m := newFS(t)
	s = create(t, m, 0, smallConfig())
	fill(t, s, 20)
	size := s.Size() / 10
	must(t, s.Close())
	s = open(t, m, 0, smallConfig())
	s.Guard(20)
	f, err := s.log.acquire()
	must(t, err)
	t.Cleanup(f.release)
	return s, f, func(batch int) int64 { return int64(batch) * size }
}

// What was looked at once is known, in spans that grow together; where an index entry vouches for the first
// batch of a span it has to be right.
func TestProveSpan(t *testing.T) {
	s, f, at := doubted(t)
	prove := func(sp span, entry, to int64, ok bool, want ...span) {
		t.Helper()
		if got := s.health.proveSpan(&s.files, f, sp, entry, to); got != ok {
			t.Errorf("%+v to %d: got %v", sp, to, got)
		}
		var got []span
		if d := s.health.doubt.Load(); d != nil {
			got = d.proven
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("%+v to %d (-want +got):\n%s", sp, to, diff)
		}
	}
	entry := func(batch int) span { return span{from: at(batch), to: at(batch), next: -1} }
	first := span{0, at(2), 4}
	prove(span{next: 0}, 0, at(2), true, first)
	prove(entry(5), 12, at(6), false, first)
	prove(entry(5), 10, at(6), false, first)
	prove(entry(5), 11, at(6), true, first, span{at(5), at(6), 12})
	prove(entry(4), 9, at(7), true, first, span{at(4), at(7), 14}) // over what is known
	prove(entry(6), 13, at(6)+1, true, first, span{at(4), at(7), 14})
	prove(entry(1), 3, at(3), true, span{at(4), at(7), 14}, span{0, at(3), 6})
	prove(span{next: 7}, 0, at(9), true, span{0, at(9), 18})
	prove(entry(9), 19, at(10), true, span{0, at(9), 18}, span{at(9), at(10), 20})
	prove(span{next: 0}, 0, at(10), true)
	if s.health.doubt.Load() != nil {
		t.Error("all is proven, and in doubt")
	}
	prove(span{next: 0}, 0, at(10), true)
}

// A batch that does not go on from the one before, or whose checksum is wrong, makes no span.
func TestProveSpanOdd(t *testing.T) {
	f := func(name string, bit int64, next int64) {
		t.Helper()
		s, file, at := doubted(t)
		flip(t, s.files.fs, s.Path(LogFile), at(2)*8+bit)
		if s.health.proveSpan(&s.files, file, span{next: next}, 0, at(5)) {
			t.Errorf("%s: nothing odd", name)
		}
		if n := len(s.health.doubt.Load().proven); n > 0 {
			t.Errorf("%s: %d spans", name, n)
		}
		flip(t, s.files.fs, s.Path(LogFile), at(2)*8+bit)
	}
	f("body", 70*8, 0)
	f("base offset", 7*8+5, 0)
	f("nothing, but another start", 12*8, 1)
	f("length", 10*8, 0)
}

// A read looks at what it needs, once.
func TestReadsProveOnce(t *testing.T) {
	s, _, at := doubted(t)
	read := func(offset int64, size int) *doubt {
		t.Helper()
		sl, err := s.Read(offset, size, s.Size(), WholeFirst)
		must(t, err)
		sl.Release()
		return s.health.doubt.Load()
	}
	proven := func(d *doubt) (bytes int64) {
		for _, sp := range d.proven {
			bytes += sp.to - sp.from
		}
		return bytes
	}
	one := read(8, 1)
	if got := proven(one); got == 0 || got > at(3) {
		t.Errorf("the first read has looked at %d bytes", got)
	}
	if again := read(8, 1); again != one {
		t.Error("the same read looks again")
	}
	if again := read(9, int(at(1))); again != one {
		t.Error("a read of the same batch looks again")
	}
	more := read(8, int(at(2)))
	if more == one || proven(more) <= proven(one) {
		t.Error("a longer read has not looked at more")
	}
	if read(0, int(at(10))) != nil {
		t.Error("all was read, and is in doubt")
	}
}

// A truncation forgets what was known of bytes behind it, and no more.
func TestCutSpans(t *testing.T) {
	f := func(position int64, want ...span) {
		t.Helper()
		h, _ := told()
		h.guard.Store(&guard{end: 100, bound: 50})
		h.doubt.Store(&doubt{[]span{{from: 0, to: 20}, {from: 30, to: 40}}})
		h.cut(new(fileSet), position, 25)
		if got := h.doubt.Load().proven; !slices.Equal(got, want) {
			t.Errorf("cut at %d: got %v, want %v", position, got, want)
		}
		if g := h.guard.Load(); *g != (guard{min(position, 100), 25}) {
			t.Errorf("cut at %d: guard %+v", position, g)
		}
	}
	a, b := span{from: 0, to: 20}, span{from: 30, to: 40}
	f(200, a, b)
	f(40, a, b)
	f(39, a)
	f(20, a)
	f(19)
}

// Who met damage looks again if somebody else has found it meanwhile, or if it is found now.
func TestHeal(t *testing.T) {
	s, f, at := doubted(t)
	heal := func(name string, err error, seen *damageList, want bool) {
		t.Helper()
		if got := s.health.heal(&s.files, f, err, seen); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	bad := s.files.corrupt(0, 0, errTorn)
	heal("no damage", io.EOF, nil, false)
	heal("nothing found", errTorn, nil, false)
	flip(t, s.files.fs, s.Path(LogFile), at(3)*8+70*8)
	heal("found", bad, nil, true)
	heal("found by another", bad, nil, true)
	seen := s.health.damage.Load()
	heal("known", bad, seen, false)
	flip(t, s.files.fs, s.Path(LogFile), at(7)*8+70*8)
	seen = s.health.damage.Load()
	heal("in quarantine, and nobody looks for more", s.files.quarantined((*seen)[0]), seen, false)
	heal("more", bad, seen, true)

	unguarded := create(t, newFS(t), 0, smallConfig())
	if unguarded.health.heal(&unguarded.files, f, errTorn, nil) {
		t.Error("healed without a guard")
	}
}

// A scrub says whether it found something new, and keeps what it cannot see: losses, and damage that was
// copied behind what is guarded.
func TestScrubNews(t *testing.T) {
	s, _, at := doubted(t)
	scrub := func(name string, want bool, damages ...string) {
		t.Helper()
		news, err := s.Scrub(nil)
		must(t, err)
		var got []string
		for _, d := range s.Damages() {
			got = append(got, fmt.Sprintf("%d-%d", d.First, d.End))
		}
		if news != want || !slices.Equal(got, damages) {
			t.Errorf("%s: news %v, damages %v", name, news, got)
		}
	}
	scrub("good", false)
	flip(t, s.files.fs, s.Path(LogFile), at(3)*8+70*8)
	scrub("a bit", true, "6-8")
	scrub("the same", false, "6-8")
	flip(t, s.files.fs, s.Path(LogFile), at(5)*8+70*8) // of a batch as large
	scrub("another bit", true, "6-8", "10-12")
	s.AddLoss(20, 25, errOddBytes)
	scrub("a loss", false, "6-8", "10-12", "20-25")

	unguarded := create(t, newFS(t), 0, smallConfig())
	fill(t, unguarded, 20)
	if news, err := unguarded.Scrub(nil); news || err != nil {
		t.Errorf("without a guard: %v, %v", news, err)
	}
	flip(t, s.files.fs, s.Path(LogFile), at(3)*8+70*8)
	flip(t, s.files.fs, s.Path(LogFile), at(5)*8+70*8)
	scrub("mended", false, "20-25")
	d := Damage{Position: s.Size(), Size: 10, First: 25, End: 27, Err: errOddBytes}
	s.health.setLocked(&s.files, append(slices.Clone(s.Damages()), d))
	scrub("copied", false, "20-25", "25-27")
	s.health.setLocked(&s.files, nil)
}

// A scrub reads each byte once, and asks before that.
func TestScrubPace(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, Config{})
	for i := range int64(40) {
		must(t, s.Append(batch(t, i, 1, t0, 20_000)))
	}
	s.Guard(40)
	total := 0
	_, err := s.Scrub(func(n int) error { total += n; return nil })
	must(t, err)
	if size := int(s.Size()); total < size || total > size+size/100 {
		t.Errorf("read %d bytes of %d", total, size)
	}
	stop := errors.New("stop")
	if news, err := s.Scrub(func(int) error { return stop }); news || err != stop {
		t.Errorf("stopped: %v, %v", news, err)
	}
}
