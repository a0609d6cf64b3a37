package record

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// wrongRecords is what CheckRecords promises, the long way.
func wrongRecords(b Batch) error {
	before := int64(-1)
	for r, err := range b.Records() {
		if err != nil {
			return err
		}
		delta := r.Offset - b.BaseOffset()
		if delta <= before || delta > int64(b.LastOffsetDelta()) {
			return errors.New("offsets")
		}
		before = delta
	}
	return nil
}

// inPieces is a Verification of a batch whose bytes come in pieces of up to a size.
func inPieces(b Batch, size int) (crc, records error) {
	var v Verification
	for n := min(len(b), HeaderSize); ; n = min(len(b), n+size) {
		v.More(b[:n])
		if n == len(b) {
			return v.CRC(b), v.Records(b, DefaultMaxDecompressed)
		}
	}
}

// structureBatch makes a batch of records of all sorts: rows of the same shape, headers, nulls,
// fields and deltas of any length, holes between offsets.
func structureBatch(t testing.TB, rng *rand.Rand, codec Codec) Batch {
	t.Helper()
	b := NewBuilder(BuilderOptions{Codec: codec, BaseOffset: 7})
	field := func() []byte {
		if n := rng.IntN(10); n > 0 {
			return make([]byte, rng.IntN(1<<rng.IntN(5+n)))
		}
		return nil
	}
	offset := int64(7)
	for range 1 + rng.IntN(40) {
		r := Record{Timestamp: rng.Int64N(1 << rng.IntN(50)), Key: field(), Value: field()}
		for range max(0, rng.IntN(8)-5) {
			r.Headers = append(r.Headers, Header{Key: "header", Value: field()})
		}
		for range 1 + rng.IntN(12) {
			r.Offset = offset
			if err := b.Append(r); err != nil {
				t.Fatal(err)
			}
			offset += 1 + int64(max(0, rng.IntN(3000)-2900))
			r.Timestamp += rng.Int64N(3)
			if rng.IntN(4) == 0 {
				r.Value = field()
			}
		}
	}
	return b.Build()
}

func TestCheckRecordsAgreesWithRecords(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		codec := None
		if rng.IntN(10) == 0 {
			codec = Snappy
		}
		good := structureBatch(t, rng, codec)
		if err := CheckRecords(good, DefaultMaxDecompressed); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			b := bytes.Clone(good)
			b[posLastOffsetDelta+rng.IntN(len(b)-posLastOffsetDelta)] ^= 1 << rng.IntN(8)
			compareChecks(t, b, 1+rng.IntN(len(b)))
		}
	}
}

// compareChecks holds the ways to look at the records of a batch against each other.
func compareChecks(t *testing.T, b Batch, piece int) {
	t.Helper()
	want, got := wrongRecords(b), CheckRecords(b, DefaultMaxDecompressed)
	crc, pieces := inPieces(b, piece)
	if (got == nil) != (want == nil) || (pieces == nil) != (want == nil) {
		t.Fatalf("CheckRecords %v, in pieces of %d %v; Records %v\n%x", got, piece, pieces, want, []byte(b))
	}
	if verify := b.Verify(); (crc == nil) != (verify == nil) {
		t.Fatalf("in pieces of %d %v; Verify %v", piece, crc, verify)
	}
}

func FuzzCheckRecords(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for added := 0; added < 20; {
		if b := structureBatch(f, rng, None); len(b) < 400 {
			f.Add([]byte(b), 100)
			added++
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		b, err := First(data)
		if err != nil || b.isMessage() {
			return
		}
		compareChecks(t, b, 1+int(uint16(piece)))
	})
}

func BenchmarkCheckRecords(b *testing.B) {
	value := make([]byte, 140)
	f := func(name string, size func(i int64) int) {
		builder := NewBuilder(BuilderOptions{})
		for i := int64(0); builder.Size() < 128<<10; i++ {
			if err := builder.Append(Record{Offset: i, Timestamp: i / 10, Value: value[:size(i)]}); err != nil {
				b.Fatal(err)
			}
		}
		set := Batch(builder.Build())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(set)))
			for b.Loop() {
				if err := CheckRecords(set, DefaultMaxDecompressed); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(set.Count()), "ns/record")
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	f("100B", func(int64) int { return 100 })
	f("60-140B", func(int64) int { return 60 + rng.IntN(81) })
	f("20-90B", func(int64) int { return 20 + rng.IntN(71) })
}
