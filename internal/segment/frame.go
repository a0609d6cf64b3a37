package segment

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A frame is what the first bytes of a batch tell about it.
type frame struct {
	position     int64
	size         int   // in bytes, all of it inside the file
	base, last   int64 // offsets; of a wrapper base is the last offset too
	maxTimestamp int64
	leaderEpoch  int32
	magic        int8
	wrapper      bool // a compressed set of format v0 or v1
	damaged      bool // no batch but a Damage
}

func (f frame) end() int64 { return f.position + int64(f.size) }

// minFrame is what has to be there to tell the format of a batch; shorter rests of a file are
// torn.
const minFrame = record.LogOverhead + 5

const minLength = 14 // of what the length field counts

// smallest is the size of the smallest batch of each format.
var smallest = [...]int{record.LogOverhead + minLength, record.LogOverhead + 22, record.HeaderSize}

// A frameError says why bytes are not the header of a batch.
type frameError string

func (e frameError) Error() string { return string(e) }

func badFrame(format string, args ...any) error { return frameError(fmt.Sprintf(format, args...)) }

// parseFrame reads the header that b begins with, of a batch of which left bytes are in the
// file. b has at least min(left, record.HeaderSize) bytes. The error is errTorn when
// the batch goes beyond the end, else a frameError.
func parseFrame(b []byte, position, left int64) (frame, error) {
	if left < minFrame {
		return frame{}, errTorn
	}
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if length < minLength {
		return frame{}, badFrame("length %d is below %d", length, minLength)
	}
	magic := int8(b[16])
	if magic < 0 || int(magic) >= len(smallest) {
		return frame{}, badFrame("unknown magic %d", magic)
	}
	size := record.LogOverhead + length
	if least := int64(smallest[magic]); size < least {
		return frame{}, badFrame("size %d is below %d", size, least)
	}
	if size > left {
		return frame{}, errTorn
	}
	h := record.Batch(b)
	f := frame{
		position: position, size: int(size), base: h.BaseOffset(), last: h.LastOffset(),
		maxTimestamp: h.MaxTimestamp(), leaderEpoch: h.LeaderEpoch(),
		magic: magic, wrapper: magic < 2 && h.Codec() != record.None,
	}
	if f.last < f.base {
		return frame{}, badFrame("last offset %d is below the base offset %d", f.last, f.base)
	}
	if f.last == math.MaxInt64 {
		return frame{}, badFrame("last offset %d has none behind it", f.last)
	}
	return f, nil
}
