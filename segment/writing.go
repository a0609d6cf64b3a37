package segment

import (
	"time"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options say how a Writer makes its files. The zero value is Kafka's default.
type Options struct {
	IndexIntervalBytes int // index.interval.bytes; 0 is 4096
	MaxIndexSize       int // segment.index.bytes; 0 is 10 MiB
}

func config(o Options, readOnly bool) segment.Config {
	if o.IndexIntervalBytes == 0 {
		o.IndexIntervalBytes = 4096
	}
	caches := segment.NewCaches()
	return segment.Config{
		IndexIntervalBytes: o.IndexIntervalBytes, MaxIndexSize: o.MaxIndexSize, ReadOnly: readOnly,
		Files: caches.Files, Indexes: caches.Indexes,
	}
}

// A Writer appends to one segment. It is for one goroutine.
type Writer struct{ segment *segment.Segment }

// Create makes an empty segment and refuses to overwrite one.
func Create(fsys vfs.FS, dir string, base int64, o Options) (*Writer, error) {
	s, err := segment.Create(fsys, dir, base, config(o, false), time.Now())
	if err != nil {
		return nil, err
	}
	return &Writer{s}, nil
}

// Recover takes a segment over to append to it. Every batch is read, the indexes are made anew, and cut says how many
// bytes at the end were no batch and are gone; nothing in front of a good batch is.
func Recover(fsys vfs.FS, dir string, base int64, o Options) (w *Writer, cut int64, err error) {
	s, err := segment.Open(fsys, dir, base, config(o, false))
	if err != nil {
		return nil, 0, err
	}
	cut, err = s.Recover(func(Located) error { return nil }, 1<<63-1, nil)
	if err != nil {
		s.Abandon()
		return nil, 0, err
	}
	return &Writer{s}, cut, nil
}

// NextOffset returns the offset behind the last batch, or the base offset without one.
func (w *Writer) NextOffset() (int64, error) { return w.segment.NextOffset() }

// Size returns how many bytes of batches there are.
func (w *Writer) Size() int64 { return w.segment.Size() }

// IndexFull reports whether an index has no room for another entry, so that it is time for the next segment.
func (w *Writer) IndexFull() bool { return w.segment.IndexFull() }

// Append writes whole batches, with their final offsets, behind the last one in a single write. After an error Size is
// what it was, and so is the file, unless the error matches ErrTorn. The bytes are durable after Flush.
func (w *Writer) Append(set []byte) error { return w.segment.Append(set) }

// AppendAborted adds an aborted transaction to the transaction index, after its marker was appended.
func (w *Writer) AppendAborted(a AbortedTxn) error { return w.segment.AppendAborted(a) }

// Flush makes durable what was appended before the call. After an error the Writer is to be closed.
func (w *Writer) Flush() error { return w.segment.Flush() }

// Close completes the index files, makes all files durable and gives up the descriptors. An error means that the segment
// has to be recovered.
func (w *Writer) Close() error {
	if err := w.segment.MakeIndexFiles(); err != nil {
		w.segment.Abandon()
		return err
	}
	return w.segment.Close()
}
