package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
	"sync"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

const (
	// readSize is what one read of a file gets. It fits in the second level cache, so that
	// whoever looks at the bytes at once finds them there.
	readSize = 128 << 10

	// hugeBatch is the size from which on the checksum is computed before memory is taken
	// for a batch: a length that large is most often damage.
	hugeBatch = 16 << 20

	// minFrame are the bytes up to the format's number.
	minFrame = 17
)

// A Span is a stretch of a file of batches: one batch, or bytes that are none.
type Span struct {
	Position, End int64
	Batch         record.Batch // nil if the bytes are no batch; valid until the next step
	Err           error        // nil for a good batch
	Records       error        // what is wrong with its records; see CheckRecords
}

// A Scanner walks a file of batches from front to back. Behind bytes that are no batch it
// goes on at the next good one. It reads ahead into one buffer.
type Scanner struct {
	file     vfs.File
	size     int64 // of the file when it was opened
	position int64 // of the next span
	base     int64 // smallest offset that may occur
	last     int64 // last offset seen, base-1 before the first

	buf   []byte
	start int64 // position of buf[0]

	records bool                // of good v2 batches are checked as well
	at      record.Verification // of the batch that batchAt was asked for last

	// searched counts the bytes whose checksum was computed in search of a good batch. It is
	// bounded, or a file made for it would take for ever.
	searched int64
}

// OpenScanner opens a file of batches. base is the smallest offset that may occur.
func OpenScanner(fsys vfs.FS, path string, base int64) (*Scanner, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s := &Scanner{file: f, size: size, base: base, last: base - 1}
	if b, ok := buffers.Get().(*[]byte); ok {
		s.buf = (*b)[:0]
	}
	return s, nil
}

// CheckRecords has the records of good v2 batches checked as well, while their bytes are in the cache.
func (s *Scanner) CheckRecords() { s.records = true }

// Size is that of the file when it was opened or read again, or the limit.
func (s *Scanner) Size() int64 { return s.size }

// Position is where the next span begins.
func (s *Scanner) Position() int64 { return s.position }

// Limit cuts the file off behind a number of bytes, and reports whether it had more.
func (s *Scanner) Limit(size int64) bool {
	cut := size < s.size
	s.size = min(s.size, size)
	return cut
}

// Grown reports whether somebody has appended to the file since its size was taken.
func (s *Scanner) Grown() bool {
	size, err := s.file.Size()
	return err == nil && size > s.size
}

// Reread takes the size of the file anew and goes back to a position.
func (s *Scanner) Reread(position int64) error {
	size, err := s.file.Size()
	if err != nil {
		return err
	}
	s.size, s.position, s.buf = size, position, s.buf[:0]
	return nil
}

// buffers are those of scanners that were closed, each most often for one segment.
var buffers sync.Pool

// Close ends the life of all batches that the scanner has returned.
func (s *Scanner) Close() error {
	if cap(s.buf) > 0 && cap(s.buf) <= hugeBatch {
		buffers.Put(&s.buf)
	}
	return s.file.Close()
}

// Next returns the next span, or io.EOF behind the last one. Other errors are those of
// reading.
func (s *Scanner) Next() (Span, error) {
	if s.position >= s.size {
		return Span{}, io.EOF
	}
	b, bad, err := s.batchAt(s.position)
	if err != nil {
		return Span{}, err
	}
	sp := Span{Position: s.position, Batch: b, Err: bad}
	switch {
	case bad == nil:
		sp.End = sp.Position + int64(len(b))
		s.last = b.LastOffset()
		if s.records && b.Magic() == 2 {
			sp.Records = s.at.Records(b, record.DefaultMaxDecompressed)
		}
	case b != nil && s.credible(sp.Position+int64(len(b))):
		sp.End = sp.Position + int64(len(b))
		sp.Batch, err = s.bytes(sp.Position, len(b)) // the look ahead may have moved it
	default:
		sp.Batch = nil
		sp.End, err = s.search(s.position + 1)
	}
	s.position = sp.End
	return sp, err
}

// batchAt returns the batch at a position. bad says what is wrong; the batch is there all the
// same if its frame makes sense.
func (s *Scanner) batchAt(position int64) (b record.Batch, bad, err error) {
	left := s.size - position
	head, err := s.bytes(position, int(min(left, record.HeaderSize)))
	if err != nil {
		return nil, nil, err
	}
	size, bad := frame(head, left)
	if bad != nil {
		return nil, bad, nil
	}
	if size > hugeBatch {
		if bad, err = s.verifyHuge(position, size); bad != nil || err != nil {
			return nil, bad, err
		}
	}
	s.at = record.Verification{}
	for {
		b := record.Batch(s.here(position, size))
		s.at.More(b)
		if len(b) == size {
			return b, s.at.CRC(b), nil
		}
		if err := s.more(position, size); err != nil {
			return nil, nil, err
		}
	}
}

// frame returns the size of the batch that head begins with. left is what the file has.
func frame(head []byte, left int64) (size int, err error) {
	if left < minFrame {
		return 0, fmt.Errorf("%d bytes are too few for a batch%s", left, zeros(head))
	}
	length := int64(int32(binary.BigEndian.Uint32(head[8:])))
	magic := head[16]
	least := int64(14)
	switch magic {
	case 1:
		least = 22
	case 2:
		least = record.HeaderSize - record.LogOverhead
	}
	switch {
	case length < least && length == 0 && magic == 0:
		return 0, fmt.Errorf("no batch%s", zeros(head))
	case magic > 2:
		return 0, fmt.Errorf("unknown magic %d", int8(magic))
	case length < least:
		return 0, fmt.Errorf("batch length %d is below %d", length, least)
	case record.LogOverhead+length > left:
		return 0, fmt.Errorf("batch of %d bytes is torn: the file ends after %d", record.LogOverhead+length, left)
	}
	return int(record.LogOverhead + length), nil
}

func zeros(b []byte) string {
	for _, c := range b {
		if c != 0 {
			return ""
		}
	}
	return ": zeros"
}

// bytes returns n bytes of the file, which has them. They are valid until the next call.
func (s *Scanner) bytes(position int64, n int) ([]byte, error) {
	for {
		if b := s.here(position, n); len(b) == n {
			return b, nil
		}
		if err := s.more(position, n); err != nil {
			return nil, err
		}
	}
}

// here returns those of n bytes that are in the buffer, from the first one on.
func (s *Scanner) here(position int64, n int) []byte {
	skip := position - s.start
	if skip < 0 || skip >= int64(len(s.buf)) {
		return nil
	}
	end := min(skip+int64(n), int64(len(s.buf)))
	return s.buf[skip:end:end]
}

// more reads on behind those of n bytes that are in the buffer.
func (s *Scanner) more(position int64, n int) error {
	kept := s.here(position, len(s.buf))
	if position+int64(n) > s.start+int64(cap(s.buf)) || len(kept) == 0 {
		if cap(s.buf) < n {
			s.buf = make([]byte, 0, n+readSize)
		}
		s.buf = s.buf[:copy(s.buf[:cap(s.buf)], kept)]
		s.start = position
	}
	end := s.start + int64(len(s.buf))
	ahead := s.size - end
	if n > readSize { // to the header behind it: what is more would be moved to the front
		ahead = min(ahead, position+int64(n)+record.HeaderSize-end)
	}
	piece := s.buf[len(s.buf):cap(s.buf)]
	piece = piece[:min(int64(len(piece)), readSize, ahead)]
	got, err := s.file.ReadAt(piece, end)
	s.buf = s.buf[:len(s.buf)+got]
	switch {
	case got == len(piece):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%s: cut while it was read: %w", s.file.Name(), io.ErrUnexpectedEOF)
	}
	return err
}

// verifyHuge computes the checksum of a batch piece by piece.
func (s *Scanner) verifyHuge(position int64, size int) (bad, err error) {
	head, err := s.bytes(position, record.HeaderSize)
	if err != nil {
		return nil, err
	}
	var sum hash.Hash32 = crc32.NewIEEE()
	skip := 16
	if head[16] == 2 {
		sum, skip = crc32c.New(), 21
	}
	want := binary.BigEndian.Uint32(head[skip-4:])
	for from, end := position+int64(skip), position+int64(size); from < end; {
		b, err := s.bytes(from, int(min(readSize, end-from)))
		if err != nil {
			return nil, err
		}
		sum.Write(b)
		from += int64(len(b))
	}
	if got := sum.Sum32(); got != want {
		return fmt.Errorf("crc %08x, want %08x", got, want), nil
	}
	return nil, nil
}

// credible reports whether a batch may end at a position: a good one or the end follows.
func (s *Scanner) credible(position int64) bool {
	if position == s.size {
		return true
	}
	b, bad, err := s.batchAt(position)
	return err == nil && bad == nil && s.fits(b.BaseOffset())
}

func (s *Scanner) fits(offset int64) bool {
	return offset > s.last && offset-s.base <= math.MaxInt32
}

// search returns the position of the first good batch from a position on, or the end of the
// file.
func (s *Scanner) search(from int64) (int64, error) {
	for from < s.size {
		window, err := s.bytes(from, int(min(readSize, s.size-from)))
		if err != nil {
			return 0, err
		}
		n := len(window) - minFrame + 1
		for i := 0; i < n; i++ {
			if window[i+16] > 2 || !s.candidate(window[i:], s.size-from-int64(i)) {
				continue
			}
			position := from + int64(i)
			b, bad, err := s.batchAt(position)
			if err != nil || bad == nil {
				return position, err
			}
			if s.searched += int64(len(b)); s.searched > max(s.size, 64<<20) {
				return s.size, nil
			}
			if window, err = s.bytes(from, len(window)); err != nil {
				return 0, err
			}
		}
		if n <= 0 {
			break
		}
		from += int64(n)
	}
	return s.size, nil
}

func (s *Scanner) candidate(head []byte, left int64) bool {
	if !s.fits(int64(binary.BigEndian.Uint64(head))) {
		return false
	}
	_, err := frame(head, left)
	return err == nil
}
