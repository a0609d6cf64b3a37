package schema

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"

	"github.com/gregor-kafka/gregor/internal/metadata/fieldtable"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Decoder turns the keys and values of an internal topic into JSON.
type Decoder int

// The decoders of kafka-dump-log. AutoDecoder takes the one that belongs to the topic in the
// name of the directory, if there is one.
const (
	AutoDecoder Decoder = iota
	RawDecoder
	OffsetsDecoder
	TransactionLogDecoder
	ShareGroupStateDecoder
	ClusterMetadataDecoder
	RemoteLogMetadataDecoder // whose values are text, not JSON
)

// A Class is one of Kafka's decoders for keys and values that no Decoder knows.
type Class int

// StringClass shows bytes as text, the others as a number if they have its size.
const (
	StringClass Class = iota
	IntegerClass
	LongClass
)

// Append appends bytes as text.
func (c Class) Append(dst, raw []byte) []byte {
	switch {
	case c == IntegerClass && len(raw) == 4:
		return text.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(raw))))
	case c == LongClass && len(raw) == 8:
		return text.AppendInt(dst, int64(binary.BigEndian.Uint64(raw)))
	}
	return text.AppendRaw(dst, raw)
}

// DecoderOf returns the one of a topic.
func DecoderOf(topicName string) Decoder {
	switch topicName {
	case topic.ConsumerOffsets:
		return OffsetsDecoder
	case topic.TransactionState:
		return TransactionLogDecoder
	case topic.ShareGroupState:
		return ShareGroupStateDecoder
	case topic.ClusterMetadata:
		return ClusterMetadataDecoder
	}
	return RawDecoder
}

// A DecodeFunc appends what it makes of a record.
type DecodeFunc func(dst []byte, r *record.Record) ([]byte, error)

// Key and Value append JSON, but for the one that has text; err says why bytes cannot be decoded.
func (d Decoder) Key(dst []byte, r *record.Record) ([]byte, error) {
	c, ok := d.coordinator()
	if !ok {
		return dst, nil
	}
	return c.appendKey(dst, r.Key)
}

func (d Decoder) Value(dst []byte, r *record.Record) ([]byte, error) {
	switch d {
	case ClusterMetadataDecoder:
		return appendMetadata(dst, r.Value)
	case RemoteLogMetadataDecoder:
		return appendRemoteLog(dst, r.Value)
	}
	c, ok := d.coordinator()
	if !ok {
		return dst, nil
	}
	return c.appendValue(dst, d, r)
}

// Keyed reports whether a key says what its value is, so that a record without one deletes that.
func (d Decoder) Keyed() bool {
	_, ok := d.coordinator()
	return ok
}

func (d Decoder) coordinator() (coordinator, bool) {
	switch d {
	case OffsetsDecoder:
		return tables().offsets, true
	case TransactionLogDecoder:
		return tables().transactions, true
	case ShareGroupStateDecoder:
		return tables().shares, true
	}
	return coordinator{}, false
}

func cutVersion(b []byte) (version int16, rest []byte, err error) {
	if len(b) < 2 {
		return 0, nil, errShort
	}
	return int16(binary.BigEndian.Uint16(b)), b[2:], nil
}

func (c coordinator) appendKey(dst, key []byte) ([]byte, error) {
	typ, rest, err := cutVersion(key)
	if err != nil {
		return dst, fmt.Errorf("key: %w", err)
	}
	dst = append(text.AppendInt(append(dst, `{"type":"`...), int64(typ)), `","data":`...)
	s := c.keys[typ]
	if s == nil {
		return append(dst, `"unknown"}`...), nil
	}
	dst, err = appendRecord(dst, s, rest, 0)
	return append(dst, '}'), err
}

func (c coordinator) appendValue(dst []byte, d Decoder, r *record.Record) ([]byte, error) {
	typ, _, err := cutVersion(r.Key)
	if err != nil {
		return dst, fmt.Errorf("key: %w", err)
	}
	version, rest, err := cutVersion(r.Value)
	if err != nil {
		return dst, fmt.Errorf("value: %w", err)
	}
	dst = append(text.AppendInt(append(dst, `{"version":"`...), int64(version)), `","data":`...)
	s := c.values[typ]
	if s == nil {
		return append(dst, `"unknown"}`...), nil
	}
	dst, err = d.appendData(dst, s, rest, version)
	return append(dst, '}'), err
}

// appendData is appendRecord, and shows what Kafka's own decoders look into further: the state
// of a transaction by its name, and the subscriptions and assignments of consumers.
func (d Decoder) appendData(dst []byte, s *fieldtable.Record, b []byte, version int16) ([]byte, error) {
	n := len(dst)
	dst, err := appendRecord(dst, s, b, version)
	if err != nil {
		return dst, err
	}
	switch s.Name {
	case "TransactionLogValue":
		return append(dst[:n], nameStatus(string(dst[n:]))...), nil
	case "GroupMetadataValue":
		return append(dst[:n], expandMembers(string(dst[n:]))...), nil
	}
	return dst, nil
}

var transactionStatus = [...]string{
	"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
}

func nameStatus(text string) string {
	const field = `"transactionStatus":`
	before, after, _ := strings.Cut(text, field)
	digits, rest, _ := strings.Cut(after, ",")
	for i, name := range transactionStatus {
		if digits == fmt.Sprint(i) {
			return before + field + `"` + name + `",` + rest
		}
	}
	return text
}

// appendMetadata appends a record of the metadata log.
func appendMetadata(dst, b []byte) ([]byte, error) {
	r := &reader{b: b}
	frame, key, version := r.uvarint(), r.uvarint(), r.uvarint()
	if r.err == nil && frame != 1 {
		r.fail(fmt.Errorf("frame version %d, want 1", frame))
	}
	if r.err != nil {
		return dst, r.err
	}
	s := tables().metadata[int16(key)]
	if s == nil || key > 1<<15-1 {
		return dst, fmt.Errorf("unknown record key %d", key)
	}
	if version > 1<<15-1 {
		return dst, fmt.Errorf("%s: version %d", s.Name, version)
	}
	dst = append(append(append(dst, `{"type":"`...), upperSnake(s.Name)...), `","version":`...)
	dst = append(text.AppendInt(dst, int64(version)), `,"data":`...)
	dst, err := appendRecord(dst, s, r.b, int16(version))
	return append(dst, '}'), err
}

// upperSnake turns FeatureLevelRecord into FEATURE_LEVEL_RECORD.
func upperSnake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
