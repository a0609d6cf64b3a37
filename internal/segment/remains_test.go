package segment

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
)

// remainsOf puts bytes between two good batches and looks into them as damage of some offsets.
func remainsOf(t *testing.T, b []byte, offsets int64) Remains {
	t.Helper()
	l := newTxnLog(t, newFS(t), 0)
	l.plain() // 0, 1
	d := Damage{Position: l.s.Size(), Size: int64(len(b)), First: 2, End: 2 + offsets}
	l.skip(offsets)
	l.plain()
	file, err := l.s.log.acquire()
	must(t, err)
	rest := make([]byte, l.s.Size()-d.Position)
	_, err = file.ReadAt(rest, d.Position)
	must(t, err)
	_, err = file.WriteAt(append(bytes.Clone(b), rest...), d.Position)
	must(t, err)
	file.release()
	l.s.size.Add(int64(len(b)))
	r, err := l.s.Remains(d)
	must(t, err)
	must(t, l.s.Close())
	return r
}

func marker(base int64) []byte {
	return record.EndTxnMarker(record.EndTxn{Type: record.ControlAbort, ProducerID: 1, Timestamp: t0, BaseOffset: base})
}

// A batch of which only the frame is wrong is told, and a marker with any one bit turned round.
func TestRemainsMended(t *testing.T) {
	b := batch(t, 2, 3, t0, 30)
	f := func(name string, want []byte, offsets int64, spoil func(b []byte)) {
		t.Helper()
		spoilt := bytes.Clone(want)
		spoil(spoilt)
		got := remainsOf(t, spoilt, offsets)
		record.Batch(want).SetLeaderEpoch(got.leaderEpoch()) // which has no checksum
		if !bytes.Equal(got.Batch, want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	f("base offset", b, 3, func(b []byte) { b[3] ^= 4 })
	f("length", b, 3, func(b []byte) { b[8] ^= 0x40 })
	f("magic", b, 3, func(b []byte) { b[16] = 7 })
	f("all three", b, 3, func(b []byte) { b[0], b[9], b[16] = 1, 1, 1 })
	m := marker(2)
	for bit := 17 * 8; bit < 8*len(m); bit++ {
		f("marker", m, 1, func(b []byte) { b[bit/8] ^= 1 << (bit % 8) })
	}
	largest := largestMarker()
	f("large marker", largest, 1, func(b []byte) { b[90] ^= 1 })
}

func (r Remains) leaderEpoch() int32 {
	if r.Batch == nil {
		return -2
	}
	return r.Batch.LeaderEpoch()
}

// largestMarker is as long as a marker gets.
func largestMarker() []byte {
	o := record.BuilderOptions{BaseOffset: 2, Producer: &record.Producer{ID: 1, BaseSequence: -1}, Transactional: true}
	b := record.ControlBatch(o, t0, record.ControlAbort, make([]byte, 6+markerMax-len(marker(2))))
	if len(b) != markerMax {
		panic("BUG: no marker of the largest size")
	}
	return b
}

// What cannot be told is judged by its size and the offsets that it had.
func TestRemainsUnknown(t *testing.T) {
	f := func(name string, b []byte, offsets int64, marker, room bool) {
		t.Helper()
		if got := remainsOf(t, b, offsets); got.Batch != nil || got.Marker != marker || got.Room != room {
			t.Errorf("%s, %d offsets: got %+v", name, offsets, got)
		}
	}
	noise := func(n int) []byte { return bytes.Repeat([]byte{0xee}, n) }
	f("nothing", nil, 0, false, false)
	f("missing", nil, 1, true, false)
	f("missing", nil, 2, true, true)
	f("bytes without offsets", noise(100), 0, false, false)
	f("too short for a header", noise(record.HeaderSize-1), 2, false, false)
	f("a header", noise(record.HeaderSize), 2, false, false)
	f("too short for a marker", noise(markerMin-1), 1, false, false)
	f("a marker", noise(markerMin), 1, true, false)
	f("a large marker", noise(markerMax), 1, true, false)
	f("too long for a marker", noise(markerMax+1), 1, false, false)
	f("a marker and no more", noise(markerMin+record.HeaderSize-1), 2, true, false)
	f("a marker and a batch", noise(markerMin+record.HeaderSize), 2, true, true)
	f("very long", noise(maxRemains), 2, true, true)
	f("longer", noise(maxRemains+1), 2, true, true)

	// A header that fits the damage says that it is one batch: no marker is beside it.
	whole := batch(t, 2, 3, t0, 30)
	whole[len(whole)-1] ^= 1
	f("one batch", whole, 3, false, false)
	spoil := func(change func(b []byte)) []byte {
		b := bytes.Clone(whole)
		change(b)
		return b
	}
	f("another offset", spoil(func(b []byte) { b[7]++ }), 3, true, true)
	f("another length", spoil(func(b []byte) { b[11]-- }), 3, true, true)
	f("another format", spoil(func(b []byte) { b[16] = 1 }), 3, true, true)
	long := batch(t, 2, 3, t0, maxRemains/3)
	f("one batch that is too long to look", append(long, noise(maxRemains)...), 3, true, true)
}

// A whole batch with other offsets than were lost is not what was there.
func TestRemainsOfOtherOffsets(t *testing.T) {
	b := batch(t, 2, 3, t0, 30)
	b[7] = 9
	if got := remainsOf(t, b, 4); got.Batch != nil {
		t.Errorf("three offsets of four: got %+v", got)
	}
	if got := remainsOf(t, b, 3); got.Batch == nil || got.Batch.BaseOffset() != 2 {
		t.Errorf("three offsets: got %+v", got)
	}
}

// At the end of the file a few bytes are what is left of more.
func TestRemainsAtTheEnd(t *testing.T) {
	f := func(size int, offsets int64, marker, room bool) {
		t.Helper()
		l := newTxnLog(t, newFS(t), 0)
		l.plain()
		d := Damage{Position: l.s.Size(), Size: int64(size), First: 2, End: 2 + offsets}
		file, err := l.s.log.acquire()
		must(t, err)
		_, err = file.WriteAt(make([]byte, size), d.Position)
		must(t, err)
		file.release()
		l.s.size.Add(int64(size))
		got, err := l.s.Remains(d)
		must(t, err)
		if got.Batch != nil || got.Marker != marker || got.Room != room {
			t.Errorf("%d bytes, %d offsets: got %+v", size, offsets, got)
		}
		must(t, l.s.Close())
	}
	f(1, 1, true, false)
	f(1, 2, true, true)
	f(markerMin-1, 1, true, false)
	f(markerMin-1, 2, true, true)
	f(markerMin, 2, true, false)
	f(markerMin+record.HeaderSize, 2, true, true)
	f(markerMax+1, 1, false, false)
}

func TestMarkerSizes(t *testing.T) {
	if n := len(marker(0)); n != markerMin {
		t.Errorf("a marker has %d bytes, want %d", n, markerMin)
	}
	if n := binary.MaxVarintLen64 - 1; markerMax-markerMin < n {
		t.Errorf("the time of a marker may take %d bytes more", n)
	}
}
