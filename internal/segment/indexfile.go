package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/gregor-kafka/gregor/vfs"
)

// maxPadding bounds how many bytes behind the last entry are looked at, to tell the zeros of a
// preallocated index from damage. Kafka preallocates 10 MiB by default.
const maxPadding = 256 << 20

// readChunk is a multiple of both entry sizes.
const readChunk = 48 << 10

// An entry is a line of an index file.
type entry[E any] interface {
	comparable
	append(b []byte) []byte
	follows(last E) bool
}

// A layout is how the entries of one kind of index are stored and ordered.
type layout[E entry[E]] struct {
	kind   Kind
	size   int
	parse  func([]byte) E
	before E // what the first entry follows

	// padding says whether zeros behind the last entry are fine. In a time index they are not:
	// the last entry has to be that with the largest timestamp, and is not when Kafka crashed.
	padding bool
}

var (
	offsetLayout = layout[offsetEntry]{IndexFile, offsetEntrySize, parseOffsetEntry, beforeOffsets, true}
	timeLayout   = layout[timeEntry]{TimeIndexFile, timeEntrySize, parseTimeEntry, beforeTimes, false}
)

// decode reads an index file of the given size: all entries that follow each other and that
// accept takes. Behind them there may be zeros, which Kafka leaves when it crashes. Whatever
// should not be there makes sound false: then no entry of the file is to be trusted.
func (l layout[E]) decode(r io.ReaderAt, size int64, accept func(E) bool) (entries []E, sound bool, err error) {
	if size%int64(l.size) != 0 {
		return nil, false, nil
	}
	d := decoder[E]{layout: l, accept: accept, last: l.before}
	chunk := make([]byte, min(size, readChunk))
	for position := int64(0); position < size; position += int64(len(chunk)) {
		chunk = chunk[:min(size-position, readChunk)]
		if _, err := r.ReadAt(chunk, position); err != nil {
			if err == io.EOF {
				return nil, false, nil
			}
			return nil, false, err
		}
		if !d.add(chunk) {
			return nil, false, nil
		}
	}
	return d.finish(), l.padding || d.padding == 0, nil
}

// A decoder goes through the entries, then through the padding.
type decoder[E entry[E]] struct {
	layout[E]
	accept  func(E) bool
	last    E
	entries []E
	padding int64 // bytes
}

func (d *decoder[E]) add(chunk []byte) bool {
	for ; len(chunk) > 0; chunk = chunk[d.size:] {
		if d.padding > 0 {
			d.padding += int64(len(chunk))
			return allZero(chunk) && d.padding <= maxPadding
		}
		e := d.parse(chunk)
		switch {
		case e.follows(d.last) && d.accept(e):
			d.entries = append(d.entries, e)
			d.last = e
		case allZero(chunk[:d.size]):
			d.padding = int64(d.size)
		default:
			return false
		}
	}
	return true
}

// finish returns the entries. A first entry of zeros in front of padding is padding as well;
// alone it can be one: a record with timestamp 0 at the base offset.
func (d *decoder[E]) finish() []E {
	var zero E
	if d.padding > 0 && len(d.entries) == 1 && d.entries[0] == zero {
		return nil
	}
	return d.entries
}

var zeros [readChunk]byte

func allZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }

// load reads the index file of a segment. A missing file is one without entries.
func (l layout[E]) load(s *Segment, accept func(E) bool) (entries []E, found, sound bool, err error) {
	f, err := s.files.open(l.kind, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, true, nil
	}
	if err != nil {
		return nil, false, false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, false, false, err
	}
	entries, sound, err = l.decode(f, size, accept)
	return entries, true, sound, err
}

// store writes entries[from:] at their place in the index file and, with trim, ends the file
// behind the last one. changed says that the file needs a sync.
func (l layout[E]) store(s *Segment, entries []E, from int, trim bool) (changed bool, err error) {
	f, err := s.files.open(l.kind, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, 0, (len(entries)-from)*l.size)
	for _, e := range entries[from:] {
		b = e.append(b)
	}
	if len(b) > 0 {
		changed = true
		if _, err := f.WriteAt(b, int64(from)*int64(l.size)); err != nil {
			return true, err
		}
	}
	if !trim {
		return changed, nil
	}
	size := int64(len(entries)) * int64(l.size)
	have, err := f.Size()
	if err != nil || have <= size {
		return changed, err
	}
	return true, f.Truncate(size)
}

// trimFile truncates a file if it is longer.
func trimFile(f vfs.File, size int64) error {
	have, err := f.Size()
	if err != nil || have <= size {
		return err
	}
	return f.Truncate(size)
}
