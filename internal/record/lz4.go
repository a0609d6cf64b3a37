package record

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The LZ4 frame format, as far as Kafka uses it:
//
//	+------------+-----+----+--------------------+----+---------------------------------+
//	| 04 22 4d 18| FLG | BD | content size (opt) | HC | blocks ... | 0 | checksum (opt) |
//	+------------+-----+----+--------------------+----+---------------------------------+
//
// FLG has the version and which options there are, BD how large a block may be, and HC is a
// checksum of what is between magic and itself. A block is its length as little-endian i32,
// the top bit set when stored as it is, its bytes, and a checksum if FLG says so.
const (
	lz4Magic = "\x04\x22\x4d\x18"

	lz4FlagVersion         = 0xc0
	lz4Version             = 0x40
	lz4FlagIndependent     = 0x20
	lz4FlagBlockChecksum   = 0x10
	lz4FlagContentSize     = 0x08
	lz4FlagContentChecksum = 0x04
	lz4FlagReserved        = 0x03

	lz4BD64KiB    = 0x40
	lz4BlockSize  = 64 << 10
	lz4StoredFlag = 1 << 31
)

var (
	errLZ4Header   = errors.New("lz4: bad frame header")
	errLZ4HC       = errors.New("lz4: wrong checksum of the frame header")
	errLZ4Block    = errors.New("lz4: block length does not fit")
	errLZ4Checksum = errors.New("lz4: wrong checksum of a block")
)

// readLZ4 appends the content of a frame. With brokenHC the header's checksum is not
// looked at: messages of format v0 have a wrong one. The checksum of the whole content is
// not looked at either; the batch has a better one. What follows the frame is ignored.
func readLZ4(dst, src []byte, limit int, brokenHC bool) ([]byte, error) {
	flags, blockMax, src, err := cutLZ4Header(src, brokenHC)
	if err != nil {
		return dst, err
	}
	for {
		if len(src) < 4 {
			return dst, errLZ4Block
		}
		length := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if length == 0 {
			break
		}
		size := int(length &^ lz4StoredFlag)
		if size > len(src) || size > blockMax {
			return dst, errLZ4Block
		}
		block := src[:size]
		src = src[size:]
		if flags&lz4FlagBlockChecksum != 0 {
			if len(src) < 4 || binary.LittleEndian.Uint32(src) != xxh32(block) {
				return dst, errLZ4Checksum
			}
			src = src[4:]
		}
		if dst, err = appendLZ4Block(dst, block, length&lz4StoredFlag != 0, blockMax); err != nil {
			return dst, err
		}
		if len(dst) > limit {
			return dst, ErrDecompressedTooLarge
		}
	}
	if flags&lz4FlagContentChecksum != 0 && len(src) < 4 {
		return dst, errLZ4Checksum
	}
	return dst, nil
}

func cutLZ4Header(src []byte, brokenHC bool) (flags byte, blockMax int, rest []byte, err error) {
	const shortest = len(lz4Magic) + 3
	if len(src) < shortest || string(src[:len(lz4Magic)]) != lz4Magic {
		return 0, 0, nil, errLZ4Header
	}
	flags, bd := src[4], src[5]
	end := 6
	if flags&lz4FlagContentSize != 0 {
		end += 8
	}
	if flags&lz4FlagVersion != lz4Version || flags&lz4FlagIndependent == 0 || flags&lz4FlagReserved != 0 ||
		bd&0x8f != 0 || bd < lz4BD64KiB || end >= len(src) {
		return 0, 0, nil, errLZ4Header
	}
	if !brokenHC && src[end] != byte(xxh32(src[len(lz4Magic):end])>>8) {
		return 0, 0, nil, errLZ4HC
	}
	return flags, lz4BlockSize << (2 * (bd>>4 - 4)), src[end+1:], nil
}

func appendLZ4Block(dst, block []byte, stored bool, blockMax int) ([]byte, error) {
	if stored {
		return append(dst, block...), nil
	}
	// The densest block has 255 bytes from one, so a small one needs no room for 4 MiB.
	dst = slices.Grow(dst, min(blockMax, 255*len(block)+64))
	n, err := lz4.UncompressBlock(block, dst[len(dst):min(cap(dst), len(dst)+blockMax)])
	return dst[:len(dst)+max(n, 0)], err
}

// An lz4Compressor has the tables of both ways to compress and room for a block.
type lz4Compressor struct {
	fast lz4.Compressor
	high *lz4.CompressorHC // made when first needed
	room [lz4BlockSize]byte
}

var lz4Compressors = sync.Pool{New: func() any { return new(lz4Compressor) }}

// appendLZ4 appends src as a frame like Kafka's: independent blocks of 64 KiB, no checksum
// but the header's. Kafka 0.8 computed that over the magic bytes too. All readers of
// format v0 expect it or ignore it, so brokenHC writes it like that.
func appendLZ4(dst, src []byte, level int, brokenHC bool) []byte {
	dst = append(dst, lz4Magic...)
	dst = append(dst, lz4Version|lz4FlagIndependent, lz4BD64KiB)
	hashed := dst[len(dst)-2:]
	if brokenHC {
		hashed = dst[len(dst)-2-len(lz4Magic):]
	}
	dst = append(dst, byte(xxh32(hashed)>>8))
	c := lz4Compressors.Get().(*lz4Compressor)
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		if packed := c.compress(block, level); len(packed) > 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(packed)))
			dst = append(dst, packed...)
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(block))|lz4StoredFlag)
			dst = append(dst, block...)
		}
	}
	lz4Compressors.Put(c)
	return append(dst, 0, 0, 0, 0)
}

// compress returns the block in fewer bytes, or nothing if that cannot be. The default
// level is the fast one, as with Kafka, in spite of its number.
func (c *lz4Compressor) compress(block []byte, level int) []byte {
	room := c.room[:len(block)-1]
	var n int
	var err error
	if level == 0 || level == lz4DefaultLevel {
		n, err = c.fast.CompressBlock(block, room)
	} else {
		if c.high == nil {
			c.high = new(lz4.CompressorHC)
		}
		c.high.Level = lz4.Level1 << (min(max(level, 1), 9) - 1)
		n, err = c.high.CompressBlock(block, room)
	}
	if err != nil {
		return nil
	}
	return room[:n]
}
