package offline

import (
	"bytes"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// textSizeMax bounds what is shown of a text file.
const textSizeMax = 300 << 20

// index shows an index file, or what is wrong with it.
func (d *dumper) index(path string, kind fileKind, base int64) error {
	if kind != txnIndexFile && (d.o.IndexSanityCheck || d.o.VerifyIndexOnly) {
		d.heading(path)
		return d.verifyIndex(path, kind, base)
	}
	data, err := readIndex(d.o.FS, path)
	if err != nil {
		return err
	}
	d.heading(path)
	switch kind {
	case offsetIndexFile:
		list, padding := decodeOffsets(data, base)
		for _, e := range list {
			d.entry(path, "offset", e.offset, "position", e.position)
		}
		d.padding(padding)
	case timeIndexFile:
		list, padding := decodeTimes(data, base)
		for _, e := range list {
			d.entry(path, "timestamp", e.timestamp, "offset", e.offset)
		}
		d.padding(padding)
	default:
		list, err := decodeTxns(data)
		for _, a := range list {
			d.entry(path, "version", int64(0), "producerId", a.ProducerID, "firstOffset", a.FirstOffset,
				"lastOffset", a.LastOffset, "lastStableOffset", a.LastStableOffset)
		}
		if err != nil {
			d.warn(fmt.Errorf("%s: %w", path, err))
		}
	}
	return d.out.flushFull()
}

func (d *dumper) padding(size int) {
	if size > 0 && !d.o.JSON {
		d.out.printf("%d bytes of zeros\n", size)
	}
}

// entry shows names and integers, as a line or as an object that also names the file.
func (d *dumper) entry(path string, pairs ...any) {
	b := d.out.b
	if d.o.JSON {
		b = appendString(append(b, `{"file":`...), []byte(path))
	}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		if d.o.JSON {
			b = append(append(append(b, `,"`...), name...), `":`...)
		} else {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(append(b, name...), ": "...)
		}
		b = appendInt(b, pairs[i+1].(int64))
	}
	if d.o.JSON {
		b = append(b, '}')
	}
	d.out.b = append(b, '\n')
}

// verifyIndex shows what Check finds in an index file: by itself, or against its log.
func (d *dumper) verifyIndex(path string, kind fileKind, base int64) error {
	c := &collector{}
	p := newPartition(d.o.FS, filepath.Dir(path), c)
	p.batchMax, p.logs = d.o.MaxMessageSize, []int64{base}
	if d.o.IndexSanityCheck {
		p.loadIndexes(&segmentCheck{base: base, size: unlimited})
	} else if _, err := d.o.FS.Stat(p.path(base, segment.LogFile)); err != nil {
		return err
	} else if err := p.walkSegment(d.ctx, base, false); err != nil {
		return err
	}
	found := 0
	for _, f := range c.findings {
		if f.File == path && f.Severity == Damage {
			d.out.printf("%s\n", f.Message)
			found++
		}
	}
	d.damaged += found
	if found == 0 && d.o.IndexSanityCheck {
		d.out.printf("%s passed sanity check.\n", path)
	}
	return nil
}

func (d *dumper) producers(path string) error {
	data, err := readIndex(d.o.FS, path)
	if err != nil {
		return err
	}
	d.heading(path)
	list, err := decodeProducers(data)
	if err != nil {
		d.warn(fmt.Errorf("%s: %w", path, err))
		return nil
	}
	for _, e := range list {
		if d.o.JSON {
			d.entry(path, "producerId", e.id, "producerEpoch", int64(e.epoch), "coordinatorEpoch", int64(e.coordinatorEpoch),
				"currentTxnFirstOffset", e.txnFirstOffset, "lastTimestamp", e.timestamp, "lastSequence", int64(e.lastSequence),
				"lastOffset", e.lastOffset, "offsetDelta", int64(e.offsetDelta))
			continue
		}
		d.out.b = append(e.appendText(d.out.b), '\n')
	}
	return d.out.flushFull()
}

func (e producerEntry) appendText(b []byte) []byte {
	b = fmt.Appendf(b, "producerId: %d producerEpoch: %d coordinatorEpoch: %d ", e.id, e.epoch, e.coordinatorEpoch)
	if e.txnFirstOffset < 0 {
		b = append(b, "currentTxnFirstOffset: OptionalLong.empty"...)
	} else {
		b = fmt.Appendf(b, "currentTxnFirstOffset: OptionalLong[%d]", e.txnFirstOffset)
	}
	b = fmt.Appendf(b, " lastTimestamp: %d", e.timestamp)
	if e.lastOffset >= 0 {
		b = fmt.Appendf(b, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
			firstSequence(e.lastSequence, e.offsetDelta), e.lastSequence, e.lastOffset, e.offsetDelta, e.timestamp)
	}
	return b
}

// firstSequence counts back from the last sequence; before 0 comes the largest int32.
func firstSequence(last, delta int32) int32 {
	if last < 0 {
		return last
	}
	return int32((int64(last) - int64(delta)) & (1<<31 - 1))
}

// text shows a file of text as it is. Files that nobody named and that are not text are only
// mentioned.
func (d *dumper) text(path string, kind fileKind, found bool) error {
	if kind == running {
		return nil
	}
	why := leftovers[filepath.Ext(path)]
	if kind == leftover && found {
		d.heading(path)
		d.out.printf("Left over: %s.\n", why)
		return nil
	}
	data, err := vfs.ReadFile(d.o.FS, path, textSizeMax)
	if err != nil {
		return err
	}
	d.heading(path)
	switch {
	case d.o.JSON:
		d.out.b = appendString(append(appendString(append(d.out.b, `{"file":`...), []byte(path)), `,"text":`...), data)
		d.out.b = append(d.out.b, '}', '\n')
	case kind == cleanState && rightCleanState(data):
		d.out.printf("%d bytes of what each log knew of itself at a clean stop; the checksum is right.\n", len(data))
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		d.out.printf("%d bytes of an unknown kind.\n", len(data))
	default:
		d.out.b = append(d.out.b, data...)
		if n := len(data); n > 0 && data[n-1] != '\n' {
			d.out.b = append(d.out.b, '\n')
		}
	}
	return d.out.flushFull()
}
