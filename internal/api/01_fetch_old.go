package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// Fetch 0 to 3 knows message formats v0 and v1 only: v2 came with version 4. What these
// clients read is converted. A short stretch of a log is converted at once and answered
// exactly. For a long one a size is promised and the records are converted while they are
// sent, a piece of some batches at a time; what is left of the promise is filled with the
// beginning of a batch that never ends (Kafka's LazyDownConversionRecords). What all of that takes of
// the memory is bounded, see conversions.

const (
	oldWholeMax = 64 << 10  // the longest stretch that is converted at once
	oldReadyMax = 256 << 10 // of all that is converted at once, in one answer
	oldPiece    = 128 << 10 // how much is converted at a time while it is sent
)

// errOldMessages: message.downconversion.enable is false.
var errOldMessages = refuse(kerr.UnsupportedVersion, "the records have a newer message format than this version of Fetch, and the topic does not allow their conversion")

// newestFormat returns the newest message format that clients of a version can read.
func newestFormat(version int16) int8 {
	switch {
	case version < 2:
		return 0
	case version < 4:
		return 1
	}
	return 2
}

// oldRecords are the records of one partition for an old client: ready, or a wire.Body.
type oldRecords struct {
	ctx         context.Context
	conversions *conversions

	batches   batchReader
	converter record.DownConverter
	ready     []byte
	size      int   // of ready, or what is promised
	next      int64 // the offset behind the last batch that was looked at
}

// fetchOld reads for a client before Fetch 4. Where there is nothing but what old formats do not
// have, control records and what compaction left, it reads on behind that.
func (f *fetchWork) fetchOld(ctx context.Context) error {
	deadline := time.Now().Add(f.req.MaxWait)
	for {
		if err := f.s.Replicas.Fetch(ctx, &f.req, f.refs); err != nil {
			return err
		}
		if again := f.convertAll(ctx); !again {
			return nil
		}
		if f.req.MaxWait = time.Until(deadline); f.req.MaxWait <= 0 {
			return nil
		}
	}
}

// convertAll converts what was read. It reports whether there is nothing to answer although
// something was read.
func (f *fetchWork) convertAll(ctx context.Context) (again bool) {
	f.old = f.old[:0]
	ready := 0
	empty := true
	for _, p := range f.refs {
		offset := p.Offset
		o := f.convert(ctx, p, ready)
		f.old = append(f.old, o)
		ready += len(o.ready)
		empty = empty && p.Result.Err == nil && o.size == 0
		again = again || p.Offset > offset
	}
	return again && empty
}

// convert takes the slice of a result and returns what the client gets of it. ready is how
// much of the answer is in memory already.
func (f *fetchWork) convert(ctx context.Context, p *replica.FetchPartition, ready int) (o oldRecords) {
	f.adjust(p)
	r := &p.Result
	if r.Err != nil {
		return o
	}
	log, err := p.Partition().Log()
	if err != nil {
		f.refuse(r, err)
		return o
	}
	config := log.Config()
	if !config.DownConversion && config.MessageFormat > newestFormat(f.version) {
		f.refuse(r, errOldMessages)
		return o
	}
	for {
		if r.Read.Slice.Size() == 0 && !f.readBatch(log, p) {
			return o
		}
		o = oldRecords{ctx: ctx, conversions: f.s.conversions, batches: batchReader{slice: r.Read.Slice}, converter: record.DownConverter{
			Magic: newestFormat(f.version), Start: p.Offset, MaxDecompressed: config.MaxDecompressedMessageBytes,
		}}
		r.Read.Slice = segment.Slice{}
		if err := f.s.conversions.inTurn(ctx, func() error { return o.begin(f.hardMax(p), ready) }); err != nil {
			o.Release()
			f.refuse(r, oldError(err))
			return oldRecords{}
		}
		f.conversions += o.converter.Converted
		p.Partition().Stats().Add(replica.FetchConversions, o.converter.Converted)
		if o.size > 0 || o.next <= p.Offset {
			return o
		}
		p.Offset = o.next // nothing for old clients here
	}
}

// readBatch reads when there was nothing in the result: the first batch may have been too
// large as it is, and its messages may be not; or the batches before were nothing for old
// clients. It reports whether there is something now.
func (f *fetchWork) readBatch(log *commitlog.Log, p *replica.FetchPartition) bool {
	r := &p.Result
	if p.MaxBytes <= 0 || p.Offset >= r.Read.Offsets.HighWatermark {
		return false
	}
	if r.Read, r.Err = log.Read(p.Offset, p.MaxBytes, commitlog.ReadUncommitted, segment.WholeFirst); r.Err != nil {
		return false
	}
	return r.Read.Slice.Size() > 0
}

// hardMax returns how many bytes a partition gets at most. Up to version 2 that cuts a
// message that is larger, for the client to find out and to ask for more.
func (f *fetchWork) hardMax(p *replica.FetchPartition) int {
	if f.version < 3 {
		return max(p.MaxBytes, 0)
	}
	return fetchSizeMax
}

// fetchSizeMax is more than any partition gets.
const fetchSizeMax = 1<<31 - 1

// oldError tells what an old client may know of a failed conversion.
func oldError(err error) error {
	switch {
	case errors.Is(err, record.ErrUnsupportedCompression):
		return record.ErrUnsupportedCompression
	case errors.Is(err, record.ErrInvalidRecord):
		return record.ErrCorrupt // old clients do not know INVALID_RECORD
	}
	return err
}

// begin converts what decides on the answer: all of a short slice, or so much of a long one
// that a size can be promised that the first message fits in.
func (o *oldRecords) begin(hardMax, ready int) error {
	size := o.batches.slice.Size()
	whole := size <= oldWholeMax && ready < oldReadyMax
	limit := 1
	if whole {
		limit = min(max(hardMax, 1), oldReadyMax)
	}
	b, err := o.convert(getOldBuffer(0), limit, limit)
	defer putOldBuffer(b)
	if err != nil && len(b) == 0 {
		return err // otherwise the next fetch begins there
	}
	length := min(len(b), hardMax)
	if length == 0 || whole && o.conversions.ready.TryAcquire(int64(length)) {
		o.ready = append(o.ready, b[:length]...)
		o.size = length
		o.batches.end()
		return nil
	}
	o.size = min(max(size, len(b)), hardMax)
	o.batches.rewind()
	return nil
}

// convert appends to dst until it has limit bytes or the batches end. No more than
// limitOfAll bytes of a single batch are of use.
func (o *oldRecords) convert(dst []byte, limit, limitOfAll int) ([]byte, error) {
	for len(dst) < limit {
		b, err := o.batches.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return dst, err
		}
		o.next = b.NextOffset()
		if dst, err = o.converter.Append(dst, b, limitOfAll); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// promised reports whether the records have to be made yet.
func (o *oldRecords) promised() bool { return len(o.ready) < o.size }

// Size returns how many bytes the partition's records have in the answer.
func (o *oldRecords) Size() int { return o.size }

// Release gives the slice and the memory back.
func (o *oldRecords) Release() {
	o.batches.end()
	if len(o.ready) > 0 {
		o.conversions.ready.Release(int64(len(o.ready)))
		o.ready = nil
	}
}

// WriteTo writes what is ready, or converts and writes piece after piece. A batch that cannot be
// converted ends the records: the client will ask for it next and get its error.
func (o *oldRecords) WriteTo(w io.Writer) (int64, error) {
	if !o.promised() {
		n, err := w.Write(o.ready)
		return int64(n), err
	}
	held := share{budget: o.conversions.sending}
	defer held.release()
	defer o.batches.forget() // other records of the answer may wait for the memory next
	left := o.size
	for left > 0 {
		if need := 2 * o.batches.nextBytes(); need > held.size {
			held.release()
			o.batches.forget()
			if err := held.acquire(o.ctx, need); err != nil {
				return int64(o.size - left), err
			}
		}
		n, more, err := o.writePiece(w, &held, left)
		if left -= n; err != nil {
			return int64(o.size - left), err
		}
		if !more {
			break
		}
	}
	err := writeFiller(w, left)
	return int64(o.size), err
}

// writePiece converts and writes some batches, of which left bytes are of use. more says that there
// may be others behind them.
func (o *oldRecords) writePiece(w io.Writer, held *share, left int) (n int, more bool, err error) {
	piece := getOldBuffer(oldPiece)
	defer func() { putOldBuffer(piece) }()
	var bad error
	err = o.conversions.inTurn(o.ctx, func() error {
		piece, bad = o.convert(piece, min(oldPiece, left), left)
		return nil
	})
	if err == nil && bad != nil && !isBad(bad) {
		err = bad
	}
	if err != nil {
		return 0, false, err
	}
	n, err = held.write(w, piece[:min(len(piece), left)])
	return n, n > 0 && bad == nil, err
}

// isBad reports whether an error is about the contents of a batch, not about reading it.
func isBad(err error) bool {
	return errors.Is(err, record.ErrCorrupt) || errors.Is(err, record.ErrInvalidRecord) || errors.Is(err, record.ErrUnsupportedCompression)
}

// zeros is what fills an answer.
var zeros [32 << 10]byte

// writeFiller writes what readers take for the beginning of a batch.
func writeFiller(w io.Writer, size int) error {
	head := record.Filler(size)
	for piece := head[:min(size, len(head))]; size > 0; piece = zeros[:min(size, len(zeros))] {
		n, err := w.Write(piece)
		if err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// A batchReader reads the batches of a slice one after the other.
type batchReader struct {
	slice    segment.Slice
	position int    // in the slice, of the next batch
	buf      []byte // of the slice, from bufAt on
	bufAt    int
}

// rewind begins anew, and holds no memory until then.
func (r *batchReader) rewind() {
	r.forget()
	r.position, r.bufAt = 0, 0
}

// forget gives the memory back, and reads again where that is necessary.
func (r *batchReader) forget() {
	putOldBuffer(r.buf)
	r.buf, r.bufAt = nil, r.position
}

// end gives the memory and the slice back.
func (r *batchReader) end() {
	r.rewind()
	r.slice.Release()
	r.slice = segment.Slice{}
}

// nextBytes returns how much next is going to read, or has: oldPiece, or a batch that is longer.
func (r *batchReader) nextBytes() int64 {
	var head [record.LogOverhead]byte
	if _, err := r.slice.ReadAt(head[:], int64(r.position)); err != nil {
		return oldPiece // next will meet the error
	}
	size := int64(int32(binary.BigEndian.Uint32(head[8:]))) + record.LogOverhead
	return max(oldPiece, min(size, int64(r.slice.Size()-r.position)))
}

// next returns the next batch, which is valid until the one after. At the end, also before
// a batch that the end of the slice cuts, the error is io.EOF.
func (r *batchReader) next() (record.Batch, error) {
	for {
		have := r.buf[r.position-r.bufAt:]
		b, err := record.First(have)
		if err != record.ErrShort {
			r.position += len(b)
			return b, err
		}
		need := record.LogOverhead
		if len(have) >= record.LogOverhead {
			need += int(int32(binary.BigEndian.Uint32(have[8:]))) // First has found it good
		}
		if left := r.slice.Size() - r.position; max(need, len(have)+1) > left {
			return nil, io.EOF
		} else if err := r.fill(min(max(need, oldPiece), left)); err != nil {
			return nil, err
		}
	}
}

// fill reads size bytes from the next batch on.
func (r *batchReader) fill(size int) error {
	if cap(r.buf) < size {
		putOldBuffer(r.buf)
		r.buf = getOldBuffer(size)
	}
	r.buf, r.bufAt = r.buf[:size], r.position
	n, err := r.slice.ReadAt(r.buf, int64(r.position))
	if n == size {
		return nil
	}
	r.buf = r.buf[:n]
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
