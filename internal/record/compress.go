package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Levels that the codecs have when none is chosen (KIP-390).
const (
	gzipDefaultLevel = gzip.DefaultCompression
	lz4DefaultLevel  = 9
	zstdDefaultLevel = 3
)

// compress appends src, compressed, to dst. Level 0 is the codec's default; levels out of
// range are those at its end. The magic matters for LZ4, see appendLZ4.
func compress(dst, src []byte, codec Codec, level int, magic int8) []byte {
	switch codec {
	case Gzip:
		return appendGzip(dst, src, level)
	case Snappy:
		return appendXerial(dst, src)
	case LZ4:
		return appendLZ4(dst, src, level, magic == 0)
	case Zstd:
		return appendZstd(dst, src, level)
	default:
		panic(fmt.Sprintf("BUG: compress with codec %d", codec))
	}
}

// gzipWriters keeps idle writers, by level + 1.
var gzipWriters [gzip.BestCompression + 2]sync.Pool

func appendGzip(dst, src []byte, level int) []byte {
	if level == 0 {
		level = gzipDefaultLevel
	}
	level = min(max(level, gzip.DefaultCompression), gzip.BestCompression)
	out := bytes.NewBuffer(dst)
	w, ok := gzipWriters[level+1].Get().(*gzip.Writer)
	if ok {
		w.Reset(out)
	} else {
		w, _ = gzip.NewWriterLevel(out, level) // fails for levels out of range only
	}
	// A bytes.Buffer takes everything, so neither can fail.
	_, _ = w.Write(src)
	_ = w.Close()
	gzipWriters[level+1].Put(w)
	return out.Bytes()
}

// zstdCoders are the coders of zstd that were used before.
type zstdCoders struct {
	// encoders has one per speed that the library knows, made when first needed. They are safe for
	// concurrent use and keep no state between calls.
	encoders [zstd.SpeedBestCompression + 1]struct {
		once sync.Once
		*zstd.Encoder
	}
	decoders sync.Pool // of zstdDecoder
}

var zstdNow atomic.Pointer[zstdCoders]

func init() { ForgetZstd() }

// ForgetZstd lets go of the coders that were used before. They have channels, which are of the bubble of
// testing/synctest that they were made in: outside of it, and in others, they cannot be used. A test calls it when
// its bubble ends.
func ForgetZstd() { zstdNow.Store(new(zstdCoders)) }

func appendZstd(dst, src []byte, level int) []byte {
	if level == 0 {
		level = zstdDefaultLevel
	}
	speed := zstd.EncoderLevelFromZstd(level)
	e := &zstdNow.Load().encoders[speed]
	e.once.Do(func() {
		e.Encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithLowerEncoderMem(true))
	})
	return e.EncodeAll(src, dst)
}

// The framing of the xerial library, which Kafka's clients put around Snappy blocks: a
// header, then blocks with an i32 length in front.
const (
	xerialMagic     = "\x82SNAPPY\x00"
	xerialHeader    = xerialMagic + "\x00\x00\x00\x01\x00\x00\x00\x01" // version, oldest compatible version
	xerialBlockSize = 32 << 10
)

func appendXerial(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(src) > 0 {
		block := src[:min(len(src), xerialBlockSize)]
		src = src[len(block):]
		lengthAt := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		room := snappy.MaxEncodedLen(len(block))
		if cap(dst)-len(dst) < room {
			dst = append(make([]byte, 0, 2*cap(dst)+room), dst...)
		}
		n := len(snappy.Encode(dst[len(dst):len(dst)+room], block))
		dst = dst[:len(dst)+n]
		binary.BigEndian.PutUint32(dst[lengthAt:], uint32(n))
	}
	return dst
}
