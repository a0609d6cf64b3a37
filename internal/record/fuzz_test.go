package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// addSeeds adds the golden vectors and the beginnings of the logs in testdata.
func addSeeds(f *testing.F) {
	for i := range golden {
		f.Add(goldenBytes(f, i))
	}
	for _, codec := range append([]Codec{None}, codecs...) {
		f.Add([]byte(plain(BuilderOptions{Codec: codec, Producer: &Producer{1, 2, 3}}, 3, 40)))
	}
	logs, err := filepath.Glob("testdata/kafka-*/*.log")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(log[:min(len(log), 2000)])
	}
}

func FuzzBatches(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		size := 0
		for b, err := range Batches(set) {
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if !bytes.Equal(b, set[size:size+len(b)]) {
				t.Fatal("batch is not where it should be")
			}
			size += len(b)
			_ = b.Verify()
			_, _ = b.FirstOffset()
			_ = []any{b.LastOffset(), b.LastSequence(), b.Count(), b.CRC(), b.ProducerID(), b.ProducerEpoch(),
				b.IsControl(), b.IsTransactional(), b.TimestampType(), b.MaxTimestamp(), b.LeaderEpoch(), b.Attributes()}
		}
		if _, err := First(set[size:]); err != ErrShort {
			t.Fatalf("Batches stops before %v", err)
		}
	})
}

func FuzzRecords(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := First(raw)
		if err != nil {
			return
		}
		for r, err := range b.RecordsMax(1 << 20) {
			if err != nil {
				if !errors.Is(err, ErrInvalidRecord) && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if len(r.Key)+len(r.Value) > 1<<20 {
				t.Fatal("record is larger than the limit")
			}
			_ = r.Clone()
		}
	})
}

// Whatever passes validation can be read, has offsets from 0, and passes again unchanged.
// The CRC is made right first, or the fuzzer would never get past it.
func FuzzValidate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		for b, err := range Batches(set) {
			if err == nil {
				b.setCRC()
			}
		}
		for _, target := range []Codec{AsProduced, None, LZ4} {
			o := options(to(target), coordinator, func(o *ValidateOptions) { o.MaxDecompressed = 1 << 20 })
			v, err := Validate(bytes.Clone(set), o)
			if err != nil {
				invalid := errors.Is(err, ErrInvalidRecord) || errors.Is(err, ErrInvalidTimestamp)
				if !invalid && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) {
					t.Fatalf("got %v", err)
				}
				continue
			}
			if err := Batch(v.Set).Verify(); err != nil {
				t.Fatal(err)
			}
			next := Batch(v.Set).BaseOffset()
			for r, err := range Batch(v.Set).Records() {
				if err != nil || r.Offset != next {
					t.Fatalf("got offset %d, %v, want %d", r.Offset, err, next)
				}
				next++
			}
			if next != Batch(v.Set).NextOffset() || v.Count != int(Batch(v.Set).Count()) {
				t.Fatalf("got %d records, want %d", next, v.Count)
			}
			again, err := Validate(bytes.Clone(v.Set), o)
			if err != nil || !bytes.Equal(again.Set, v.Set) {
				t.Fatalf("second validation: %v", err)
			}
		}
	})
}

// The same for logs of old formats.
func FuzzValidateMessages(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		for b, err := range Batches(set) {
			if err == nil {
				b.setCRC()
			}
		}
		for _, target := range []Codec{AsProduced, None, LZ4} {
			for magic := range int8(2) {
				o := old(magic, to(target), func(o *ValidateOptions) { o.MaxDecompressed = 1 << 20 })
				v, err := Validate(bytes.Clone(set), o)
				if err == nil {
					err = v.Stamp(1<<40, 0)
				}
				if err != nil {
					continue
				}
				records := setRecords(t, v.Set)
				for i, r := range records {
					if r.Offset != 1<<40+int64(i) {
						t.Fatalf("record %d has offset %d", i, r.Offset)
					}
				}
				if len(records) != v.Count || Batch(v.Set).Magic() != magic {
					t.Fatalf("got %d records of format v%d, want %d", len(records), Batch(v.Set).Magic(), v.Count)
				}
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, codec := range codecs {
		for _, sample := range samples()[:8] {
			f.Add(byte(codec), byte(2), compress(nil, sample, codec, 0, 2))
		}
	}
	f.Add(byte(LZ4), byte(0), compress(nil, []byte("v0"), LZ4, 0, 0))
	f.Fuzz(func(t *testing.T, codec, magic byte, packed []byte) {
		const limit = 1 << 18
		s := new(scratch)
		if err := s.decompress(packed, Codec(codec%5), int8(magic%3), limit); err == nil && len(s.buf) > limit {
			t.Fatalf("got %d bytes", len(s.buf))
		}
		if cap(s.buf) > 16*limit+8<<20 {
			t.Fatalf("got a buffer of %d bytes", cap(s.buf))
		}
	})
}

func FuzzControl(f *testing.F) {
	f.Add(ControlKey(ControlCommit), []byte{0, 0, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		c, err := ParseControl(key)
		if err != nil && !errors.Is(err, ErrInvalidRecord) {
			t.Fatal(err)
		}
		_ = c.String()
		if _, err := ParseEndTxn(value); err != nil && !errors.Is(err, ErrInvalidRecord) {
			t.Fatal(err)
		}
	})
}
