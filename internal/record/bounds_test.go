package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// bytesOf makes a batch of records with values.
func bytesOf(t *testing.T, o BuilderOptions, records ...Record) Batch {
	t.Helper()
	b := NewBuilder(o)
	for i := range records {
		records[i].Offset = o.BaseOffset + int64(i)
		if err := b.Append(records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// 17 bytes tell the format of a batch; fewer tell nothing.
func TestFirstOfFewBytes(t *testing.T) {
	b := make([]byte, 17)
	binary.BigEndian.PutUint32(b[8:], 100)
	b[16] = 9
	if _, err := First(b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("17 bytes of format 9: got %v", err)
	}
	if _, err := First(b[:16]); err != ErrShort {
		t.Errorf("16 bytes: got %v", err)
	}
}

// As many headers as need a count of two bytes.
func TestManyHeaders(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		var headers []Header
		for i := range n {
			headers = append(headers, Header{Key: fmt.Sprint(i), Value: []byte{byte(i)}})
		}
		b := bytesOf(t, BuilderOptions{}, Record{Value: []byte("v"), Headers: headers}, Record{Value: []byte("w")})
		var got int
		for r, err := range b.Records() {
			if err != nil {
				t.Fatalf("%d headers: %v", n, err)
			}
			got += len(r.Headers)
		}
		if got != n {
			t.Errorf("got %d headers, want %d", got, n)
		}
		if err := CheckRecords(b, 0); err != nil {
			t.Errorf("%d headers: %v", n, err)
		}
	}
}

// A limit of what is decompressed is one that the content may reach.
func TestDecompressedLimit(t *testing.T) {
	plain := bytes.Repeat([]byte("0123456789"), 20_000)
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		packed := compress(nil, plain, codec, 0, 2)
		f := func(limit int, want error) {
			t.Helper()
			s := new(scratch)
			if err := s.decompress(packed, codec, 2, limit); !errors.Is(err, want) {
				t.Errorf("%v, limit %d: got %v, want %v", codec, limit, err, want)
			} else if err == nil && !bytes.Equal(s.buf, plain) {
				t.Errorf("%v, limit %d: other bytes", codec, limit)
			}
		}
		f(len(plain)+1, nil)
		f(len(plain), nil)
		f(len(plain)-1, ErrDecompressedTooLarge)
	}
}

// Level 0 is the codec's default, and others are what they say.
func TestLevels(t *testing.T) {
	var plain []byte
	for i := range 40_000 {
		plain = fmt.Appendf(plain, "%x", i*i*7919)
	}
	f := func(codec Codec, def, low, high int) {
		t.Helper()
		at := func(level int) []byte { return compress(nil, plain, codec, level, 2) }
		if !bytes.Equal(at(0), at(def)) {
			t.Errorf("%v: level 0 is not level %d", codec, def)
		}
		if bytes.Equal(at(low), at(high)) {
			t.Errorf("%v: all levels are the same", codec)
		}
		if len(at(high)) >= len(at(low)) {
			t.Errorf("%v: level %d makes %d bytes, level %d %d", codec, high, len(at(high)), low, len(at(low)))
		}
	}
	f(Gzip, gzipDefaultLevel, 1, 9)
	f(LZ4, lz4DefaultLevel, lz4DefaultLevel, 12) // the default is the fast one, as in Kafka
	f(Zstd, zstdDefaultLevel, 1, 19)
}

// A batch that has lost its records may say that they were compressed.
func TestCompressedNothing(t *testing.T) {
	b := Batch(EmptyBatch(bytesOf(t, BuilderOptions{}, Record{Value: []byte("v")})))
	b[posAttributes+1] |= byte(Gzip)
	b.setCRC()
	for r, err := range b.Records() {
		t.Errorf("got %v, %v", r, err)
	}
	if err := CheckRecords(b, 0); err != nil {
		t.Error(err)
	}
}

// XXH32 of inputs around the size of its four lanes, as the specification has it.
func TestXXH32Lanes(t *testing.T) {
	f := func(s string, want uint32) {
		t.Helper()
		if got := xxh32([]byte(s)); got != want {
			t.Errorf("xxh32(%q) = %#x, want %#x", s, got, want)
		}
	}
	f("0123456789abcde", 0x1dbdfa0f)
	f("0123456789abcdef", 0xc2c45b69)
}

// A field that does not fit into its message is an error, whichever it is.
func TestMessageFields(t *testing.T) {
	set, err := NewSetBuilder(SetOptions{Magic: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Append(Record{Key: []byte("k"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	whole := Batch(set.Build())
	f := func(name string, at int, ok bool) {
		t.Helper()
		b := Batch(bytes.Clone(whole))
		if at > 0 {
			binary.BigEndian.PutUint32(b[at:], 9)
		}
		if _, err := b.parseMessage(); (err == nil) != ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f("whole", 0, true)
	f("key", posMessageKey1, false)
	f("value", posMessageKey1+5, false)
}

// Only a wrapper has to be looked into for where it begins.
func TestFirstOffset(t *testing.T) {
	f := func(name string, b Batch, want int64) {
		t.Helper()
		if got, err := b.FirstOffset(); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, want)
		}
	}
	three := []Record{{Value: []byte("a")}, {Value: []byte("b")}, {Value: []byte("c")}}
	f("batch", bytesOf(t, BuilderOptions{BaseOffset: 7}, three...), 7)
	f("compressed batch", bytesOf(t, BuilderOptions{BaseOffset: 7, Codec: Gzip}, three...), 7)
	for _, magic := range []int8{0, 1} {
		for _, codec := range []Codec{None, Gzip} {
			set, err := NewSetBuilder(SetOptions{Magic: magic, Codec: codec})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := set.Append(Record{Offset: int64(7 + i), Value: []byte("v")}); err != nil {
					t.Fatal(err)
				}
			}
			first, err := First(set.Build())
			if err != nil {
				t.Fatal(err)
			}
			f(fmt.Sprintf("message of v%d, %v", magic, codec), first, 7)
		}
	}
}

// Offsets of messages go up.
func TestSetOffsetsAscend(t *testing.T) {
	set, err := NewSetBuilder(SetOptions{Magic: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := func(offset int64, ok bool) {
		t.Helper()
		if err := set.Append(Record{Offset: offset}); (err == nil) != ok {
			t.Errorf("offset %d: got %v", offset, err)
		}
	}
	f(5, true)
	f(5, false)
	f(4, false)
	f(6, true)
}

// After its end, or an error, a Scan stays there.
func TestScanStays(t *testing.T) {
	b := bytesOf(t, BuilderOptions{}, Record{Key: []byte{}, Value: []byte("v")}, Record{Value: []byte{}})
	s := NewScan(b, b[HeaderSize:])
	for i, want := range []struct{ key, tombstone bool }{{true, false}, {false, false}} {
		if !s.Next() {
			t.Fatal(s.Err())
		}
		if _, ok := s.Key(); ok != want.key || s.IsTombstone() != want.tombstone {
			t.Errorf("record %d: key %v, tombstone %v", i, ok, s.IsTombstone())
		}
	}
	more, again := s.Next(), s.Next()
	if more || again || s.Err() != nil {
		t.Errorf("behind the end: %v", s.Err())
	}
	s = NewScan(b, b[HeaderSize:len(b)-1])
	for s.Next() {
	}
	if s.Next() || s.Err() == nil {
		t.Errorf("behind an error: %v", s.Err())
	}
}

// A set as large as the limit is taken.
func TestValidateLimit(t *testing.T) {
	b := bytesOf(t, BuilderOptions{}, Record{Value: []byte("v")})
	f := func(limit int, ok bool) {
		t.Helper()
		if got := tooLarge(b, &ValidateOptions{MaxMessageBytes: limit}); got == ok {
			t.Errorf("limit %d of %d bytes: too large: %v", limit, len(b), got)
		}
	}
	f(0, true)
	f(len(b), true)
	f(len(b)-1, false)
}

// The latest time that is accepted does not wrap.
func TestLatest(t *testing.T) {
	f := func(now, after, want int64) {
		t.Helper()
		if got := (&ValidateOptions{Now: now, AfterMaxMs: after}).latest(); got != want {
			t.Errorf("%d and %d: got %d", now, after, got)
		}
	}
	f(10, 5, 15)
	f(10, math.MaxInt64-10, math.MaxInt64)
	f(10, math.MaxInt64-9, math.MaxInt64)
	f(10, math.MaxInt64, math.MaxInt64)
}

// A Verification of a small batch, or of one in pieces, says what Verify and CheckRecords do.
func TestVerificationOfAnySize(t *testing.T) {
	for _, n := range []int{1, 3, 500, 5000} {
		var records []Record
		for i := range n {
			records = append(records, Record{Timestamp: int64(i), Key: []byte("key"), Value: []byte(strings.Repeat("v", i%40))})
		}
		for _, codec := range []Codec{None, Gzip} {
			b := bytesOf(t, BuilderOptions{Codec: codec}, records...)
			f := func(name string, b Batch, good bool) {
				t.Helper()
				var v Verification
				for at := min(HeaderSize, len(b)); ; at = min(at+7000, len(b)) {
					if v.More(b[:at]); at == len(b) {
						break
					}
				}
				crc, structure := v.CRC(b), v.Records(b, 0)
				var once Verification
				if once.More(b); fmt.Sprint(once.Records(b, 0), once.CRC(b)) != fmt.Sprint(structure, crc) {
					t.Errorf("%d records, %v, %s: at once %v, in pieces %v", n, codec, name, once.Records(b, 0), structure)
				}
				if (crc == nil) != good || good && structure != nil {
					t.Errorf("%d records, %v, %s: got %v, %v", n, codec, name, crc, structure)
				}
				if want := CheckRecords(b, 0); codec == None && fmt.Sprint(structure) != fmt.Sprint(want) {
					t.Errorf("%d records, %s: got %v, want %v", n, name, structure, want)
				}
			}
			f("whole", b, true)
			bad := Batch(bytes.Clone(b))
			bad[len(bad)/2] ^= 1
			f("spoilt", bad, false)
		}
	}
	empty := Batch(EmptyBatch(bytesOf(t, BuilderOptions{}, Record{Value: []byte("v")})))
	var v Verification
	v.More(empty)
	if err := errors.Join(v.CRC(empty), v.Records(empty, 0)); err != nil {
		t.Errorf("a batch without records: %v", err)
	}
}

// Records in a row are gone over without decoding, but for the last bytes: that is what CheckRecords is
// fast by.
func TestRowsAreWalked(t *testing.T) {
	f := func(name string, key, value []byte, headers []Header, ms int64) {
		t.Helper()
		const n = 60 // offset deltas of one byte
		var records []Record
		for i := range n {
			records = append(records, Record{Timestamp: t0(i) * ms, Key: key, Value: value, Headers: headers})
		}
		b := bytesOf(t, BuilderOptions{}, records...)
		p := b[HeaderSize:]
		var r layout
		second, err := parseRecord(p, 0, &r) // the first has the base timestamp
		if err != nil {
			t.Fatal(err)
		}
		third, err := parseRecord(p, second, &r)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := shapeOf(p[second:])
		if !ok {
			t.Fatalf("%s: no shape", name)
		}
		at, left, before := s.walk(p, third, n-2, s.encode(1))
		if size := third - second; left > int32(1+(16+size)/size) || s.decode(before) != int64(n-left-1) {
			t.Errorf("%s: stopped at byte %d of %d, %d records left, behind offset delta %d", name, at, len(p), left, s.decode(before))
		}
	}
	text := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, ms := range []int64{0, 1, 100} {
		f("value", nil, text(10), nil, ms)
		f("key and value", text(5), text(10), nil, ms)
		f("a long value", text(5), text(200), nil, ms)
		f("a key of 63 bytes", text(63), text(10), nil, ms)
		f("a key of 64 bytes", text(64), text(10), nil, ms)
		f("a value of 63 bytes", nil, text(63), nil, ms)
		f("a value of 64 bytes", nil, text(64), nil, ms)
		f("long both", text(300), text(3000), nil, ms)
		f("empty both", text(0), text(0), nil, ms)
		f("a tombstone", text(5), nil, nil, ms)
		f("a header", text(5), text(10), []Header{{Key: "h", Value: text(3)}}, ms)
	}
}

func t0(i int) int64 { return int64(min(i, 1)) } // the same from the second record on

// A converted or recompressed batch is stamped with offsets up to its last record.
func TestStampOfWrapped(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		b := bytesOf(t, BuilderOptions{}, Record{Value: []byte("a")}, Record{Value: []byte("b")}, Record{Value: []byte("c")})
		v, err := Validate(b, &ValidateOptions{Magic: magic, TargetCodec: Gzip, Origin: Client, AfterMaxMs: math.MaxInt64, BeforeMaxMs: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Stamp(100, 3); err != nil {
			t.Fatal(err)
		}
		first, err := First(v.Set)
		if err != nil {
			t.Fatal(err)
		}
		if start, err := first.FirstOffset(); first.LastOffset() != 102 || start != 100 || err != nil {
			t.Errorf("format v%d: offsets %d to %d, %v", magic, start, first.LastOffset(), err)
		}
	}
}

// The checksums of blocks, which some writers add, count.
func TestLZ4BlockChecksum(t *testing.T) {
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame)
	if err := w.Apply(lz4.BlockChecksumOption(true), lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("text"), 30)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := func(b []byte, want error) {
		t.Helper()
		if _, err := readLZ4(nil, b, 1<<20, false); err != want {
			t.Errorf("%x: got %v, want %v", b, err, want)
		}
	}
	b := frame.Bytes()
	end := len(b) - 4 // of the blocks
	f(b, nil)
	spoilt := bytes.Clone(b)
	spoilt[end-1] ^= 1
	f(spoilt, errLZ4Checksum)
	f(b[:end-1], errLZ4Checksum)
	f(b[:end], errLZ4Block)
}
