package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

// plain returns a v2 batch with offsets from 0, timestamps from T, keys and values.
func plain(o BuilderOptions, count, valueSize int) Batch {
	b := NewBuilder(o)
	value := make([]byte, valueSize)
	for i := range count {
		for j := range value {
			value[j] = byte(i*31 + j%61)
		}
		r := Record{Offset: o.BaseOffset + int64(i), Timestamp: T + int64(i), Key: []byte{byte(i)}, Value: value}
		if err := b.Append(r); err != nil {
			panic(err)
		}
	}
	return b.Build()
}

func TestFirst(t *testing.T) {
	good := plain(BuilderOptions{}, 3, 10)
	f := func(name string, b []byte, want error) {
		t.Helper()
		if _, err := First(b); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	with := func(position int, value ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[position:], value)
		return b
	}
	f("whole", good, nil)
	f("whole and more", append(bytes.Clone(good), 1, 2, 3), nil)
	for n := range len(good) {
		f("cut", good[:n], ErrShort)
	}
	f("length 13", with(posLength, 0, 0, 0, 13), ErrCorrupt)
	f("length 13, cut", with(posLength, 0, 0, 0, 13)[:12], ErrCorrupt)
	f("length -1", with(posLength, 0xff, 0xff, 0xff, 0xff), ErrCorrupt)
	f("length max", with(posLength, 0x7f, 0xff, 0xff, 0xff), ErrShort)
	f("length below header", with(posLength, 0, 0, 0, HeaderSize-LogOverhead-1), ErrCorrupt)
	f("magic 3", with(posMagic, 3), ErrCorrupt)
	f("magic -1", with(posMagic, 0xff), ErrCorrupt)
	f("v1 without timestamp", append(with(posLength, 0, 0, 0, 21)[:16], append([]byte{1}, make([]byte, 60)...)...), ErrCorrupt)
}

func TestBatches(t *testing.T) {
	a, b := plain(BuilderOptions{}, 3, 10), plain(BuilderOptions{BaseOffset: 3}, 2, 10)
	f := func(set []byte, count int, want *CorruptError) {
		t.Helper()
		got := 0
		var err error
		for _, e := range Batches(set) {
			if err = e; e == nil {
				got++
			}
		}
		var corrupt *CorruptError
		if errors.As(err, &corrupt) != (want != nil) || got != count {
			t.Fatalf("got %d batches and %v, want %d and %v", got, err, count, want)
		}
		if want != nil && (corrupt.Position != want.Position || corrupt.Offset != want.Offset) {
			t.Errorf("got %+v, want %+v", corrupt, want)
		}
	}
	set := slices.Concat(a, b)
	f(nil, 0, nil)
	f(set, 2, nil)
	f(set[:len(set)-1], 1, nil)
	f(append(bytes.Clone(set), 0, 0), 2, nil)
	bad := bytes.Clone(set)
	bad[len(a)+posMagic] = 9
	f(bad, 1, &CorruptError{Position: len(a), Offset: 3})
}

func TestVerify(t *testing.T) {
	for _, good := range [][]byte{
		plain(BuilderOptions{}, 3, 10),
		buildSet(SetOptions{Magic: 0}, Record{Key: []byte("k"), Value: []byte("value")}),
		buildSet(SetOptions{Magic: 1, Codec: Gzip}, Record{Value: []byte("value")}),
	} {
		if err := Batch(good).Verify(); err != nil {
			t.Error(err)
		}
		// Any bit that the CRC covers, and the CRC itself.
		from := posCRC
		if Batch(good).isMessage() {
			from = posMessageAttributes
		}
		for i := from * 8; i < len(good)*8; i++ {
			bad := Batch(bytes.Clone(good))
			bad[i/8] ^= 1 << (i % 8)
			if err := bad.Verify(); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("bit %d: got %v, want corrupt", i, err)
			}
		}
		for n := range len(good) {
			if err := Batch(good[:n]).Verify(); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut to %d: got %v, want corrupt", n, err)
			}
		}
		if err := Batch(append(bytes.Clone(good), 0)).Verify(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("one byte more: got %v, want corrupt", err)
		}
	}
}

func TestSetters(t *testing.T) {
	for magic, b := range []Batch{
		buildSet(SetOptions{Magic: 0}, Record{Value: []byte("value")}),
		buildSet(SetOptions{Magic: 1}, Record{Value: []byte("value"), Timestamp: T}),
		plain(BuilderOptions{}, 3, 10),
	} {
		b.SetBaseOffset(math.MaxInt64 - 5)
		b.SetLeaderEpoch(7)
		if err := b.Verify(); err != nil {
			t.Errorf("v%d: %v", magic, err)
		}
		epoch := map[int]int32{0: -1, 1: -1, 2: 7}[magic]
		if b.BaseOffset() != math.MaxInt64-5 || b.LeaderEpoch() != epoch {
			t.Errorf("v%d: got offset %d, epoch %d", magic, b.BaseOffset(), b.LeaderEpoch())
		}
		b.SetMaxTimestamp(LogAppendTime, T+99)
		if err := b.Verify(); err != nil {
			t.Errorf("v%d: %v", magic, err)
		}
		records := mustRecords(t, b)
		for _, r := range records {
			if magic > 0 && (r.Timestamp != T+99 || r.TimestampType != LogAppendTime) {
				t.Errorf("v%d: got %v %d, want LogAppendTime %d", magic, r.TimestampType, r.Timestamp, T+99)
			}
		}
		b.SetMaxTimestamp(CreateTime, T)
		if err := b.Verify(); err != nil {
			t.Errorf("v%d: %v", magic, err)
		}
	}
}

func TestSequence(t *testing.T) {
	f := func(base, delta, want int32) {
		t.Helper()
		if got := sequence(base, delta); got != want {
			t.Errorf("%d + %d: got %d, want %d", base, delta, got, want)
		}
	}
	f(0, 0, 0)
	f(17, 4, 21)
	f(-1, 3, -1)
	f(math.MaxInt32, 0, math.MaxInt32)
	f(math.MaxInt32, 1, 0)
	f(math.MaxInt32-2, 10, 7)
}

// resealed returns b with a right CRC and length, whatever was done to it.
func resealed(b Batch) Batch {
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-LogOverhead))
	b.setCRC()
	return b
}
