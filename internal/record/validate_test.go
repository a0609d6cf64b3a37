package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// options returns those of a topic with default configuration at time T.
func options(change ...func(*ValidateOptions)) *ValidateOptions {
	o := &ValidateOptions{Magic: 2, Now: T, TargetCodec: AsProduced, BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3_600_000, MaxMessageBytes: 1 << 20}
	for _, f := range change {
		f(o)
	}
	return o
}

func compacted(o *ValidateOptions)   { o.Compacted = true }
func coordinator(o *ValidateOptions) { o.Origin = Coordinator }
func appendTime(o *ValidateOptions)  { o.TimestampType = LogAppendTime }
func to(c Codec) func(*ValidateOptions) {
	return func(o *ValidateOptions) { o.TargetCodec = c }
}

// put sets bytes of a batch and makes its CRC right again.
func put(b Batch, position int, value ...byte) Batch {
	b = Batch(bytes.Clone(b))
	copy(b[position:], value)
	return resealed(b)
}

func be32(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

func TestValidateInPlace(t *testing.T) {
	for _, codec := range append([]Codec{None}, codecs...) {
		for _, o := range []*ValidateOptions{options(), options(compacted), options(to(codec))} {
			b := plain(BuilderOptions{Codec: codec, Producer: &Producer{5, 1, 9}}, 20, 100)
			before := bytes.Clone(b)
			v, err := Validate(b, o)
			if err != nil {
				t.Fatal(err)
			}
			if &v.Set[0] != &b[0] || !bytes.Equal(v.Set, before) {
				t.Errorf("%v: batch is not left as it was", codec)
			}
			v.Set = nil
			want := Validated{Magic: 2, SourceCodec: codec, Count: 20, LastOffsetDelta: 19, MaxTimestamp: T + 19, LogAppendTime: -1}
			if diff := cmp.Diff(want, v, cmp.AllowUnexported(Validated{})); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestValidateStamps(t *testing.T) {
	for _, codec := range append([]Codec{None}, codecs...) {
		b := plain(BuilderOptions{Codec: codec}, 3, 100)
		v, err := Validate(b, options(appendTime))
		if err != nil {
			t.Fatal(err)
		}
		if err := Batch(v.Set).Verify(); err != nil {
			t.Error(err)
		}
		if v.LogAppendTime != T || v.MaxTimestamp != T || Batch(v.Set).TimestampType() != LogAppendTime || &v.Set[0] != &b[0] {
			t.Errorf("%v: got %+v", codec, v)
		}
		for _, r := range mustRecords(t, Batch(v.Set)) {
			if r.Timestamp != T {
				t.Errorf("%v: got timestamp %d, want %d", codec, r.Timestamp, T)
			}
		}

		// A producer's maximum that is none is put right, and the claim of append time taken back.
		wrong := binary.BigEndian.AppendUint64(nil, T+7)
		v, err = Validate(put(plain(BuilderOptions{Codec: codec}, 3, 100), posMaxTimestamp, wrong...), options())
		if err != nil || v.MaxTimestamp != T+2 || Batch(v.Set).Verify() != nil {
			t.Errorf("%v: got %+v, %v, want maximum %d", codec, v, err, T+2)
		}
		// The records keep the times that they have in the batch; Kafka looks at the claimed one.
		claims := plain(BuilderOptions{Codec: codec, TimestampType: LogAppendTime, AppendTime: T - 5}, 3, 100)
		v, err = Validate(claims, options())
		if err != nil || v.MaxTimestamp != T+2 || Batch(v.Set).TimestampType() != CreateTime || Batch(v.Set).Verify() != nil {
			t.Errorf("%v: got %+v, %v, want create time", codec, v, err)
		}
	}
}

func TestValidateRebuilds(t *testing.T) {
	for _, source := range append([]Codec{None}, codecs...) {
		for _, target := range append([]Codec{None}, codecs...) {
			b := NewBuilder(BuilderOptions{Codec: source, Transactional: true, Producer: &Producer{5, 1, 9}})
			for i := range int64(50) {
				err := b.Append(Record{Offset: i, Timestamp: T - i, Value: []byte("value value value"), Headers: []Header{{"a", nil}, {"a", []byte("b")}}})
				if err != nil {
					t.Fatal(err)
				}
			}
			in := Batch(b.Build())
			before := bytes.Clone(in)
			v, err := Validate(in, options(to(target)))
			if err != nil {
				t.Fatal(err)
			}
			if v.Rebuilt != (source != target) || Batch(v.Set).Codec() != target || v.SourceCodec != source || !bytes.Equal(before, in) {
				t.Errorf("%v to %v: got %+v", source, target, v)
			}
			if err := Batch(v.Set).Verify(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(mustRecords(t, in), mustRecords(t, Batch(v.Set))); diff != "" {
				t.Errorf("%v to %v: %s", source, target, diff)
			}
			if target == None {
				continue
			}
			// A header must survive whatever the codecs.
			back, err := Validate(v.Set, options(to(None)))
			if err != nil {
				t.Fatal(err)
			}
			if source == None && !bytes.Equal(back.Set, before) {
				t.Errorf("%v to %v and back: got\n%x, want\n%x", source, target, back.Set, before)
			}
		}
	}
}

func TestValidateConverts(t *testing.T) {
	records := func(offsets ...int64) []Record {
		var all []Record
		for i, o := range offsets {
			all = append(all, Record{Offset: o, Timestamp: T + int64(i), Key: []byte("key"), Value: []byte{byte(i)}})
		}
		return all
	}
	for magic := range int8(2) {
		for _, codec := range []Codec{None, Gzip, Snappy, LZ4} {
			set := buildSet(SetOptions{Magic: magic, Codec: codec}, records(40, 41, 45)...)
			v, err := Validate(set, options())
			if err != nil {
				t.Fatalf("v%d %v: %v", magic, codec, err)
			}
			maxTimestamp := int64(T + 2)
			if magic == 0 {
				maxTimestamp = -1
			}
			if !v.Rebuilt || Batch(v.Set).Magic() != 2 || Batch(v.Set).Codec() != codec || v.Count != 3 || v.LastOffsetDelta != 2 || v.MaxTimestamp != maxTimestamp {
				t.Errorf("v%d %v: got %+v", magic, codec, v)
			}
			if Batch(v.Set).ProducerID() != -1 || Batch(v.Set).Verify() != nil {
				t.Errorf("v%d %v: got producer %d, %v", magic, codec, Batch(v.Set).ProducerID(), Batch(v.Set).Verify())
			}
			for i, r := range mustRecords(t, Batch(v.Set)) {
				if r.Offset != int64(i) || string(r.Key) != "key" || r.Value[0] != byte(i) || magic == 1 && r.Timestamp != T+int64(i) {
					t.Errorf("v%d %v: got %+v", magic, codec, r)
				}
			}
		}
	}

	// KAFKA-9669: inner offsets that were never right are counted anew.
	inner := slices.Concat(
		buildSet(SetOptions{Magic: 1}, records(0)...), buildSet(SetOptions{Magic: 1}, records(0)...), buildSet(SetOptions{Magic: 1}, records(7)...))
	v, err := Validate(wrap(1, 7, Gzip, inner), options())
	if err != nil || v.Count != 3 {
		t.Fatalf("got %+v, %v, want 3 records", v, err)
	}
	for i, r := range mustRecords(t, Batch(v.Set)) {
		if r.Offset != int64(i) {
			t.Errorf("got offset %d, want %d", r.Offset, i)
		}
	}
}

// wrap makes a wrapper around any bytes.
func wrap(magic int8, offset int64, codec Codec, inner []byte) []byte {
	b := &SetBuilder{opts: SetOptions{Magic: magic, Codec: codec}}
	return b.appendMessage(nil, offset, T, codec, nil, compress(nil, inner, codec, 0, magic))
}

func TestValidateRefuses(t *testing.T) {
	good := plain(BuilderOptions{}, 5, 10)
	packed := plain(BuilderOptions{Codec: LZ4}, 5, 10)
	f := func(name string, set []byte, o *ValidateOptions, want error, text string) {
		t.Helper()
		before := bytes.Clone(set)
		_, err := Validate(set, o)
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, want, text)
		}
		if err != nil && !bytes.Equal(before, set) {
			t.Errorf("%s: set was changed", name)
		}
	}
	f("nothing", nil, options(), ErrInvalidRecord, "no batch")
	f("incomplete", good[:len(good)-1], options(), ErrInvalidRecord, "no batch")
	f("incomplete second", slices.Concat(good, good[:30]), options(), nil, "")
	f("two batches", slices.Concat(good, good), options(), ErrInvalidRecord, "more than one")
	f("garbage second", slices.Concat(good, make([]byte, 20)), options(), ErrCorrupt, "byte 151")
	f("bad crc", append(bytes.Clone(good[:len(good)-1]), 1), options(), ErrCorrupt, "crc")
	f("two batches from a coordinator", slices.Concat(good, good), options(coordinator), ErrInvalidRecord, "more than one")
	message := buildSet(SetOptions{Magic: 1}, Record{Timestamp: T, Value: []byte("v")})
	f("v1 then v0", slices.Concat(message, buildSet(SetOptions{}, Record{})), options(), ErrInvalidRecord, "v0 after one of v1")
	f("v1 then v2", slices.Concat(message, good), options(), ErrInvalidRecord, "v2 after one of v1")
	f("two wrappers", slices.Concat(wrap(1, 0, Gzip, message), wrap(1, 0, Gzip, message)), options(), ErrInvalidRecord, "more than one")
	f("base offset", plain(BuilderOptions{BaseOffset: 1}, 1, 1), options(), ErrInvalidRecord, "base offset 1")
	f("too large", good, options(func(o *ValidateOptions) { o.MaxMessageBytes = len(good) - 1 }), ErrTooLarge, "151 bytes")
	f("just not too large", good, options(func(o *ValidateOptions) { o.MaxMessageBytes = len(good) }), nil, "")
	f("too large decompressed", plain(BuilderOptions{Codec: Gzip}, 1, 2<<20), options(to(None)), ErrTooLarge, "max.message.bytes 1048576")
	f("codec 5", put(good, posAttributes, 0, 5), options(), ErrInvalidRecord, "codec 5")
	f("codec 5", put(good, posAttributes, 0, 5), options(), ErrUnsupportedCompression, "codec 5")

	// KAFKA-6554, KAFKA-5031
	f("last offset delta -1", put(good, posLastOffsetDelta, be32(-1)...), options(), ErrInvalidRecord, "offset range")
	f("last offset delta too small", put(good, posLastOffsetDelta, be32(3)...), options(), ErrInvalidRecord, "5 records in offset range [0, 3]")
	f("last offset delta too large", put(good, posLastOffsetDelta, be32(5)...), options(), ErrInvalidRecord, "5 records in offset range [0, 5]")
	f("count 0", put(good, posCount, be32(0)...), options(), ErrInvalidRecord, "record count 0")
	f("count -1", put(good, posCount, be32(-1)...), options(), ErrInvalidRecord, "record count -1")
	more := func(b Batch, n int32) Batch {
		return put(put(b, posCount, be32(n)...), posLastOffsetDelta, be32(n-1)...)
	}
	for name, b := range map[string]Batch{"plain": good, "compressed": packed} {
		f(name+" one record too few", more(b, 6), options(), ErrInvalidRecord, "5 records, the header says 6")
		f(name+" huge count", more(b, math.MaxInt32), options(), ErrInvalidRecord, "5 records, the header says 2147483647")
		f(name+" one record too many", more(b, 4), options(), ErrInvalidRecord, "after the last of 4 records")
	}
	f("control", plain(BuilderOptions{Control: true}, 1, 1), options(), ErrInvalidRecord, "control")
	f("control from a coordinator", plain(BuilderOptions{Control: true}, 1, 1), options(coordinator, to(Gzip)), nil, "")
	f("no sequence", plain(BuilderOptions{Producer: &Producer{5, 1, -1}}, 1, 1), options(), ErrInvalidRecord, "sequence -1 of producer 5")
	f("not decodable", resealed(append(packed[:HeaderSize:HeaderSize], "garbage garbage"...)), options(), ErrInvalidRecord, "lz4")
	f("not decodable anew", resealed(append(packed[:HeaderSize:HeaderSize], "garbage garbage"...)), options(to(None)), ErrInvalidRecord, "lz4")
	f("bomb", plain(BuilderOptions{Codec: Zstd}, 1, 2<<20), options(func(o *ValidateOptions) { o.MaxDecompressed = 1 << 20 }), ErrDecompressedTooLarge, "zstd")

	// Offsets in the batch; for v2 they have to be right, compressed or not.
	for _, codec := range []Codec{None, Gzip} {
		gap := NewBuilder(BuilderOptions{Codec: codec})
		for _, o := range []int64{0, 2} {
			if err := gap.Append(Record{Offset: o, Timestamp: T}); err != nil {
				t.Fatal(err)
			}
		}
		b := put(gap.Build(), posLastOffsetDelta, be32(1)...)
		f("gap", b, options(), ErrInvalidRecord, "record 1 has offset delta 2")
	}

	// Messages and what is in wrappers.
	f("zstd in v1", put(message, posMessageAttributes, 4), options(), ErrUnsupportedCompression, "zstd")
	f("empty wrapper", wrap(1, 0, Gzip, nil), options(), ErrInvalidRecord, "empty")
	f("wrapper without value", put(buildSet(SetOptions{Magic: 1}, Record{Timestamp: T}), posMessageAttributes, 1), options(), ErrInvalidRecord, "no value")
	f("wrapper in a wrapper", wrap(1, 0, Gzip, wrap(1, 0, Gzip, message)), options(), ErrInvalidRecord, "compressed itself")
	f("v0 in a v1 wrapper", wrap(1, 0, Gzip, buildSet(SetOptions{}, Record{})), options(), ErrInvalidRecord, "v0 in a wrapper of format v1")
	f("v2 in a v1 wrapper", wrap(1, 0, Gzip, good), options(), ErrInvalidRecord, "v2")
	f("cut message in a wrapper", wrap(1, 0, Gzip, message[:len(message)-1]), options(), ErrInvalidRecord, "incomplete")
	bad := bytes.Clone(message)
	bad[len(bad)-1] ^= 1
	f("bad crc in a wrapper", wrap(1, 0, Gzip, bad), options(), ErrCorrupt, "crc")
	f("bad crc", bad, options(), ErrCorrupt, "crc")
	late := buildSet(SetOptions{Magic: 1}, Record{Offset: 5, Timestamp: T, Value: []byte("v")})
	f("wrapper offset below inner", wrap(1, 4, Gzip, late), options(), ErrInvalidRecord, "contains offset 5")
	f("key too long", put(message, posMessageKey1, be32(1000)...), options(), ErrInvalidRecord, "does not fit")
}

func TestValidateBlamesRecords(t *testing.T) {
	f := func(name string, o *ValidateOptions, set []byte, want *InvalidRecordError) {
		t.Helper()
		_, err := Validate(set, o)
		var got *InvalidRecordError
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v", name, err)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
		kind := ErrInvalidRecord
		if want.Timestamp {
			kind = ErrInvalidTimestamp
		}
		if !errors.Is(err, kind) || errors.Is(err, ErrInvalidRecord) && want.Timestamp {
			t.Errorf("%s: got %v, want it to match only %v", name, err, kind)
		}
	}
	const reason = "one or more records have been rejected"
	const noKey = "compacted topic cannot accept a record without key"
	records := []Record{
		{Offset: 0, Timestamp: T, Key: []byte("k")},
		{Offset: 1, Timestamp: T + 3_600_001},                   // no key, and late: blamed for the key
		{Offset: 2, Timestamp: T + 3_600_001, Key: []byte("k")}, // too late
		{Offset: 3, Timestamp: T + 3_600_000, Key: []byte("")},  // just not
		{Offset: 4, Timestamp: -1, Key: []byte("k")},            // none is fine
		{Offset: 5, Timestamp: T - 1001, Key: []byte("k")},      // too early, if there is a limit
	}
	before := func(o *ValidateOptions) { o.BeforeMaxMs = 1000 }
	late := RecordError{2, "timestamp 1700003600001 is out of range [1699999999000, 1700003600000]"}
	early := RecordError{5, "timestamp 1699999998999 is out of range [1699999999000, 1700003600000]"}
	for _, codec := range append([]Codec{None}, codecs...) {
		set := func() []byte { return build(BuilderOptions{Codec: codec}, records...) }
		f("keys and timestamps", options(compacted, before), set(),
			&InvalidRecordError{Reason: reason, Timestamp: true, Records: []RecordError{{1, noKey}, late, early}})
		f("keys and timestamps, compressed anew", options(compacted, before, to(codec%4+1)), set(),
			&InvalidRecordError{Reason: reason, Timestamp: true, Records: []RecordError{{1, noKey}, late, early}})
		f("keys", options(compacted, appendTime), set(),
			&InvalidRecordError{Reason: reason, Records: []RecordError{{1, noKey}}})
		f("claims append time", options(appendTime), build(BuilderOptions{Codec: codec, TimestampType: LogAppendTime, AppendTime: T}, records[0]),
			&InvalidRecordError{Reason: reason, Timestamp: true, Records: []RecordError{{0, "producer must not set the timestamp type to LogAppendTime"}}})
		if codec == Zstd {
			continue
		}
		f("v1", options(compacted, before), buildSet(SetOptions{Magic: 1, Codec: Gzip}, records...),
			&InvalidRecordError{Reason: reason, Timestamp: true, Records: []RecordError{{1, noKey}, late, early}})
	}

	// The error blames a bounded number of records.
	b := NewBuilder(BuilderOptions{})
	for i := range int64(2 * recordErrorsMax) {
		if err := b.Append(Record{Offset: i, Timestamp: T}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Validate(b.Build(), options(compacted))
	var got *InvalidRecordError
	if !errors.As(err, &got) || len(got.Records) != recordErrorsMax {
		t.Errorf("got %v, want %d records blamed", err, recordErrorsMax)
	}
}

// Limits at the ends of int64 must not wrap around.
func TestValidateTimestampLimits(t *testing.T) {
	f := func(timestamp, before, after int64, ok bool) {
		t.Helper()
		set := build(BuilderOptions{}, Record{Timestamp: timestamp})
		_, err := Validate(set, options(func(o *ValidateOptions) { o.BeforeMaxMs, o.AfterMaxMs = before, after }))
		if (err == nil) != ok {
			t.Errorf("%d with %d, %d: got %v", timestamp, before, after, err)
		}
	}
	f(-5, math.MaxInt64, math.MaxInt64, true)
	f(-5, math.MaxInt64, 0, true)
	f(math.MaxInt64, math.MaxInt64, math.MaxInt64, true)
	f(math.MaxInt64, math.MaxInt64, 0, false)
	f(math.MinInt64, math.MaxInt64, 0, false)
	f(T+1, 0, 0, false)
	f(T-1, 0, 0, false)
	f(T, 0, 0, true)
}

func TestValidateDoesNotAllocate(t *testing.T) {
	o := options()
	f := func(name string, b Batch, want float64) {
		t.Helper()
		got := testing.AllocsPerRun(100, func() {
			if _, err := Validate(b, o); err != nil {
				t.Fatal(err)
			}
		})
		if got > want {
			t.Errorf("%s: got %v allocations, want %v", name, got, want)
		}
	}
	f("1 x 100", plain(BuilderOptions{}, 1, 100), 0)
	f("16 x 1000", plain(BuilderOptions{}, 16, 1000), 0)
	f("wrong maximum", put(plain(BuilderOptions{}, 16, 1000), posMaxTimestamp, make([]byte, 8)...), 0)
	for _, codec := range codecs {
		if !raceEnabled { // the race detector makes a sync.Pool forget things
			f(codec.String(), plain(BuilderOptions{Codec: codec}, 16, 1000), 2)
		}
	}
	b := plain(BuilderOptions{}, 16, 1000)
	if got := testing.AllocsPerRun(100, func() {
		if err := b.Verify(); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("Verify: got %v allocations, want 0", got)
	}
}
