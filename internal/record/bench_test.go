package record

import (
	"fmt"
	"testing"
)

// shapes are the batches of the benchmarks: records x value size.
var shapes = []struct{ count, size int }{{1, 100}, {16, 1000}, {1024, 1000}, {9_000, 100}}

func eachShape(b *testing.B, codecs []Codec, f func(b *testing.B, batch Batch)) {
	for _, codec := range codecs {
		for _, s := range shapes {
			batch := plain(BuilderOptions{Codec: codec}, s.count, s.size)
			b.Run(fmt.Sprintf("%v/%dx%d", codec, s.count, s.size), func(b *testing.B) {
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				f(b, batch)
			})
		}
	}
}

var sink int64

func BenchmarkVerify(b *testing.B) {
	eachShape(b, []Codec{None}, func(b *testing.B, batch Batch) {
		for b.Loop() {
			if err := batch.Verify(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	o := options()
	eachShape(b, append([]Codec{None}, codecs...), func(b *testing.B, batch Batch) {
		for b.Loop() {
			if _, err := Validate(batch, o); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidateRebuild(b *testing.B) {
	o := options(to(LZ4))
	eachShape(b, []Codec{None, Zstd}, func(b *testing.B, batch Batch) {
		for b.Loop() {
			if _, err := Validate(batch, o); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRecords(b *testing.B) {
	eachShape(b, append([]Codec{None}, codecs...), func(b *testing.B, batch Batch) {
		for b.Loop() {
			for r, err := range batch.Records() {
				if err != nil {
					b.Fatal(err)
				}
				sink += r.Offset
			}
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, codec := range append([]Codec{None}, codecs...) {
		for _, s := range shapes {
			b.Run(fmt.Sprintf("%v/%dx%d", codec, s.count, s.size), func(b *testing.B) {
				records := mustRecords(b, plain(BuilderOptions{}, s.count, s.size))
				b.SetBytes(int64(s.count * s.size))
				b.ReportAllocs()
				builder := NewBuilder(BuilderOptions{})
				for b.Loop() {
					builder.Reset(BuilderOptions{Codec: codec})
					for i := range records {
						if err := builder.Append(records[i]); err != nil {
							b.Fatal(err)
						}
					}
					sink += int64(len(builder.Build()))
				}
			})
		}
	}
}
