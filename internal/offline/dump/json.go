package dump

import (
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/record"
)

// batchJSON appends an object for each record of a batch. Those of a damaged one cannot be
// trusted and are left out.
func (l *logDump) batchJSON(sp files.Span) error {
	err := sp.Err
	if err == nil {
		for r, e := range sp.Batch.Records() {
			if err = e; err != nil {
				break
			}
			if r.Offset < l.logStart {
				continue
			}
			l.at = r
			l.recordJSON(sp.Batch, &l.at)
			if err := l.out.flushFull(); err != nil {
				return err
			}
		}
	}
	if err != nil {
		l.warn(fmt.Errorf("%s: batch at position %d: %w", l.path, sp.Position, err))
	}
	return nil
}

func (l *logDump) recordJSON(b record.Batch, r *record.Record) {
	dst := text.AppendInt(append(l.out.b, l.prefix...), r.Offset)
	dst = text.AppendInt(append(dst, `,"timestamp":`...), r.Timestamp)
	dst = append(append(dst, `,"timestampType":"`...), r.TimestampType.String()...)
	dst = append(dst, `","leaderEpoch":`...)
	if epoch := b.LeaderEpoch(); epoch >= 0 {
		dst = text.AppendInt(dst, int64(epoch))
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendNullable(append(dst, `,"key":`...), r.Key)
	dst = appendNullable(append(dst, `,"value":`...), r.Value)
	dst = append(dst, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(text.AppendString(append(dst, '['), []byte(h.Key)), ',')
		dst = append(appendNullable(dst, h.Value), ']')
	}
	dst = append(dst, ']')
	if b.IsControl() {
		dst = schema.AppendControlJSON(append(dst, `,"control":`...), r)
	} else {
		dst = l.appendDecoded(dst, r)
	}
	l.out.b = append(dst, '}', '\n')
}

func appendNullable(dst, v []byte) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	return schema.AppendBase64(dst, v)
}

// appendDecoded appends key and value as a decoder shows them, if one was asked for.
func (l *logDump) appendDecoded(dst []byte, r *record.Record) []byte {
	if l.decoder == schema.AutoDecoder || l.decoder == schema.RawDecoder {
		return dst
	}
	start := len(dst)
	dst = append(dst, `,"decoded":{`...)
	n := len(dst)
	for _, part := range []struct {
		name   string
		raw    []byte
		decode schema.DecodeFunc
	}{{`"key":`, r.Key, l.decoder.Key}, {`"value":`, r.Value, l.decoder.Value}} {
		before := len(dst)
		if part.raw == nil {
			continue
		}
		if before > n {
			dst = append(dst, ',')
		}
		named := append(dst, part.name...)
		var err error
		if dst, err = part.decode(named, r); err != nil {
			l.warn(fmt.Errorf("%s: record at offset %d: %w", l.path, r.Offset, err))
		}
		switch {
		case err != nil || len(dst) == len(named):
			dst = dst[:before]
		case l.decoder == schema.RemoteLogMetadataDecoder:
			dst = text.AppendString(named, slices.Clone(dst[len(named):]))
		}
	}
	if len(dst) == n {
		return dst[:start]
	}
	return append(dst, '}')
}
