package segment

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// TestIndexRule is the measured example of Kafka: interval 1000, batches of 389 bytes, the
// first entry at the fourth append.
func TestIndexRule(t *testing.T) {
	s := create(t, newFS(t), 100, Config{IndexIntervalBytes: 1000})
	for i := range int64(8) {
		b := batch(t, 100+2*i, 2, t0+i, 155)
		if len(b) != 389 {
			t.Fatalf("batch has %d bytes, want 389", len(b))
		}
		must(t, s.Append(b))
	}
	got := s.idx.Load().offsets.Load().view()
	if want := (offsetEntry{7, 1167}); len(got) != 2 || got[0] != want {
		t.Errorf("got entries %v, want %v first", got, want)
	}
	times := s.idx.Load().times.Load().view()
	if want := (timeEntry{t0 + 4, 7}); len(times) != 2 || times[0] != want {
		t.Errorf("got times %v, want %v first", times, want)
	}
}

func TestAppendSeveralBatches(t *testing.T) {
	s := create(t, newFS(t), 0, smallConfig())
	var set []byte
	for i := range int64(6) {
		set = append(set, batch(t, i*3, 3, t0+i, 40)...)
	}
	must(t, s.Append(set))
	if s.Size() != int64(len(set)) {
		t.Errorf("Size: got %d, want %d", s.Size(), len(set))
	}
	for _, e := range s.idx.Load().offsets.Load().view() {
		if e.offset%3 != 2 || int(e.position)%(len(set)/6) != 0 || e.position == 0 {
			t.Errorf("entry %v does not have the last offset and the start of a batch", e)
		}
	}
	if next, err := s.NextOffset(); next != 18 || err != nil {
		t.Errorf("NextOffset: got %d, %v, want 18", next, err)
	}
}

func TestAppendRefusals(t *testing.T) {
	s := create(t, newFS(t), 1000, smallConfig())
	good := batch(t, 1000, 2, t0, 10)
	must(t, s.Append(good))
	f := func(what string, set []byte, want error) {
		t.Helper()
		err := s.Append(set)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
		if s.Size() != int64(len(good)) {
			t.Fatalf("%s: size is %d, want %d", what, s.Size(), len(good))
		}
	}
	f("below the base", batch(t, 998, 1, t0, 1), ErrOffsetOverflow)
	f("too far above", batch(t, 1001+math.MaxInt32, 1, t0, 1), ErrOffsetOverflow)
	f("half a batch", batch(t, 1002, 2, t0, 10)[:70], errTorn)
	f("a batch and half of one", append(batch(t, 1002, 2, t0, 10), batch(t, 1004, 2, t0, 10)[:20]...), errTorn)
	f("twice the same offsets", append(batch(t, 1002, 2, t0, 10), batch(t, 1002, 2, t0, 10)...), nil)
	f("garbage", bytes.Repeat([]byte{0xff}, 100), nil)
	must(t, s.Append(batch(t, 1000+math.MaxInt32, 1, t0, 1)))
}

func TestAppendFailedWrite(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 0, smallConfig())
	fill(t, s, 10)
	size := s.Size()
	full := errors.New("disk full")
	b := batch(t, 10, 2, t0+10, 50)
	for _, n := range []int{0, 1, 60, len(b) - 1} {
		m.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpWrite {
				return &vfs.ShortWrite{N: n, Err: full}
			}
			return nil
		})
		if err := s.Append(b); !errors.Is(err, full) || s.Size() != size {
			t.Fatalf("write of %d bytes: got %v and size %d, want size %d", n, err, s.Size(), size)
		}
		m.SetHook(nil)
		if next, err := s.NextOffset(); next != 10 || err != nil {
			t.Fatalf("NextOffset: got %d, %v, want 10", next, err)
		}
	}
	must(t, s.Append(b))
	must(t, s.Check())
}
