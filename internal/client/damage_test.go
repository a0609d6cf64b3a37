package client

import (
	"encoding/binary"
	"testing"
)

// A log of so many offsets, in batches, with damaged stretches.
func TestFindDamage(t *testing.T) {
	type stretch struct{ from, end int64 }
	f := func(what string, at, end, first, next int64, asksMax int, damage ...stretch) {
		t.Helper()
		asks := 0
		gotFirst, gotNext, err := findDamage(at, end, func(at int64) (int64, bool, error) {
			asks++
			if at >= end {
				t.Errorf("%s: asked for %d, the log ends at %d", what, at, end)
			}
			for _, d := range damage {
				if d.from <= at && at < d.end {
					return 0, false, nil
				}
			}
			return at/10*10 + 10, true, nil
		})
		if gotFirst != first || gotNext != next || err != nil {
			t.Errorf("%s: damage [%d,%d), %v, want [%d,%d)", what, gotFirst, gotNext, err, first, next)
		}
		if asks > asksMax {
			t.Errorf("%s: asked %d times", what, asks)
		}
	}
	f("none", 0, 100, 100, 100, 10)
	f("empty", 5, 5, 5, 5, 0)
	f("one offset", 10, 100, 10, 11, 2, stretch{10, 11})
	f("one batch", 10, 100, 10, 20, 11, stretch{10, 20})
	f("in front of it is what was not delivered", 10, 100, 40, 50, 14, stretch{40, 50})
	f("begins below", 15, 100, 15, 20, 6, stretch{10, 20})
	f("islands", 10, 100, 10, 11, 2, stretch{10, 11}, stretch{12, 13}, stretch{14, 90})
	f("up to the end", 10, 100, 10, 100, 100, stretch{10, 100})
	f("a thousand", 10, 5000, 10, 1010, 1001, stretch{10, 1010})
	f("long", 10, 1<<40, 10, 123_456_789, 1100, stretch{10, 123_456_789})
	f("long up to the end", 10, 1<<40, 10, 1<<40, 1100, stretch{10, 1 << 40})
	f("all there can be", 0, 1<<63-1, 0, 1<<63-2, 1200, stretch{0, 1<<63 - 2})
}

func TestBehind(t *testing.T) {
	batch := make([]byte, 70)
	binary.BigEndian.PutUint64(batch, 40)
	batch[16] = 2
	binary.BigEndian.PutUint32(batch[23:], 9)
	for _, c := range []struct {
		set  []byte
		want int64
	}{{nil, 0}, {batch[:10], 0}, {batch, 50}, {append(batch[:16:16], 1, 0), 41}} {
		if got := behind(c.set); got != c.want {
			t.Errorf("%d bytes: offset %d behind the first batch, want %d", len(c.set), got, c.want)
		}
	}
}
