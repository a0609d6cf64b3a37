package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A v2 record is refused when any of its fields does not fit.
func TestParseRecord(t *testing.T) {
	v := func(parts ...any) []byte {
		var p []byte
		for _, part := range parts {
			switch part := part.(type) {
			case int:
				p = binary.AppendVarint(p, int64(part))
			case string:
				p = append(p, part...)
			}
		}
		return append(binary.AppendVarint(nil, int64(len(p))), p...)
	}
	f := func(name string, p []byte, want error) {
		t.Helper()
		var l layout
		n, err := parseRecord(p, 0, &l)
		if err != want || err == nil && n != len(p) {
			t.Errorf("%s: got %d, %v, want %v", name, n, err, want)
		}
	}
	f("good", v("\x00", 5, 1, 1, "k", 2, "vv", 1, 1, "h", 1, "x"), nil)
	f("null everywhere", v("\x00", 5, 1, -1, -1, 1, 0, -1), nil)
	f("null by any negative length", v("\x00", 5, 1, -7, math.MinInt32, 0), nil)
	f("nothing", nil, errRecordLength)
	f("length -1", binary.AppendVarint(nil, -1), errRecordLength)
	f("length 0", binary.AppendVarint(nil, 0), errRecordField)
	f("longer than the batch", v("\x00", 5, 1, -1, -1, 0)[:5], errRecordLength)
	f("length without end", bytes.Repeat([]byte{0xff}, 20), errRecordLength)
	f("no timestamp", v("\x00"), errRecordField)
	f("no offset", v("\x00", 5), errRecordField)
	f("offset beyond int32", v("\x00", 5, math.MaxInt32+1, -1, -1, 0), errRecordField)
	f("key too long", v("\x00", 5, 1, 2, "k"), errRecordField)
	f("no value", v("\x00", 5, 1, 1, "k"), errRecordField)
	f("value too long", v("\x00", 5, 1, 1, "k", math.MaxInt32, "v"), errRecordField)
	f("no header count", v("\x00", 5, 1, -1, -1), errHeaderCount)
	f("header count -1", v("\x00", 5, 1, -1, -1, -1), errHeaderCount)
	f("header count too large", v("\x00", 5, 1, -1, -1, 3, 0, -1, 0, -1), errHeaderCount)
	f("headers missing", v("\x00", 5, 1, -1, -1, 2, 2, "kk", -1), errRecordField)
	f("header without key", v("\x00", 5, 1, -1, -1, 1, -1, -1), errHeaderKey)
	f("header value too long", v("\x00", 5, 1, -1, -1, 1, 0, 5, "x"), errRecordField)
	f("bytes after no headers", v("\x00", 5, 1, -1, -1, 0, "x"), errRecordTail)
	f("bytes after headers", v("\x00", 5, 1, -1, -1, 1, 0, -1, "x"), errRecordTail)
}

func TestRecordsStopsEarly(t *testing.T) {
	for _, b := range []Batch{
		plain(BuilderOptions{}, 5, 10),
		plain(BuilderOptions{Codec: Zstd}, 5, 10),
		buildSet(SetOptions{Magic: 1, Codec: Gzip}, pair(Record{})...),
	} {
		got := 0
		for _, err := range b.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if got++; got == 2 {
				break
			}
		}
		if got != 2 {
			t.Errorf("got %d records, want 2", got)
		}
	}
}

// The records before a fault are still yielded, and the fault comes last.
func TestRecordsFault(t *testing.T) {
	good := plain(BuilderOptions{}, 5, 10)
	for _, b := range []Batch{good[:len(good)-1], append(bytes.Clone(good), 0)} {
		var errs, records int
		for _, err := range b.Records() {
			if err == nil {
				records++
				continue
			}
			errs++
			if !errors.Is(err, ErrInvalidRecord) {
				t.Errorf("got %v, want invalid", err)
			}
		}
		if errs != 1 || records < 4 {
			t.Errorf("got %d records and %d errors", records, errs)
		}
	}
}

// v1 wrappers: absolute offsets, timestamps of the wrapper, and the special offset 0.
func TestWrapperOffsets(t *testing.T) {
	f := func(o SetOptions, base int64, offset int64, want ...int64) {
		t.Helper()
		b, err := NewSetBuilder(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(3) {
			if err := b.Append(Record{Offset: base + i, Timestamp: T + i}); err != nil {
				t.Fatal(err)
			}
		}
		set := Batch(b.Build())
		set.SetBaseOffset(offset)
		var got []int64
		for _, r := range mustRecords(t, set) {
			got = append(got, r.Offset)
			if o.TimestampType == LogAppendTime && (r.Timestamp != T+100 || r.TimestampType != LogAppendTime) {
				t.Errorf("got timestamp %d %v", r.Timestamp, r.TimestampType)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if first, err := set.FirstOffset(); err != nil || first != want[0] {
			t.Errorf("got first offset %d, %v, want %d", first, err, want[0])
		}
	}
	f(SetOptions{Magic: 1, Codec: Gzip}, 10, 12, 10, 11, 12)
	f(SetOptions{Magic: 1, Codec: Gzip}, 10, 1000, 998, 999, 1000) // stamped by a broker
	f(SetOptions{Magic: 1, Codec: Gzip}, 10, 0, 0, 1, 2)           // a client that did not know
	f(SetOptions{Magic: 0, Codec: Gzip}, 10, 12, 10, 11, 12)
	f(SetOptions{Magic: 1, Codec: Snappy, TimestampType: LogAppendTime, AppendTime: T + 100}, 10, 12, 10, 11, 12)
}

func TestBuilderRefuses(t *testing.T) {
	b := NewBuilder(BuilderOptions{BaseOffset: 10})
	f := func(r Record, ok bool) {
		t.Helper()
		if err := b.Append(r); (err == nil) != ok {
			t.Errorf("offset %d: got %v", r.Offset, err)
		}
	}
	f(Record{Offset: 9}, false)
	f(Record{Offset: 10}, true)
	f(Record{Offset: 10}, false)
	f(Record{Offset: 11 + math.MaxInt32}, false)
	f(Record{Offset: 10 + math.MaxInt32}, true)
	if b.Count() != 2 {
		t.Errorf("got %d records, want 2", b.Count())
	}
	if got := NewBuilder(BuilderOptions{}).Build(); got != nil {
		t.Errorf("got %x from nothing, want nil", got)
	}
	if _, err := NewSetBuilder(SetOptions{Magic: 2}); err == nil {
		t.Error("a message set of format v2 is built")
	}
	if _, err := NewSetBuilder(SetOptions{Magic: 1, Codec: Zstd}); !errors.Is(err, ErrUnsupportedCompression) {
		t.Errorf("got %v, want ErrUnsupportedCompression", err)
	}
}

// Reset keeps the buffer only when the batch before did not get it.
func TestBuilderReset(t *testing.T) {
	for _, codec := range []Codec{None, Gzip} {
		b := NewBuilder(BuilderOptions{Codec: codec})
		var built [][]byte
		for i := range byte(3) {
			b.Reset(BuilderOptions{Codec: codec})
			if err := b.Append(Record{Value: bytes.Repeat([]byte{i}, 100)}); err != nil {
				t.Fatal(err)
			}
			built = append(built, b.Build())
		}
		for i, raw := range built {
			if got := mustRecords(t, raw); len(got) != 1 || got[0].Value[0] != byte(i) {
				t.Errorf("%v: batch %d is %v", codec, i, got)
			}
		}
	}
}

func TestBatchControlType(t *testing.T) {
	f := func(b []byte, want ControlType, ok bool) {
		t.Helper()
		if got, is := Batch(b).ControlType(); got != want || is != ok {
			t.Errorf("got %v, %v, want %v, %v", got, is, want, ok)
		}
	}
	control := BuilderOptions{Control: true}
	f(build(control, Record{Key: ControlKey(ControlCommit)}), ControlCommit, true)
	f(build(control, Record{Key: ControlKey(ControlAbort)}, Record{Offset: 1, Key: ControlKey(ControlCommit)}), ControlAbort, true)
	f(build(control, Record{Key: []byte("x")}), 0, false)
	f(build(BuilderOptions{}, Record{Key: ControlKey(ControlCommit)}), 0, false)
	f(EmptyBatch(build(control, Record{Key: ControlKey(ControlCommit)})), 0, false)
	f(buildSet(SetOptions{Magic: 1}, Record{Key: ControlKey(ControlCommit)}), 0, false)
}

func TestControl(t *testing.T) {
	for c, want := range map[ControlType]string{ControlAbort: "ABORT", ControlCommit: "COMMIT", ControlKRaftVoters: "KRAFT_VOTERS", 7: "UNKNOWN(7)", -1: "UNKNOWN(-1)"} {
		got, err := ParseControl(ControlKey(c))
		if err != nil || got != c || c.String() != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	f := func(key string, want ControlType, ok bool) {
		t.Helper()
		got, err := ParseControl([]byte(key))
		if got != want || (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalidRecord) {
			t.Errorf("%x: got %v, %v", key, got, err)
		}
	}
	f("", 0, false)
	f("\x00\x00\x00", 0, false)
	f("\xff\xff\x00\x00", 0, false)
	f("\x00\x05\x00\x01", ControlCommit, true)
	f("\x00\x00\x00\x01more", ControlCommit, true)

	g := func(value string, want int32, ok bool) {
		t.Helper()
		got, err := ParseEndTxn([]byte(value))
		if got != want || (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalidRecord) {
			t.Errorf("%x: got %v, %v", value, got, err)
		}
	}
	g("\x00\x00\x00\x00\x00", 0, false)
	g("\x00\x00\x00\x00\x00\x07", 7, true)
	g("\x00\x01\x00\x00\x00\x07more", 7, true)
	g("\xff\xff\x00\x00\x00\x07", 0, false)
}

func TestInvalidRecordErrorText(t *testing.T) {
	f := func(err *InvalidRecordError, want string) {
		t.Helper()
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(&InvalidRecordError{Reason: "no batch at all"}, "no batch at all")
	f(&InvalidRecordError{Reason: "gzip records", Err: ErrDecompressedTooLarge}, "gzip records: decompressed records too large")
	f(&InvalidRecordError{Reason: "rejected", Records: []RecordError{{4, "no key"}}}, "rejected: record 4: no key")
	f(&InvalidRecordError{Reason: "rejected", Records: []RecordError{{4, "no key"}, {5, "no key"}}}, "rejected: record 4: no key (and 1 more)")
}
