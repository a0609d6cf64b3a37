package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"
)

// retained is what a Builder makes of the records that are kept, for comparison.
func retained(t *testing.T, b Batch, keep []bool, horizon int64) []byte {
	t.Helper()
	o := BuilderOptions{
		Codec: b.Codec(), BaseOffset: b.BaseOffset(), LeaderEpoch: new(b.LeaderEpoch()), Transactional: b.IsTransactional(),
		Control: b.IsControl(), TimestampType: b.TimestampType(), AppendTime: b.MaxTimestamp(), DeleteHorizon: horizon,
		Producer: &Producer{b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()},
	}
	builder := NewBuilder(o)
	i := 0
	for r, err := range b.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if keep[i] {
			if err := builder.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		i++
	}
	builder.SetLastOffset(b.LastOffset())
	return builder.Build()
}

func retain(t *testing.T, b Batch, keep []bool, horizon int64) []byte {
	t.Helper()
	records, err := AppendRecords(nil, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := AppendRetained([]byte("in front"), b, records, keep, RetainOptions{DeleteHorizon: horizon})
	if err != nil {
		t.Fatal(err)
	}
	return dst[len("in front"):]
}

func TestAppendRetained(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		o := BuilderOptions{
			Codec: Codec(rng.IntN(5)), BaseOffset: rng.Int64N(1000), LeaderEpoch: new(rng.Int32N(5)), Transactional: rng.IntN(2) == 0,
			Producer: &Producer{rng.Int64N(9), int16(rng.IntN(9)), rng.Int32N(99)},
		}
		if rng.IntN(3) == 0 {
			o.TimestampType, o.AppendTime = LogAppendTime, rng.Int64N(1_000_000)
		}
		if rng.IntN(4) == 0 {
			o.DeleteHorizon = 1 + rng.Int64N(1_000_000)
		}
		builder := NewBuilder(o)
		var keep []bool
		at := o.BaseOffset
		for range 1 + rng.IntN(8) {
			at += rng.Int64N(3)
			r := Record{Offset: at, Timestamp: rng.Int64N(1_000_000), Key: make([]byte, rng.IntN(200)), Value: make([]byte, rng.IntN(300))}
			if rng.IntN(3) == 0 {
				r.Value = nil
			}
			if rng.IntN(2) == 0 {
				r.Headers = []Header{{"h", nil}, {"", []byte("x")}}
			}
			if err := builder.Append(r); err != nil {
				t.Fatal(err)
			}
			keep = append(keep, rng.IntN(3) > 0)
			at++
		}
		b := Batch(builder.Build())
		horizon := o.DeleteHorizon
		if horizon == 0 && rng.IntN(2) == 0 {
			horizon = 1 + rng.Int64N(1_000_000)
		}
		got := retain(t, b, keep, horizon)
		want := retained(t, b, keep, horizon)
		if want == nil {
			want = EmptyBatch(b)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("keep %v, horizon %d: got\n%x\nwant\n%x", keep, horizon, got, want)
		}
	}
}

// What Kafka 4.4 makes of offsets 100 to 102 without the first, and a horizon.
func TestAppendRetainedGolden(t *testing.T) {
	const T = 1_700_000_000_000
	builder := NewBuilder(BuilderOptions{BaseOffset: 100, LeaderEpoch: new(int32(9))})
	for i, r := range []Record{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b")}, {Key: []byte("c"), Value: []byte("2")}} {
		r.Offset, r.Timestamp = 100+int64(i), T+int64(i)
		if err := builder.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	got := retain(t, builder.Build(), []bool{false, true, true}, T+100_000+86_400_000)
	const want = "0000000000000064000000480000000902eada8af80040000000020000018bd50d4aa00000018bcfe56802ffffffffffffffffffffffffffff000000021400bd8abf5202026201001600bb8abf52040263023200"
	if hex.EncodeToString(got) != want {
		t.Errorf("got\n%x\nwant\n%s", got, want)
	}
}

func TestScan(t *testing.T) {
	builder := NewBuilder(BuilderOptions{Codec: LZ4, BaseOffset: 10})
	for i, r := range []Record{
		{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{"a", []byte("1")}, {"v", []byte("old")}, {"v", []byte("new")}}},
		{Headers: []Header{{"v", nil}}},
	} {
		r.Offset, r.Timestamp = 10+3*int64(i), 500+int64(i)
		if err := builder.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	b := Batch(builder.Build())
	records, err := AppendRecords(nil, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewScan(b, records)
	if !s.Next() {
		t.Fatal(s.Err())
	}
	key, ok := s.Key()
	if string(key) != "k" || !ok || s.IsTombstone() || s.OffsetDelta() != 0 || s.TimestampDelta() != 0 {
		t.Errorf("first record: key %q %v, tombstone %v, deltas %d %d", key, ok, s.IsTombstone(), s.OffsetDelta(), s.TimestampDelta())
	}
	if v, ok := s.Header("v"); string(v) != "new" || !ok {
		t.Errorf("header %q %v", v, ok)
	}
	if _, ok := s.Header("w"); ok {
		t.Error("header w is there")
	}
	if !s.Next() {
		t.Fatal(s.Err())
	}
	if _, ok := s.Key(); ok || !s.IsTombstone() || s.OffsetDelta() != 3 || s.TimestampDelta() != 1 {
		t.Errorf("second record: key %v, tombstone %v, deltas %d %d", ok, s.IsTombstone(), s.OffsetDelta(), s.TimestampDelta())
	}
	if v, ok := s.Header("v"); v != nil || !ok {
		t.Errorf("header %q %v", v, ok)
	}
	if s.Next() || s.Err() != nil {
		t.Errorf("a third record, or %v", s.Err())
	}
	if _, err := AppendRecords(nil, b, 5); !errors.Is(err, ErrDecompressedTooLarge) {
		t.Errorf("got %v", err)
	}
}

// A Scan finds what Records finds, in any bytes, and what it finds good can be rebuilt.
func FuzzScan(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := First(raw)
		if err != nil || b.Magic() < 2 {
			return
		}
		var want []Record
		var wantErr error
		for r, err := range b.RecordsMax(1 << 20) {
			if wantErr = err; err == nil {
				want = append(want, r.Clone())
			}
		}
		records, err := AppendRecords(nil, b, 1<<20)
		if err != nil {
			if wantErr == nil {
				t.Fatalf("got %v, Records has none", err)
			}
			return
		}
		s := NewScan(b, records)
		keep := []bool{}
		for s.Next() {
			r := want[len(keep)]
			key, ok := s.Key()
			if b.BaseOffset()+int64(s.OffsetDelta()) != r.Offset || ok != (r.Key != nil) || !bytes.Equal(key, r.Key) || s.IsTombstone() != (r.Value == nil) {
				t.Fatalf("record %d is not %+v", len(keep), r)
			}
			s.Header("h")
			keep = append(keep, len(keep)%3 != 1)
		}
		if len(keep) != len(want) || (s.Err() == nil) != (wantErr == nil) {
			t.Fatalf("%d records and %v, want %d and %v", len(keep), s.Err(), len(want), wantErr)
		}
		rebuilt, err := AppendRetained(nil, b, records, keep, RetainOptions{DeleteHorizon: 77})
		if s.Err() == nil && err != nil {
			t.Fatal(err)
		}
		if err == nil {
			if err := Batch(rebuilt).Verify(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
