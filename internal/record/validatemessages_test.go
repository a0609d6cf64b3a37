package record

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// old returns the options of a log of format v0 or v1.
func old(magic int8, change ...func(*ValidateOptions)) *ValidateOptions {
	return options(append([]func(*ValidateOptions){inFormat(magic)}, change...)...)
}

// mustStamp validates a set and gives it offsets from 1000 on.
func mustStamp(t *testing.T, set []byte, o *ValidateOptions) Validated {
	t.Helper()
	v, err := Validate(set, o)
	if err == nil {
		err = v.Stamp(1000, 5)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sample are records with offsets as producers send them.
func sample() []Record {
	return []Record{
		{Offset: 0, Timestamp: T, Key: []byte("a"), Value: []byte("1")},
		{Offset: 1, Timestamp: T + 7, Value: []byte("2")},
		{Offset: 2, Timestamp: T + 3, Key: []byte("c")},
	}
}

func TestValidateMessages(t *testing.T) {
	for magic := range int8(2) {
		for source := range int8(3) {
			for _, from := range []Codec{None, Gzip, Snappy, LZ4} {
				for _, target := range []Codec{AsProduced, None, LZ4} {
					for _, kind := range []TimestampType{CreateTime, LogAppendTime} {
						set := buildSetOrBatch(source, from)
						o := old(magic, to(target), func(o *ValidateOptions) { o.TimestampType = kind })
						v := mustStamp(t, bytes.Clone(set), o)
						codec := target
						if target == AsProduced {
							codec = from
						}
						want := asFormat(magic, setRecords(t, set))
						latest := int64(-1)
						for i := range want {
							want[i].Offset += 1000
							if magic == 1 {
								want[i].TimestampType = kind
							}
							if magic == 1 && kind == LogAppendTime {
								want[i].Timestamp = T
							}
							latest = max(latest, want[i].Timestamp)
						}
						if diff := cmp.Diff(want, setRecords(t, v.Set)); diff != "" {
							t.Errorf("v%d %v to v%d %v: %s", source, from, magic, codec, diff)
						}
						if got := Batch(v.Set).Codec(); got != codec || Batch(v.Set).Magic() != magic {
							t.Errorf("v%d %v to v%d %v: got %v", source, from, magic, codec, got)
						}
						if v.Converted != (source != magic) || v.Count != 3 || v.LastOffsetDelta != 2 || v.MaxTimestamp != latest || v.LogAppendTime != o.logAppendTime() {
							t.Errorf("v%d %v to v%d %v: got %+v", source, from, magic, codec, v)
						}
					}
				}
			}
		}
	}
}

func buildSetOrBatch(magic int8, codec Codec) []byte {
	if magic == 2 {
		return build(BuilderOptions{Codec: codec}, sample()...)
	}
	return buildSet(SetOptions{Magic: magic, Codec: codec}, sample()...)
}

// What has the log's format and codec keeps its bytes, and nothing is compressed again.
func TestValidateMessagesInPlace(t *testing.T) {
	f := func(name string, set []byte, o *ValidateOptions, inPlace bool) {
		t.Helper()
		v := mustStamp(t, set, o)
		if (&v.Set[0] == &set[0]) != inPlace || v.Rebuilt == inPlace {
			t.Errorf("%s: got rebuilt %v, want %v", name, v.Rebuilt, !inPlace)
		}
	}
	f("v0", buildSetOrBatch(0, None), old(0), true)
	f("v1", buildSetOrBatch(1, None), old(1), true)
	f("v1 append time", buildSetOrBatch(1, None), old(1, appendTime), true)
	f("v1 gzip", buildSetOrBatch(1, Gzip), old(1), true)
	f("v1 gzip append time", buildSetOrBatch(1, Gzip), old(1, appendTime), true)
	f("v0 gzip", buildSetOrBatch(0, Gzip), old(0), false) // its inner offsets are absolute
	f("v1 gzip to lz4", buildSetOrBatch(1, Gzip), old(1, to(LZ4)), false)

	// KAFKA-9669: inner offsets that were never right.
	message := func(offset int64) []byte {
		return buildSet(SetOptions{Magic: 1}, Record{Offset: offset, Timestamp: T, Value: []byte("v")})
	}
	for _, inner := range [][]byte{
		slices.Concat(message(0), message(0), message(0)),
		slices.Concat(message(0), message(2), message(5)),
		slices.Concat(message(1), message(2), message(3)),
	} {
		for _, offset := range []int64{0, 5, 900} {
			f("v1 with wrong inner offsets", wrap(1, offset, Gzip, inner), old(1), false)
		}
	}
	// A wrapper with a wrong timestamp gets the largest of its messages'.
	set := wrap(1, 1, Gzip, slices.Concat(message(0), message(1)))
	if v := mustStamp(t, set, old(1)); v.MaxTimestamp != T || Batch(v.Set).MaxTimestamp() != T || v.Rebuilt {
		t.Errorf("got %+v", v)
	}
}

func TestValidateMessagesRefuses(t *testing.T) {
	f := func(name string, set []byte, o *ValidateOptions, want error) {
		t.Helper()
		before := bytes.Clone(set)
		v, err := Validate(set, o)
		if err == nil {
			err = v.Stamp(0, 0)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if !bytes.Equal(before, set) {
			t.Errorf("%s: the set was changed", name)
		}
	}
	small := func(o *ValidateOptions) { o.MaxMessageBytes = 60 }
	for magic := range int8(2) {
		f("idempotent", build(BuilderOptions{Producer: &Producer{1, 0, 0}}, sample()...), old(magic), ErrUnsupportedForFormat)
		f("transactional", build(BuilderOptions{Producer: &Producer{1, 0, 0}, Transactional: true}, sample()...), old(magic), ErrUnsupportedForFormat)
		f("control", EndTxnMarker(EndTxn{}), old(magic), ErrInvalidRecord) // looked at first
		f("zstd", build(BuilderOptions{Codec: Zstd}, sample()...), old(magic), ErrUnsupportedCompression)
		f("to zstd", buildSetOrBatch(magic, None), old(magic, to(Zstd)), ErrUnsupportedCompression)
		f("too large", buildSetOrBatch(magic, LZ4), old(magic, small), ErrTooLarge)
		f("no key", buildSetOrBatch(magic, None), old(magic, compacted), ErrInvalidRecord)
		f("no key in a wrapper", buildSetOrBatch(magic, Gzip), old(magic, compacted), ErrInvalidRecord)
		f("no key in v2", buildSetOrBatch(2, None), old(magic, compacted, appendTime), ErrInvalidRecord)
		mixed := slices.Concat(buildSetOrBatch(magic, None), buildSetOrBatch(1-magic, None))
		f("mixed", mixed, old(magic), ErrInvalidRecord)
		twice := slices.Concat(buildSetOrBatch(magic, Gzip), buildSetOrBatch(magic, Gzip))
		f("two wrappers", twice, old(magic), ErrInvalidRecord)
		broken := slices.Concat(buildSetOrBatch(magic, Gzip), buildSetOrBatch(magic, None))
		broken[len(broken)-1] ^= 1
		f("two wrappers, and a broken checksum, which counts first", broken, old(magic), ErrCorrupt)
	}
	// Only compressed with its final offsets a v0 set is known to be too large.
	v2 := buildSetOrBatch(2, None)
	f("v2 to v0", v2, old(0, to(LZ4), func(o *ValidateOptions) { o.MaxMessageBytes = len(v2) }), ErrTooLarge)
	f("v0 and an append time", buildSetOrBatch(0, None), old(1, appendTime, compacted), ErrInvalidRecord)
}
