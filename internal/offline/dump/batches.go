package dump

import (
	"errors"
	"fmt"
	"io"

	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A logDump shows the batches of one file.
type logDump struct {
	*dumper
	path      string
	partition topic.Partition // of the directory's name, for JSON
	decoder   schema.Decoder
	logStart  int64 // JSON leaves out what is below
	deep      bool
	prefix    []byte // of each JSON line

	at record.Record // the one that is shown, here so that it is not allocated for each
}

func (d *dumper) batches(path string, kind files.Kind, base, logStart int64) (err error) {
	if kind == files.KRaftSnapshot { // its offsets count from 0, or from the snapshot's
		base = 0
	}
	s, err := files.OpenScanner(d.o.FS, path, base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	limited := s.Limit(d.o.maxBytes())
	l := d.newLogDump(path, logStart)
	d.heading(path)
	if !d.o.JSON {
		l.start(kind, base)
	}
	for {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		sp, err := s.Next()
		if err == io.EOF || limited && err == nil && sp.Batch == nil && sp.End == s.Size() {
			return nil // or cut by --max-bytes
		}
		if err == nil {
			err = l.span(sp)
		}
		if err == nil {
			err = d.out.flushFull()
		}
		if err != nil {
			return err
		}
	}
}

func (d *dumper) newLogDump(path string, logStart int64) *logDump {
	dir := filepath.Dir(path)
	p, _, ok := files.ParseDir(dir)
	if !ok {
		p = topic.Partition{Topic: filepath.Base(dir), Partition: -1}
	}
	l := &logDump{dumper: d, path: path, partition: p, decoder: d.o.Decoder, logStart: logStart}
	l.deep = d.o.DeepIteration || d.o.PrintDataLog
	if l.decoder == schema.AutoDecoder && !d.o.JSON {
		l.decoder = schema.DecoderOf(p.Topic)
		if filepath.Base(path) == checkpoint.BootstrapSnapshot {
			l.decoder = schema.ClusterMetadataDecoder
		}
	}
	l.prefix = text.AppendString([]byte(`{"topic":`), []byte(p.Topic))
	l.prefix = append(text.AppendInt(append(l.prefix, `,"partition":`...), int64(p.Partition)), `,"offset":`...)
	return l
}

func (l *logDump) start(kind files.Kind, base int64) {
	if kind == files.LogFile {
		l.out.printf("Log starting offset: %d\n", base)
	} else if end, epoch, ok := checkpoint.ParseSnapshotName(filepath.Base(l.path)); ok {
		l.out.printf("Snapshot end offset: %d, epoch: %d\n", end, epoch)
	}
}

func (l *logDump) span(sp files.Span) error {
	if sp.Batch == nil {
		l.warn(fmt.Errorf("%s: bytes %d to %d: %w", l.path, sp.Position, sp.End, sp.Err))
		return nil
	}
	if l.o.JSON {
		return l.batchJSON(sp)
	}
	l.out.b = appendBatch(l.out.b, sp)
	if sp.Err != nil {
		l.damaged++ // the line says so
		return nil
	}
	if !l.deep {
		return nil
	}
	if err := l.records(sp.Batch); err != nil {
		l.warn(fmt.Errorf("%s: batch at position %d: %w", l.path, sp.Position, err))
	}
	return nil
}

// appendBatch appends the line of a batch.
func appendBatch(dst []byte, sp files.Span) []byte {
	b := sp.Batch
	field := func(name string, v int64) { dst = text.AppendInt(append(dst, name...), v) }
	flag := func(name string, v bool) { dst = text.AppendBool(append(dst, name...), v) }
	if b.Magic() < 2 {
		field("offset: ", b.LastOffset())
	} else {
		field("baseOffset: ", b.BaseOffset())
		field(" lastOffset: ", b.LastOffset())
		field(" count: ", int64(b.Count()))
		field(" baseSequence: ", int64(b.BaseSequence()))
		field(" lastSequence: ", int64(b.LastSequence()))
		field(" producerId: ", b.ProducerID())
		field(" producerEpoch: ", int64(b.ProducerEpoch()))
		field(" partitionLeaderEpoch: ", int64(b.LeaderEpoch()))
		flag(" isTransactional: ", b.IsTransactional())
		flag(" isControl: ", b.IsControl())
		if horizon, ok := b.DeleteHorizon(); ok {
			field(" deleteHorizonMs: OptionalLong[", horizon)
			dst = append(dst, ']')
		} else {
			dst = append(dst, " deleteHorizonMs: OptionalLong.empty"...)
		}
	}
	field(" position: ", sp.Position)
	dst = append(append(append(dst, ' '), b.TimestampType().String()...), ": "...)
	dst = text.AppendInt(dst, b.MaxTimestamp())
	field(" size: ", int64(b.Size()))
	field(" magic: ", int64(b.Magic()))
	dst = append(append(dst, " compresscodec: "...), b.Codec().String()...)
	field(" crc: ", int64(b.CRC()))
	flag(" isvalid: ", sp.Err == nil)
	return append(dst, '\n')
}

// records appends a line for each record of a good batch.
func (l *logDump) records(b record.Batch) (err error) {
	checksums := checksums(b)
	for r, err := range b.Records() {
		if err != nil {
			return err
		}
		l.at = r
		if err := l.record(b, &l.at, checksums); err != nil {
			l.warn(fmt.Errorf("%s: record at offset %d: %w", l.path, r.Offset, err))
		}
		if err := l.out.flushFull(); err != nil {
			return err
		}
		if len(checksums) > 0 {
			checksums = checksums[1:]
		}
	}
	return nil
}

// checksums are those of the messages in a batch of an old format.
func checksums(b record.Batch) []uint32 {
	var list []uint32
	for m, err := range b.Messages() {
		if err == nil {
			list = append(list, m.CRC())
		}
	}
	return list
}

func (l *logDump) record(b record.Batch, r *record.Record, checksums []uint32) (err error) {
	dst, sep := l.out.b, "| " // in front of what is shown first; nothing at all is an empty line
	if !l.o.SkipRecordMetadata {
		dst = appendRecordMetadata(append(dst, sep...), b, r, checksums)
		sep = " "
		if b.IsControl() {
			dst, err = schema.AppendControl(append(dst, ' '), r)
		}
	}
	if l.o.PrintDataLog && !b.IsControl() {
		dst, err = l.appendData(dst, sep, r)
	}
	l.out.b = append(dst, '\n')
	return err
}

func appendRecordMetadata(dst []byte, b record.Batch, r *record.Record, checksums []uint32) []byte {
	dst = text.AppendInt(append(dst, "offset: "...), r.Offset)
	dst = append(append(append(dst, ' '), r.TimestampType.String()...), ": "...)
	dst = text.AppendInt(dst, r.Timestamp)
	dst = text.AppendInt(append(dst, " keySize: "...), int64(size(r.Key)))
	dst = text.AppendInt(append(dst, " valueSize: "...), int64(size(r.Value)))
	if b.Magic() < 2 {
		dst = append(dst, " isValid: true crc: "...)
		if len(checksums) > 0 {
			return text.AppendInt(dst, int64(checksums[0]))
		}
		return text.AppendInt(dst, int64(b.CRC()))
	}
	dst = text.AppendInt(append(dst, " sequence: "...), int64(r.Sequence))
	dst = append(dst, " headerKeys: ["...)
	for i, h := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, h.Key...)
	}
	return append(dst, ']')
}

// size is -1 for null.
func size(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// appendData appends key and payload, the first of them behind sep, decoded in internal topics. What cannot be decoded is
// shown as it is.
func (l *logDump) appendData(dst []byte, sep string, r *record.Record) (_ []byte, err error) {
	if r.Key != nil {
		dst = append(append(dst, sep...), "key: "...)
		if dst, err = l.appendPart(dst, r, r.Key, l.decoder.Key, l.o.KeyClass); err != nil {
			return dst, err
		}
		sep = " "
	}
	if r.Value != nil {
		dst = append(append(dst, sep...), "payload: "...)
		return l.appendPart(dst, r, r.Value, l.decoder.Value, l.o.ValueClass)
	}
	if l.decoder.Keyed() {
		return append(append(dst, sep...), "payload: <DELETE>"...), nil
	}
	return dst, nil
}

func (l *logDump) appendPart(dst []byte, r *record.Record, raw []byte, decode schema.DecodeFunc, class schema.Class) ([]byte, error) {
	n := len(dst)
	dst, err := decode(dst, r)
	if err != nil || len(dst) == n {
		dst = class.Append(dst[:n], raw)
	}
	return dst, err
}
