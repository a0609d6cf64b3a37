package faultdir

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A span is a batch in a .log file: its bytes, and the offsets from the end of the batch in front
// of it to its own.
type span struct {
	from, to   int64 // bytes
	base, next int64 // offsets
	batch      record.Batch
}

// spansOf lists the good batches at the beginning of a .log file.
func spansOf(data []byte, base int64) (list []span) {
	for at := int64(0); at < int64(len(data)); {
		b, err := record.First(data[at:])
		if err != nil || b.Verify() != nil {
			return list
		}
		s := span{at, at + int64(b.Size()), base, b.NextOffset(), b}
		list = append(list, s)
		at, base = s.to, s.next
	}
	return list
}

// offsetIn returns the offset in the name of a file, -1 if there is none.
func offsetIn(name string) int64 {
	digits, _, _ := strings.Cut(path.Base(name), ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(digits) < 20 {
		return -1
	}
	return n
}

func segmentName(base int64, ext string) string { return fmt.Sprintf("%020d%s", base, ext) }

// A stretch of offsets, [from, to).
type stretch struct{ from, to int64 }

type stretches []stretch

func (l stretches) has(offset int64) bool {
	for _, s := range l {
		if s.from <= offset && offset < s.to {
			return true
		}
	}
	return false
}
