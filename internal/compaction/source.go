package compaction

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A source reads the batches of a segment in chunks, and checks them. What is in quarantine it
// passes by.
type source struct {
	commitlog.CleanSegment
	position int64 // of the next byte to read
	last     int64 // last offset read
	buf      []byte
	size     int // that buf is to have, if no batch is larger
	large    int // from which size on a batch is suspicious

	damaged  bool // something was passed by
	scrubbed bool
}

// open makes the source read another segment from a position on at which a batch begins.
func (r *source) open(s commitlog.CleanSegment, position int64) {
	r.CleanSegment, r.position, r.damaged, r.scrubbed = s, position, false, false
	r.last = s.BaseOffset() - 1
	if len(r.buf) != r.size {
		r.buf = make([]byte, r.size)
	}
}

var (
	errDamaged = errors.New("damaged")
	errOdd     = errors.New("bytes that are no batch, and no damage either")
)

// next returns the next chunk: whole batches one behind the other, valid until the next call,
// each with a right checksum. The error is io.EOF behind the last batch.
func (r *source) next() ([]byte, error) {
	for {
		if err := r.skipDamage(); err != nil {
			return nil, err
		}
		chunk, err := r.read()
		if len(chunk) > 0 || err == io.EOF {
			return chunk, err
		}
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		if err := r.scrub(); err != nil {
			return nil, err
		}
	}
}

// skipDamage goes behind the quarantine that begins at the position.
func (r *source) skipDamage() error {
	for _, d := range r.Damages() {
		if d.Position <= r.position && r.position < d.Position+d.Size {
			r.position, r.damaged = d.Position+d.Size, true
		}
	}
	if r.position >= r.Bytes {
		r.damaged = r.damaged || len(r.Damages()) > 0 // what is lost has no bytes
		return io.EOF
	}
	return nil
}

// scrub lets the segment find out about what was met. It does so once: what is odd then is not
// damage to pass by.
func (r *source) scrub() error {
	if r.scrubbed {
		return &segment.CorruptError{Path: r.Path(segment.LogFile), Position: r.position, Offset: r.last + 1, Err: errOdd}
	}
	r.scrubbed = true
	_, err := r.Scrub(nil)
	return err
}

// read returns the good batches at the position. Without any the error is errDamaged.
func (r *source) read() ([]byte, error) {
	n := int(min(int64(len(r.buf)), r.Bytes-r.position))
	if err := r.fill(n); err != nil {
		return nil, err
	}
	good, err := r.goodBatches(r.buf[:n])
	if good == 0 && err == record.ErrShort {
		size, ok := r.sizeOfBatch(n)
		if !ok {
			return nil, errDamaged
		}
		r.buf = make([]byte, size) // for this segment
		if err := r.fill(size); err != nil {
			return nil, err
		}
		good, err = r.goodBatches(r.buf)
	}
	if good == 0 {
		return nil, errors.Join(errDamaged, err)
	}
	r.position += int64(good)
	return r.buf[:good], nil
}

func (r *source) fill(n int) error {
	err := r.ReadBytes(r.buf[:n], r.position)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// sizeOfBatch returns how long the batch is that n bytes of are in the buffer. It is in the
// file as a whole, and if it is large, other batches behind it say that its length is right.
// (KAFKA-6834: it may be larger than today's max.message.bytes.)
func (r *source) sizeOfBatch(n int) (size int, ok bool) {
	if n < record.LogOverhead {
		return 0, false
	}
	size = record.LogOverhead + int(int32(binary.BigEndian.Uint32(r.buf[8:])))
	if int64(size) > r.Bytes-r.position {
		return 0, false
	}
	return size, size <= r.large || r.scrubbed
}

// goodBatches returns how many bytes of b are batches with right checksums and offsets that
// fit, and what is wrong with what follows.
func (r *source) goodBatches(b []byte) (n int, err error) {
	for n < len(b) {
		batch, err := record.First(b[n:])
		if err == nil {
			err = batch.Verify()
		}
		if err == nil && (batch.LastOffset() <= r.last || batch.LastOffset() < batch.BaseOffset() || batch.LastOffset() >= r.Next) {
			err = fmt.Errorf("offset %d does not fit behind %d", batch.LastOffset(), r.last)
		}
		if err != nil {
			return n, err
		}
		r.last = batch.LastOffset()
		n += len(batch)
	}
	return n, nil
}
