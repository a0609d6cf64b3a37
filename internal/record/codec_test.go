package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
)

var codecs = []Codec{Gzip, Snappy, LZ4, Zstd}

// samples are payloads of the sizes at which blocks end, easy and impossible to compress.
func samples() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	for _, size := range []int{0, 1, 2, 17, 1000, 32<<10 - 1, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 300_000} {
		noise := make([]byte, size)
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		all = append(all, noise, bytes.Repeat([]byte("abcdefg"), size/7+1)[:size])
	}
	return all
}

func TestCodecs(t *testing.T) {
	for _, codec := range codecs {
		for _, level := range []int{0, -5, 1, 4, 9, 12, 22, 100} {
			for _, want := range samples() {
				packed := compress([]byte("head"), want, codec, level, 2)
				if !bytes.HasPrefix(packed, []byte("head")) {
					t.Fatalf("%v: what was in dst is gone", codec)
				}
				s := new(scratch)
				if err := s.decompress(packed[4:], codec, 2, len(want)+1); err != nil {
					t.Fatalf("%v level %d, %d bytes: %v", codec, level, len(want), err)
				}
				if !bytes.Equal(s.buf, want) {
					t.Fatalf("%v level %d: %d bytes come back changed", codec, level, len(want))
				}
				if level != 0 {
					continue
				}
				if err := s.decompress(packed[4:], codec, 2, len(want)-1); len(want) > 1 && !errors.Is(err, ErrDecompressedTooLarge) {
					t.Fatalf("%v, %d bytes, one too many: got %v, want ErrDecompressedTooLarge", codec, len(want), err)
				}
			}
		}
	}
}

// Whatever room a buffer has at first, the content fits in the end.
func TestDecompressIntoAnyBuffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var want []byte
	for len(want) < 400_000 {
		want = append(want, bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(40))...)
	}
	for _, codec := range codecs {
		packed := compress(nil, want, codec, 0, 2)
		for size := 0; size < 2*len(want); size += 1 + 2*size {
			s := &scratch{buf: make([]byte, 0, size)}
			if err := s.decompress(packed, codec, 2, len(want)); err != nil || !bytes.Equal(s.buf, want) {
				t.Fatalf("%v with room for %d bytes: got %d bytes and %v", codec, size, len(s.buf), err)
			}
		}
	}
}

// A payload cut anywhere is an error or ends early, and never more.
func TestCodecsTruncated(t *testing.T) {
	want := bytes.Repeat([]byte("abcdefgh1"), 8000)
	for _, codec := range codecs {
		packed := compress(nil, want, codec, 0, 2)
		s := new(scratch)
		for n := range len(packed) {
			if err := s.decompress(packed[:n], codec, 2, 0); err == nil && len(s.buf) >= len(want) {
				t.Errorf("%v: %d of %d bytes suffice", codec, n, len(packed))
			}
		}
	}
}

// A bomb must cost neither memory nor time in relation to what it would unpack to.
func TestDecompressionBombs(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 16<<20)
	bombs := map[string]struct {
		codec Codec
		bytes []byte
	}{
		"gzip":                 {Gzip, compress(nil, zeros, Gzip, 0, 2)},
		"snappy":               {Snappy, compress(nil, zeros, Snappy, 0, 2)},
		"snappy bare":          {Snappy, snappy.Encode(nil, zeros)},
		"snappy claims":        {Snappy, binary.AppendUvarint(nil, 1<<32-1)},
		"snappy framed claims": {Snappy, append([]byte(xerialHeader), 0x7f, 0xff, 0xff, 0xff, 0)},
		"lz4":                  {LZ4, compress(nil, zeros, LZ4, 0, 2)},
		"zstd":                 {Zstd, compress(nil, zeros, Zstd, 0, 2)},
		"zstd many frames":     {Zstd, bytes.Repeat(compress(nil, zeros[:limit/2], Zstd, 0, 2), 5)},
		"zstd claims":          {Zstd, unhex("28b52ffde0ffffffff00000000010000")},
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			s := new(scratch)
			if err := s.decompress(bomb.bytes, bomb.codec, 2, limit); err == nil {
				t.Error("got no error")
			}
			if cap(s.buf) > 4*limit {
				t.Errorf("got a buffer of %d bytes with a limit of %d", cap(s.buf), limit)
			}
		})
	}
	for _, codec := range codecs {
		b := plain(BuilderOptions{Codec: codec}, 1, 2*limit)
		for _, err := range b.RecordsMax(limit) {
			if !errors.Is(err, ErrDecompressedTooLarge) || !errors.Is(err, ErrInvalidRecord) {
				t.Errorf("%v: got %v, want ErrDecompressedTooLarge", codec, err)
			}
		}
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestSnappyFramings(t *testing.T) {
	a, b := bytes.Repeat([]byte("first "), 9000), []byte("second")
	f := func(name string, packed, want []byte) {
		t.Helper()
		s := new(scratch)
		if err := s.decompress(packed, Snappy, 2, 0); err != nil || !bytes.Equal(s.buf, want) {
			t.Errorf("%s: got %d bytes and %v, want %d bytes", name, len(s.buf), err, len(want))
		}
	}
	f("bare block", snappy.Encode(nil, a), a)
	f("framed", compress(nil, a, Snappy, 0, 2), a)
	f("joined streams", slices.Concat(compress(nil, a, Snappy, 0, 2), compress(nil, b, Snappy, 0, 2)), slices.Concat(a, b))
	f("frame without blocks", []byte(xerialHeader), nil)

	refuse := func(name string, packed []byte) {
		t.Helper()
		if err := new(scratch).decompress(packed, Snappy, 2, 0); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	refuse("nothing", nil)
	refuse("cut header", []byte(xerialHeader[:10]))
	refuse("cut length", append([]byte(xerialHeader), 0, 0))
	refuse("negative length", append([]byte(xerialHeader), 0xff, 0xff, 0xff, 0xff))
	// S2 repeats the last offset where Snappy has none to name. Java could not read it.
	refuse("s2 repeat", unhex("10"+"0c61626364"+"0104"+"0100"))
}

func TestGzipMembers(t *testing.T) {
	first, second := compress(nil, []byte("first"), Gzip, 0, 2), compress(nil, []byte("second"), Gzip, 0, 2)
	f := func(name string, packed []byte, want string) {
		t.Helper()
		s := new(scratch)
		if err := s.decompress(packed, Gzip, 2, 0); err != nil || string(s.buf) != want {
			t.Errorf("%s: got %q and %v, want %q", name, s.buf, err, want)
		}
	}
	f("one", first, "first")
	f("two", slices.Concat(first, second), "firstsecond")
	f("garbage behind", slices.Concat(first, make([]byte, 20)), "first")

	for _, packed := range [][]byte{nil, make([]byte, 20), first[:len(first)-1], first[:12]} {
		if err := new(scratch).decompress(packed, Gzip, 2, 0); err == nil {
			t.Errorf("%x: got no error", packed)
		}
	}
}

func TestLZ4Frames(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 30_000)
	write := func(options ...lz4.Option) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(options...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	f := func(name string, frame []byte, magic int8, ok bool) {
		t.Helper()
		s := new(scratch)
		err := s.decompress(frame, LZ4, magic, 0)
		if ok && (err != nil || !bytes.Equal(s.buf, want)) {
			t.Errorf("%s: got %d bytes and %v, want %d bytes", name, len(s.buf), err, len(want))
		}
		if !ok && err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	changed := func(frame []byte, position int, xor byte) []byte {
		frame = bytes.Clone(frame)
		frame[position] ^= xor
		return frame
	}
	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
		f("block size", write(lz4.BlockSizeOption(size)), 2, true)
	}
	checked := write(lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(want))))
	f("all options", checked, 2, true)
	f("block changed", changed(checked, 30, 1), 2, false)
	f("content checksum is not looked at", changed(checked, len(checked)-1, 1), 2, true)
	f("cut content checksum", checked[:len(checked)-1], 2, false)
	f("cut end mark", compress(nil, want, LZ4, 0, 2)[:20], 2, false)

	frame := compress(nil, want, LZ4, 0, 2)
	f("bytes behind", append(bytes.Clone(frame), 1, 2, 3), 2, true)
	f("wrong header checksum", changed(frame, 6, 1), 2, false)
	f("wrong header checksum, v0", changed(frame, 6, 1), 0, true)
	f("as v0 writes it", compress(nil, want, LZ4, 0, 0), 2, false)
	f("magic", changed(frame, 0, 1), 2, false)
	f("version", changed(frame, 4, 0x80), 0, false)
	f("linked blocks", changed(frame, 4, lz4FlagIndependent), 0, false)
	f("reserved flag", changed(frame, 4, 1), 0, false)
	f("reserved size", changed(frame, 5, 1), 0, false)
	f("size too small", changed(frame, 5, 0x70), 0, false)
}

func TestXXH32(t *testing.T) {
	f := func(in string, want uint32) {
		t.Helper()
		if got := xxh32([]byte(in)); got != want {
			t.Errorf("%q: got %08x, want %08x", in, got, want)
		}
	}
	f("", 0x02cc5d05)
	f("a", 0x550d7456)
	f("abc", 0x32d153ff)
	f("Nobody inspects the spammish repetition", 0xe2293b2f)
}

func TestCodecNames(t *testing.T) {
	for codec, want := range map[Codec]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd", 7: "unknown"} {
		if got := codec.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if err := new(scratch).decompress([]byte{1}, 5, 2, 0); !errors.Is(err, ErrUnsupportedCompression) {
		t.Errorf("got %v, want ErrUnsupportedCompression", err)
	}
}
