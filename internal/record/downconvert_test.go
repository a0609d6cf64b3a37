package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/cputime"
)

// down converts a set for a reader of an old format.
func down(t testing.TB, d *DownConverter, set []byte) []byte {
	t.Helper()
	var out []byte
	for b, err := range Batches(set) {
		if err == nil {
			out, err = d.Append(out, b, math.MaxInt)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// setRecords returns the records of all batches of a set, which have to be whole.
func setRecords(t testing.TB, set []byte) []Record {
	t.Helper()
	var all []Record
	size := 0
	for b, err := range Batches(set) {
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, mustRecords(t, b)...)
		size += len(b)
	}
	if size != len(set) {
		t.Fatalf("%d bytes behind the last batch", len(set)-size)
	}
	return all
}

// asFormat returns what is left of records in an old format.
func asFormat(magic int8, records []Record) []Record {
	var left []Record
	for _, r := range records {
		r.Headers, r.Sequence, r.Attributes = nil, -1, 0
		if magic == 0 {
			r.Timestamp, r.TimestampType = -1, NoTimestamp
		}
		left = append(left, r)
	}
	return left
}

func TestDownConvert(t *testing.T) {
	records := []Record{
		{Offset: 100, Timestamp: T, Key: []byte("k"), Value: []byte("v"), Headers: []Header{{"h", []byte("x")}}},
		{Offset: 103, Timestamp: T - 5, Value: []byte{}},
		{Offset: 104, Timestamp: T + 5, Key: []byte{}},
	}
	f := func(name string, magic int8, start int64, set []byte, want []Record) {
		t.Helper()
		out := down(t, &DownConverter{Magic: magic, Start: start}, set)
		for b := range Batches(out) {
			if b.Magic() > magic {
				t.Errorf("%s: got format v%d", name, b.Magic())
			}
		}
		if diff := cmp.Diff(want, setRecords(t, out)); diff != "" {
			t.Errorf("%s, v%d: %s", name, magic, diff)
		}
	}
	for magic := range int8(2) {
		for _, codec := range []Codec{None, Gzip, Snappy, LZ4} {
			o := BuilderOptions{Codec: codec, BaseOffset: 100, LeaderEpoch: new(int32(3)), Producer: &Producer{1, 2, 3}}
			set := build(o, records...)
			f(codec.String(), magic, 0, set, asFormat(magic, setRecords(t, set)))
			kept := 3 // a wrapper is kept whole
			if codec == None {
				kept = 2
			}
			f(codec.String()+" from the middle", magic, 101, set, asFormat(magic, setRecords(t, set))[3-kept:])
			f(codec.String()+" from behind", magic, 105, set, nil)

			o.TimestampType, o.AppendTime = LogAppendTime, T+1000
			set = build(o, records...)
			f(codec.String()+" append time", magic, 0, set, asFormat(magic, setRecords(t, set)))
			o.TimestampType, o.DeleteHorizon = CreateTime, T+5000
			set = build(o, records...)
			f(codec.String()+" delete horizon", magic, 0, set, asFormat(magic, setRecords(t, set)))

			for older := range magic + 1 {
				set = buildSet(SetOptions{Magic: older, Codec: codec}, records...)
				if out := down(t, &DownConverter{Magic: magic, Start: 104}, set); !bytes.Equal(out, set) {
					t.Errorf("v%d for a reader of v%d is not left as it was", older, magic)
				}
			}
		}
		f("marker", magic, 0, EndTxnMarker(EndTxn{Type: ControlCommit, ProducerID: 1}), nil)
		f("empty", magic, 0, EmptyBatch(build(BuilderOptions{}, records...)), nil)
	}
	for _, codec := range []Codec{None, Gzip, Snappy, LZ4} {
		set := buildSet(SetOptions{Magic: 1, Codec: codec, TimestampType: LogAppendTime, AppendTime: T}, records...)
		f(codec.String()+" v1", 0, 0, set, asFormat(0, setRecords(t, set)))
		f(codec.String()+" v1 from behind", 0, 105, set, nil)
	}

	d := DownConverter{Magic: 1}
	if _, err := d.Append(nil, build(BuilderOptions{Codec: Zstd}, records...), 1); !errors.Is(err, ErrUnsupportedCompression) {
		t.Errorf("zstd: got %v", err)
	}
	bad := plain(BuilderOptions{}, 1, 100)
	bad[len(bad)-1] ^= 1
	if out, err := d.Append(nil, bad, 1); !errors.Is(err, ErrCorrupt) || len(out) > 0 {
		t.Errorf("wrong checksum: got %d bytes, %v", len(out), err)
	}
	out, err := d.Append([]byte("before"), plain(BuilderOptions{}, 100, 100), 300)
	if got := len(setRecords(t, out[len("before"):])); err != nil || got != 3 {
		t.Errorf("got %d messages, %v, want 3 for a limit of 300 bytes", got, err)
	}
}

// The fake beginning of a batch is incomplete for every reader, whatever its size.
func TestFiller(t *testing.T) {
	for size := range 200 {
		p, head := make([]byte, size), Filler(size)
		copy(p, head[:])
		if _, err := First(p); err != ErrShort {
			t.Fatalf("%d bytes: got %v", size, err)
		}
	}
}

// anyRecords draws records of a batch that compaction may have left.
func anyRecords(t *rapid.T) []Record {
	field := rapid.OneOf(rapid.Just[[]byte](nil), rapid.SliceOfN(rapid.Byte(), 0, 200))
	var records []Record
	offset := rapid.Int64Range(0, 1000).Draw(t, "base")
	for range rapid.IntRange(1, 20).Draw(t, "count") {
		r := Record{Offset: offset, Timestamp: rapid.Int64Range(-1, 2*T).Draw(t, "timestamp"), Sequence: -1}
		r.Key, r.Value = field.Draw(t, "key"), field.Draw(t, "value")
		if rapid.Bool().Draw(t, "header") {
			r.Headers = []Header{{"h", field.Draw(t, "header value")}}
		}
		records = append(records, r)
		offset += int64(rapid.IntRange(1, 3).Draw(t, "gap"))
	}
	return records
}

// Down from v2 to v1 to v0, and up again: keys and values stay, offsets until they are
// assigned anew, timestamps until v0.
func TestDownConvertAndBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRecords(rt)
		codec := rapid.SampledFrom([]Codec{None, Gzip, Snappy, LZ4}).Draw(rt, "codec")
		v2 := build(BuilderOptions{Codec: codec, BaseOffset: records[0].Offset}, records...)
		v1 := down(t, &DownConverter{Magic: 1}, v2)
		v0 := down(t, &DownConverter{Magic: 0}, v1)
		if direct := down(t, &DownConverter{Magic: 0}, v2); !bytes.Equal(direct, v0) {
			rt.Fatalf("v2 to v0 gives\n%x, by way of v1\n%x", direct, v0)
		}
		for magic, set := range [][]byte{v0, v1} {
			if diff := cmp.Diff(asFormat(int8(magic), records), setRecords(t, set)); diff != "" {
				rt.Fatalf("v%d: %s", magic, diff)
			}
			for to := int8(magic); to <= 2; to++ {
				v, err := Validate(bytes.Clone(set), options(inFormat(to), anyTime))
				if err == nil {
					err = v.Stamp(records[0].Offset, 7)
				}
				if err != nil {
					rt.Fatal(err)
				}
				compareBack(rt, asFormat(int8(magic), records), setRecords(t, v.Set), records[0].Offset, min(int8(magic), to))
			}
		}
	})
}

func inFormat(magic int8) func(*ValidateOptions) {
	return func(o *ValidateOptions) { o.Magic = magic }
}

func anyTime(o *ValidateOptions) { o.AfterMaxMs = math.MaxInt64 }

// compareBack compares appended records with those before; offsets count from base on.
func compareBack(t *rapid.T, want, got []Record, base int64, oldest int8) {
	if len(got) != len(want) {
		t.Fatalf("got %d records, want %d", len(got), len(want))
	}
	for i, r := range got {
		w := want[i]
		if r.Offset != base+int64(i) || !slices.Equal(r.Key, w.Key) || (r.Key == nil) != (w.Key == nil) ||
			!slices.Equal(r.Value, w.Value) || (r.Value == nil) != (w.Value == nil) || oldest > 0 && r.Timestamp != w.Timestamp {
			t.Fatalf("record %d: got %+v, want %+v at %d", i, r, w, base+int64(i))
		}
	}
}

// What is made for an old reader is right, whatever it is made of.
func FuzzDownConvert(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		set = bytes.Clone(set)
		for magic := range int8(2) {
			d := DownConverter{Magic: magic, MaxDecompressed: 1 << 20}
			for b, err := range Batches(set) {
				if err != nil {
					break
				}
				b.setCRC()
				out, err := d.Append(nil, b, 1<<20)
				if err != nil && !errors.Is(err, ErrInvalidRecord) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupportedCompression) {
					t.Fatalf("got %v", err)
				}
				if b.Magic() <= magic {
					continue
				}
				for m := range Batches(out) {
					if err := m.Verify(); err != nil || m.Magic() != magic {
						t.Fatalf("got %v, format v%d", err, m.Magic())
					}
				}
			}
		}
	})
}

// BenchmarkDownConvert makes v1 of v2, checksums of both included. The target is 300 MB/s of a
// core for what is not compressed.
func BenchmarkDownConvert(b *testing.B) {
	for _, codec := range []Codec{None, LZ4} {
		for _, s := range shapes {
			batch := plain(BuilderOptions{Codec: codec}, s.count, s.size)
			b.Run(fmt.Sprintf("%v/%dx%d", codec, s.count, s.size), func(b *testing.B) {
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				d, out := DownConverter{Magic: 1}, []byte(nil)
				began := cputime.Used()
				for b.Loop() {
					var err error
					if out, err = d.Append(out[:0], batch, math.MaxInt); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(batch))*float64(b.N)/1e6/(cputime.Used()-began).Seconds(), "MB/cpu-s")
			})
		}
	}
}
