package dump

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/vfs"
)

// textSizeMax bounds what is shown of a text file.
const textSizeMax = 300 << 20

// index shows an index file, or what is wrong with it.
func (d *dumper) index(path string, kind files.Kind, base int64) error {
	if kind != files.TxnIndexFile && (d.o.IndexSanityCheck || d.o.VerifyIndexOnly) {
		d.heading(path)
		return d.verifyIndex(path)
	}
	data, err := files.Read(d.o.FS, path)
	if err != nil {
		return err
	}
	d.heading(path)
	switch kind {
	case files.OffsetIndexFile:
		list, padding := files.DecodeOffsets(data, base)
		for _, e := range list {
			d.entry(path, "offset", e.Offset, "position", e.Position)
		}
		d.padding(padding)
	case files.TimeIndexFile:
		list, padding := files.DecodeTimes(data, base)
		for _, e := range list {
			d.entry(path, "timestamp", e.Timestamp, "offset", e.Offset)
		}
		d.padding(padding)
	default:
		list, err := files.DecodeTxns(data)
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
		b = text.AppendString(append(b, `{"file":`...), []byte(path))
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
		b = text.AppendInt(b, pairs[i+1].(int64))
	}
	if d.o.JSON {
		b = append(b, '}')
	}
	d.out.b = append(b, '\n')
}

// verifyIndex shows what a check finds in an index file: by itself, or against its log.
func (d *dumper) verifyIndex(path string) (err error) {
	var found []check.Finding
	if d.o.IndexSanityCheck {
		found = check.IndexByItself(d.o.FS, path)
	} else if found, err = check.IndexAgainstLog(d.ctx, d.o.FS, path, d.o.MaxMessageSize); err != nil {
		return err
	}
	for _, f := range found {
		d.out.printf("%s\n", f.Message)
	}
	d.damaged += len(found)
	if len(found) == 0 && d.o.IndexSanityCheck {
		d.out.printf("%s passed sanity check.\n", path)
	}
	return nil
}

func (d *dumper) producers(path string) error {
	data, err := files.Read(d.o.FS, path)
	if err != nil {
		return err
	}
	d.heading(path)
	list, err := files.DecodeProducers(data)
	if err != nil {
		d.warn(fmt.Errorf("%s: %w", path, err))
		return nil
	}
	for _, e := range list {
		if d.o.JSON {
			d.entry(path, "producerId", e.ID, "producerEpoch", int64(e.Epoch), "coordinatorEpoch", int64(e.CoordinatorEpoch),
				"currentTxnFirstOffset", e.TxnFirstOffset, "lastTimestamp", e.Timestamp, "lastSequence", int64(e.LastSequence),
				"lastOffset", e.LastOffset, "offsetDelta", int64(e.OffsetDelta))
			continue
		}
		d.out.b = append(e.AppendText(d.out.b), '\n')
	}
	return d.out.flushFull()
}

// text shows a file of text as it is. Files that nobody named and that are not text are only
// mentioned.
func (d *dumper) text(path string, kind files.Kind, found bool) error {
	if kind == files.Running {
		return nil
	}
	why := files.LeftoverReason(path)
	if kind == files.Leftover && found {
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
		d.out.b = text.AppendString(append(text.AppendString(append(d.out.b, `{"file":`...), []byte(path)), `,"text":`...), data)
		d.out.b = append(d.out.b, '}', '\n')
	case kind == files.CleanState && files.RightCleanState(data):
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
