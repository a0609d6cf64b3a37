package segment

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
)

// rawBatch is the beginning of a batch of a format with a size, of which the rest does not matter.
func rawBatch(magic byte, size int) []byte {
	b := make([]byte, record.HeaderSize)
	binary.BigEndian.PutUint32(b[8:], uint32(size-record.LogOverhead))
	b[16] = magic
	return b
}

// A size that no batch of the format has is damage; one that the file has not is torn.
func TestFrameSizes(t *testing.T) {
	const good, bad, torn = "good", "bad", "torn"
	f := func(magic byte, size int, left int64, want string) {
		t.Helper()
		fr, err := parseFrame(rawBatch(magic, size), 5, left)
		got := good
		switch {
		case err == errTorn:
			got = torn
		case isBadFrame(err):
			got = bad
		}
		if got != want || err == nil && (fr.size != size || fr.end() != 5+int64(size)) {
			t.Errorf("format v%d, size %d of %d bytes: %s (%v), want %s", magic, size, left, got, err, want)
		}
	}
	f(0, 26, 26, good)
	f(0, 25, 100, bad)
	f(1, 34, 34, good)
	f(1, 33, 100, bad)
	f(1, 26, 100, bad)
	f(2, 61, 61, good)
	f(2, 60, 100, bad)
	f(2, 61, 60, torn)
	f(3, 61, 61, bad)
	f(0xff, 61, 61, bad)
	f(0, 12, 17, bad)  // the first 17 bytes tell the format
	f(0, 12, 16, torn) // fewer do not
	f(2, 61, 0, torn)
}

func TestFrameOffsets(t *testing.T) {
	f := func(base int64, delta int32, good bool) {
		t.Helper()
		b := rawBatch(2, record.HeaderSize)
		binary.BigEndian.PutUint64(b, uint64(base))
		binary.BigEndian.PutUint32(b[23:], uint32(delta))
		if fr, err := parseFrame(b, 0, record.HeaderSize); (err == nil) != good || good && fr.last != base+int64(delta) {
			t.Errorf("base %d, delta %d: got %+v, %v", base, delta, fr, err)
		}
	}
	f(7, 0, true)
	f(7, 3, true)
	f(7, -1, false)
	f(math.MaxInt64-1, 0, true)
	f(math.MaxInt64, 0, false)
	f(math.MaxInt64, 1, false)
}

// Only a compressed message of an old format has others inside.
func TestFrameWrapper(t *testing.T) {
	f := func(magic int8, codec record.Codec, want bool) {
		t.Helper()
		b := rawBatch(byte(magic), 70)
		at := 17
		if magic == 2 {
			at = 22
		}
		b[at] = byte(codec)
		if fr, err := parseFrame(b, 0, 70); err != nil || fr.wrapper != want {
			t.Errorf("format v%d, codec %v: wrapper %v, %v", magic, codec, fr.wrapper, err)
		}
	}
	f(0, record.Gzip, true)
	f(1, record.Gzip, true)
	f(2, record.Gzip, false)
	f(0, record.None, false)
	f(1, record.None, false)
	f(2, record.None, false)
}

func TestOffsetEntries(t *testing.T) {
	e := offsetEntry{5, 50}
	f := func(offset, position int32, want bool) {
		t.Helper()
		if got := (offsetEntry{offset, position}).follows(e); got != want {
			t.Errorf("%d at %d behind %+v: got %v", offset, position, e, got)
		}
	}
	f(6, 51, true)
	f(5, 51, false)
	f(6, 50, false)
	f(4, 99, false)
	f(9, 49, false)

	list := []offsetEntry{{5, 50}, {7, 70}, {9, 90}}
	at := func(target int64, want int) {
		t.Helper()
		if got, ok := searchOffsets(list, target); ok != (want >= 0) || ok && got != list[want] {
			t.Errorf("offset %d: got %+v, %v", target, got, ok)
		}
	}
	at(4, -1)
	at(5, 0)
	at(6, 0)
	at(7, 1)
	at(9, 2)
	at(99, 2)
	at = func(target int64, want int) {
		t.Helper()
		if got, ok := searchPositions(list, target); ok != (want >= 0) || ok && got != list[want] {
			t.Errorf("position %d: got %+v, %v", target, got, ok)
		}
	}
	at(0, 0)
	at(50, 0)
	at(51, 1)
	at(70, 1)
	at(90, 2)
	at(91, -1)
}

func TestTimeEntries(t *testing.T) {
	e := timeEntry{100, 5}
	f := func(timestamp int64, offset int32, want bool) {
		t.Helper()
		if got := (timeEntry{timestamp, offset}).follows(e); got != want {
			t.Errorf("%d at %d behind %+v: got %v", timestamp, offset, e, got)
		}
	}
	f(101, 6, true)
	f(101, 5, true)
	f(100, 6, false)
	f(101, 4, false)

	list := []timeEntry{{100, 5}, {200, 7}}
	at := func(target int64, want int) {
		t.Helper()
		if got, ok := searchTimes(list, target); ok != (want >= 0) || ok && got != list[want] {
			t.Errorf("time %d: got %+v, %v", target, got, ok)
		}
	}
	at(99, -1)
	at(100, 0)
	at(199, 0)
	at(200, 1)
}

func TestInRange(t *testing.T) {
	const base = 1000
	f := func(offset int64, want bool) {
		t.Helper()
		if inRange(offset, base) != want || (fitsBase(offset, base) == nil) != want {
			t.Errorf("offset %d, want %v", offset, want)
		}
	}
	f(base-1, false)
	f(base, true)
	f(base+math.MaxInt32, true)
	f(base+math.MaxInt32+1, false)
}

// An index holds what its size allows, and no entry that leads nowhere.
func TestIndexBuilderBounds(t *testing.T) {
	f := func(name string, bytes int64, fr frame, want int) {
		t.Helper()
		cfg := Config{IndexIntervalBytes: 100, MaxIndexSize: 1 << 20}.withDefaults()
		b := indexBuilder{base: 1000, cfg: &cfg, idx: newIndexes(nil, nil), max: unknownMax(1000), bytes: bytes}
		added := b.add(fr)
		if got := len(b.idx.offsets.Load().view()); got != want || added != (want > 0) {
			t.Errorf("%s: %d entries, added %v, want %d", name, got, added, want)
		}
	}
	at := func(position, last int64) frame { return frame{position: position, base: last, last: last, size: 70} }
	f("soon", 100, at(500, 1005), 0)
	f("after the interval", 101, at(500, 1005), 1)
	f("last position", 101, at(math.MaxInt32, 1005), 1)
	f("beyond", 101, at(math.MaxInt32+1, 1005), 0)
	f("last offset", 101, at(500, 1000+math.MaxInt32), 1)
	f("beyond it", 101, at(500, 1001+math.MaxInt32), 0)
}

// Zeros behind the entries of an index are fine up to a size; anything else there is not.
func TestIndexPadding(t *testing.T) {
	f := func(name string, b []byte, entries int, sound bool) {
		t.Helper()
		d := decoder[offsetEntry]{layout: offsetLayout, accept: anyOffset, last: beforeOffsets}
		ok := d.add(b)
		if ok != sound || ok && len(d.finish()) != entries {
			t.Errorf("%s: %d entries, sound %v", name, len(d.finish()), ok)
		}
	}
	entry := offsetEntry{1, 70}.append(nil)
	first := offsetEntry{0, 0}.append(nil)
	zeros := make([]byte, offsetEntrySize)
	cat := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	f("an entry", entry, 1, true)
	f("one at the start", first, 1, true)
	f("one at the start, and another", cat(first, entry), 2, true)
	f("padded", cat(entry, zeros), 1, true)
	f("padded twice", cat(entry, zeros, zeros, zeros), 1, true)
	f("zeros only", cat(zeros, zeros), 0, true)
	f("an entry behind zeros", cat(zeros, zeros, entry), 0, false)
	f("an entry behind padding", cat(entry, zeros, zeros, offsetEntry{2, 140}.append(nil)), 0, false)
	f("the same twice", cat(entry, entry), 0, false)

	d := decoder[offsetEntry]{layout: offsetLayout, accept: anyOffset, last: beforeOffsets, padding: maxPadding - offsetEntrySize}
	if !d.add(zeros) {
		t.Error("as much padding as there may be is refused")
	}
	if d.add(zeros) {
		t.Error("more padding than there may be is taken")
	}
}

func TestParseNameDigits(t *testing.T) {
	for _, name := range []string{"9.log", "0.log", "90.log"} {
		if _, kind, _, ok := ParseName(name); !ok || kind != LogFile {
			t.Errorf("%s is a segment's", name)
		}
	}
	for _, name := range []string{"log", "/.log", ":.log", ".9.log", "9"} {
		if _, _, _, ok := ParseName(name); ok {
			t.Errorf("%s is no segment's", name)
		}
	}
}

// A set that ends at the last position that an index can hold is taken, one byte more is not.
func TestCheckSetBounds(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	set := batch(t, 0, 1, t0, 1)
	last := math.MaxInt32 - int64(len(set))
	if err := s.checkSet(set, last); err != nil {
		t.Errorf("at %d: %v", last, err)
	}
	if err := s.checkSet(set, last+1); !errors.Is(err, ErrFull) {
		t.Errorf("at %d: %v", last+1, err)
	}
}
