package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// DefaultMaxDecompressed bounds what the records of one batch may take decompressed, if
// nothing else is asked for. Kafka has no bound; a batch of 1 MiB, which is as large as
// brokers accept without being told otherwise, may be compressed 128 fold.
const DefaultMaxDecompressed = 128 << 20

// scratchMax is the largest buffer that is kept for the next batch.
const scratchMax = 4 << 20

// A scratch is a buffer for decompressed records.
type scratch struct{ buf []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release puts the buffer back. No view of it may be used any more.
func (s *scratch) release() {
	if cap(s.buf) <= scratchMax {
		scratches.Put(s)
	}
}

// decompress fills the buffer with the content of src. It fails with
// ErrUnsupportedCompression, ErrDecompressedTooLarge when the content has more than limit
// bytes, or with what the decoder says. Little more than limit is allocated in any case.
func (s *scratch) decompress(src []byte, codec Codec, magic int8, limit int) (err error) {
	if limit <= 0 {
		limit = DefaultMaxDecompressed
	}
	dst := s.buf[:0]
	switch codec {
	case Gzip:
		dst, err = gunzip(dst, src, limit)
	case Snappy:
		dst, err = unsnappy(dst, src, limit)
	case LZ4:
		dst, err = readLZ4(dst, src, limit, magic == 0)
	case Zstd:
		dst, err = unzstd(dst, src, limit)
	default:
		return fmt.Errorf("%w: codec %d", ErrUnsupportedCompression, codec)
	}
	if dst != nil {
		s.buf = dst
	}
	if err == nil && len(dst) > limit {
		err = ErrDecompressedTooLarge
	}
	return err
}

// A gunzipper is a gzip reader with its source, so that both are reused together.
type gunzipper struct {
	src bytes.Reader
	gzip.Reader
}

var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

func gunzip(dst, src []byte, limit int) ([]byte, error) {
	z := gunzippers.Get().(*gunzipper)
	defer gunzippers.Put(z)
	z.src.Reset(src)
	if err := z.Reset(&z.src); err != nil {
		return dst, unexpectedEOF(err)
	}
	dst = slices.Grow(dst, min(2*len(src), limit))
	for {
		if len(dst) > limit {
			return dst, ErrDecompressedTooLarge
		}
		dst = slices.Grow(dst, 512)
		n, err := z.Read(dst[len(dst):min(cap(dst), limit+1)])
		dst = dst[:len(dst)+n]
		// Members may follow each other. What follows and is none is ignored, as in Java.
		if err == io.EOF || err == gzip.ErrHeader {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// unexpectedEOF keeps io.EOF for readers that reached an end they may reach.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A zstdDecoder is a decoder and the limit it is set to.
type zstdDecoder struct {
	*zstd.Decoder
	limit int
}

// zstdMaxWindow is what level 22, the highest, uses, and the most that Kafka's readers take.
// No window is allocated for it: the content decoded so far is the window.
const zstdMaxWindow = 128 << 20

// unzstd may decode up to twice the limit if there are several frames.
func unzstd(dst, src []byte, limit int) ([]byte, error) {
	coders := zstdNow.Load()
	d, ok := coders.decoders.Get().(*zstdDecoder)
	if !ok {
		d = new(zstdDecoder)
	}
	defer coders.decoders.Put(d)
	if err := d.setLimit(max(limit, zstd.MinWindowSize)); err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, min(4*len(src), limit))
	dst, err := d.DecodeAll(src, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = ErrDecompressedTooLarge
	}
	return dst, err
}

func (d *zstdDecoder) setLimit(limit int) (err error) {
	switch {
	case d.Decoder == nil:
		d.Decoder, err = zstd.NewReader(nil, zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(zstdMaxWindow), zstd.WithDecoderMaxMemory(uint64(limit)))
	case d.limit != limit:
		err = d.ResetWithOptions(nil, zstd.WithDecoderMaxMemory(uint64(limit)))
	}
	d.limit = limit
	return err
}

var (
	errXerialHeader = errors.New("snappy: bad header of the xerial framing")
	errXerialBlock  = errors.New("snappy: block length of the xerial framing does not fit")
	errSnappyLength = errors.New("snappy: block says a length that it cannot have")
)

// unsnappy decodes a payload in xerial framing, which Java's clients write, or a bare block,
// which some others do. The header of the framing may come again between blocks, where
// streams were joined.
func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	if !hasXerialMagic(src) {
		return appendSnappyBlock(dst, src, limit)
	}
	for len(src) > 0 {
		if hasXerialMagic(src) {
			if len(src) < len(xerialHeader) {
				return dst, errXerialHeader
			}
			src = src[len(xerialHeader):]
			continue
		}
		if len(src) < 4 {
			return dst, errXerialBlock
		}
		size := int(int32(binary.BigEndian.Uint32(src)))
		src = src[4:]
		if size < 0 || size > len(src) {
			return dst, errXerialBlock
		}
		var err error
		if dst, err = appendSnappyBlock(dst, src[:size], limit); err != nil {
			return dst, err
		}
		src = src[size:]
	}
	return dst, nil
}

func hasXerialMagic(src []byte) bool { return bytes.HasPrefix(src, []byte(xerialMagic)) }

// appendSnappyBlock appends the content of one block. A block names its length, and the
// densest one has 64 bytes from three: what says more is not believed.
func appendSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return dst, err
	}
	if size > 22*len(block) {
		return dst, errSnappyLength
	}
	if size > limit-len(dst) {
		return dst, ErrDecompressedTooLarge
	}
	dst = slices.Grow(dst, size)
	if _, err := snappy.DecodeStrict(dst[len(dst):len(dst)+size], block); err != nil {
		return dst, err
	}
	return dst[:len(dst)+size], nil
}
