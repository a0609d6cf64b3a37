package segment

import (
	"io"
	"sync"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// blockSize is what one read gets behind an index hit. With entries every 4 KiB it nearly
// always has the batch that is looked for.
const blockSize = 16 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// A scanner walks over the headers of batches, front to back. It reads blocks, and single
// headers behind a batch that is larger than a block. It does not allocate; the caller calls
// release at the end.
type scanner struct {
	file  vfs.File
	limit int64 // the file is taken to end here
	block *[blockSize]byte
	start int64 // position of the first byte in block
	n     int   // bytes in block
	large bool  // the last batch was larger than a block

	damage *damageList // to pass by, or nil
}

func (s *Segment) scanner(f vfs.File) scanner {
	return scanner{file: f, limit: s.size.Load(), damage: s.health.damage.Load()}
}

func (sc *scanner) release() {
	if sc.block != nil {
		blocks.Put(sc.block)
		sc.block = nil
	}
}

// at returns the frame at a position. The error is io.EOF at the limit, errTorn when the batch
// goes beyond it, a frameError when there is no batch; others come from reading.
func (sc *scanner) at(position int64) (frame, error) {
	left := sc.limit - position
	if left <= 0 {
		return frame{}, io.EOF
	}
	if sc.damage != nil {
		if d, ok := sc.damage.at(position); ok {
			return d.frame(), nil
		}
	}
	head := min(left, record.HeaderSize)
	if position < sc.start || position+head > sc.start+int64(sc.n) {
		if err := sc.fill(position, left); err != nil {
			return frame{}, err
		}
	}
	f, err := parseFrame(sc.block[position-sc.start:sc.n], position, left)
	sc.large = f.size > blockSize
	return f, err
}

func (sc *scanner) fill(position, left int64) error {
	if sc.block == nil {
		sc.block = blocks.Get().(*[blockSize]byte)
	}
	want := min(left, blockSize)
	if sc.large {
		want = min(left, record.HeaderSize)
	}
	n, err := sc.file.ReadAt(sc.block[:want], position)
	sc.start, sc.n = position, n
	if int64(n) < want {
		if err == io.EOF { // cut by a truncation since the limit was taken
			return errTorn
		}
		return err
	}
	return nil
}
