package record

import (
	"fmt"
	"math"
)

// An Origin says who appends.
type Origin int8

const (
	// Client is a producer. It may not write control records.
	Client Origin = iota
	// Coordinator is a part of the broker: a group or transaction coordinator.
	Coordinator
)

// AsProduced, as a TargetCodec, keeps what the producer chose (compression.type=producer).
const AsProduced Codec = -1

// ValidateOptions are what a leader's rules for new records depend on. All of it is read
// only, so that a log may use one for all its appends.
type ValidateOptions struct {
	Magic         int8  // format of the log: 0, 1 or 2 (message.format.version)
	Now           int64 // ms since 1970
	Origin        Origin
	TargetCodec   Codec // compression.type, AsProduced for producer
	Level         int   // of the target codec, 0 is its default
	TimestampType TimestampType

	// A create time before Now-BeforeMaxMs or after Now+AfterMaxMs is refused. The
	// defaults of message.timestamp.before.max.ms and after.max.ms are the largest int64
	// and one hour.
	BeforeMaxMs, AfterMaxMs int64

	Compacted       bool // cleanup.policy contains compact: each record needs a key
	MaxMessageBytes int  // of a batch, header included, before and after; 0 is no limit
	MaxDecompressed int  // of the records of a batch; 0 is DefaultMaxDecompressed
}

// Validated is what may be appended once Stamp gave it its offsets.
type Validated struct {
	// Set is exactly one v2 batch with offsets from 0, or, in a log of format v0 or v1, a
	// wrapper or messages: the bytes that were given, stamped in place, or new ones if they
	// were Rebuilt.
	Set             []byte
	Magic           int8
	Rebuilt         bool // converted or compressed anew
	Converted       bool // to another format
	SourceCodec     Codec
	Count           int
	LastOffsetDelta int32
	MaxTimestamp    int64
	LogAppendTime   int64 // Options.Now if the timestamp type is LogAppendTime, else -1

	wrapped *wrappedSet // what Stamp has to compress, or nil
}

// Validate applies the rules for what a leader takes from a client or coordinator, as
// Kafka's LogValidator does and what UnifiedLog checks before it, except for those that
// need the log. set is changed: the timestamp type of the topic and the maximum timestamp
// are stamped on it. An incomplete batch at its end is dropped. After an error set is as it
// was.
//
// Errors: *CorruptError; *InvalidRecordError, with the records to blame if it is them;
// *TooLargeError; ErrUnsupportedForFormat; ErrUnsupportedCompression.
//
// A batch that has the log's format and the topic's codec is left as it is but for the
// stamps, and nothing is allocated for an uncompressed v2 one. Any other set is made into
// what the log has: one v2 batch, one message per record, or one wrapper.
func Validate(set []byte, o *ValidateOptions) (Validated, error) {
	first, sourceCodec, set, err := scanSet(set, o)
	if err != nil {
		return Validated{}, err
	}
	target := o.TargetCodec
	if target == AsProduced {
		target = sourceCodec
	}
	v := validation{o: *o, maxTimestamp: -1}
	if o.Magic < 2 {
		return v.validateMessages(set, first, sourceCodec, target)
	}
	var b Batch
	rebuilt := true
	switch {
	case first.isMessage():
		b, err = v.convert(set, target)
	case sourceCodec == target || sourceCodec == None && first.IsControl():
		rebuilt = false
		b, err = first, v.checkInPlace(first)
	default:
		b, err = v.recompress(first, target)
	}
	if err != nil {
		return Validated{}, err
	}
	if rebuilt && tooLarge(b, o) {
		return Validated{}, &TooLargeError{Size: len(b), Max: o.MaxMessageBytes}
	}
	return Validated{
		Set:             b,
		Magic:           2,
		Rebuilt:         rebuilt,
		Converted:       first.isMessage(),
		SourceCodec:     sourceCodec,
		Count:           int(b.Count()),
		LastOffsetDelta: b.LastOffsetDelta(),
		MaxTimestamp:    b.MaxTimestamp(),
		LogAppendTime:   o.logAppendTime(),
	}, nil
}

func (o *ValidateOptions) logAppendTime() int64 {
	if o.TimestampType == LogAppendTime {
		return o.Now
	}
	return -1
}

// Stamp gives the set the offsets from base on, and a v2 batch its leader epoch. That
// changes bytes of the set that no CRC covers, save for a compressed set of format v0: its
// inner offsets are absolute, so it is compressed only now. The error is a *TooLargeError.
func (v *Validated) Stamp(base int64, leaderEpoch int32) error {
	if v.Magic == 2 {
		b := Batch(v.Set)
		b.SetBaseOffset(base)
		b.SetLeaderEpoch(leaderEpoch)
		return nil
	}
	return v.stampMessages(base)
}

// scanSet checks the batches of a set without looking inside, and returns the first, the
// codec of the last compressed one, and the set without an incomplete tail. Sizes and
// checksums of all come before anything else.
func scanSet(set []byte, o *ValidateOptions) (first Batch, codec Codec, whole []byte, err error) {
	size := 0
	var mixed error
	for size < len(set) {
		b, err := First(set[size:])
		if err == ErrShort {
			break
		}
		if err == nil {
			err = checkFrame(b, o)
		}
		if err != nil {
			return nil, None, nil, at(size, err)
		}
		if first == nil {
			first = b
		}
		if b.Magic() != first.Magic() && mixed == nil {
			mixed = invalid("batch of format v%d after one of v%d", b.Magic(), first.Magic())
		}
		if c := b.Codec(); c != None {
			codec = c
		}
		size += len(b)
	}
	switch {
	case first == nil:
		err = invalid("no batch at all")
	case len(first) < size && (!first.isMessage() || codec != None):
		err = invalid("more than one batch")
	case mixed != nil:
		err = mixed
	default:
		err = checkHeader(first, codec, o)
	}
	return first, codec, set[:size], err
}

// checkFrame checks the size and the checksum of a batch.
func checkFrame(b Batch, o *ValidateOptions) error {
	switch {
	case o.Origin == Client && !b.isMessage() && b.BaseOffset() != 0:
		return invalid("base offset %d, must be 0", b.BaseOffset())
	case tooLarge(b, o):
		return &TooLargeError{Size: len(b), Max: o.MaxMessageBytes}
	}
	return b.checkCRC()
}

func tooLarge(b Batch, o *ValidateOptions) bool {
	return o.MaxMessageBytes > 0 && len(b) > o.MaxMessageBytes
}

// checkHeader checks the fields of the first batch against each other and against the
// format of the log.
func checkHeader(b Batch, codec Codec, o *ValidateOptions) error {
	switch {
	case codec > Zstd:
		return &InvalidRecordError{Reason: fmt.Sprintf("codec %d", codec), Err: ErrUnsupportedCompression}
	case b.isMessage():
		return nil
	case b.LastOffsetDelta() < 0:
		return invalid("offset range [%d, %d]", b.BaseOffset(), b.LastOffset())
	case b.Count() <= 0:
		return invalid("record count %d", b.Count())
	case b.Count()-1 != b.LastOffsetDelta():
		return invalid("%d records in offset range [%d, %d]", b.Count(), b.BaseOffset(), b.LastOffset())
	case o.Origin == Client && b.IsControl():
		return invalid("clients may not write control records")
	case o.Origin == Client && b.ProducerID() != -1 && b.BaseSequence() < 0:
		return invalid("sequence %d of producer %d", b.BaseSequence(), b.ProducerID())
	case o.Magic < 2 && b.IsTransactional():
		return fmt.Errorf("%w: transactional records in format v%d", ErrUnsupportedForFormat, o.Magic)
	case o.Magic < 2 && b.ProducerID() != -1:
		return fmt.Errorf("%w: records of an idempotent producer in format v%d", ErrUnsupportedForFormat, o.Magic)
	}
	return nil
}

// recordErrorsMax bounds how many records an error blames. Kafka blames all of them.
const recordErrorsMax = 1000

// A validation collects what is found while going over records.
type validation struct {
	o            ValidateOptions // a copy, so that the caller's stays on its stack
	maxTimestamp int64
	walked       int64               // records that walk handed over
	faults       *InvalidRecordError // nil while there is none
}

// checkInPlace checks the records of a v2 batch and stamps it.
func (v *validation) checkInPlace(b Batch) error {
	if b.Codec() == None {
		c, _ := b.open(nil, 0) // count is checked
		return v.checkAndStamp(b, &c)
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	c, err := b.open(s, v.o.MaxDecompressed)
	if err != nil {
		return err
	}
	return v.checkAndStamp(b, &c)
}

func (v *validation) checkAndStamp(b Batch, c *cursor) error {
	if err := v.checkRecords(b, c); err != nil {
		return err
	}
	if v.o.TimestampType == LogAppendTime {
		b.SetMaxTimestamp(LogAppendTime, v.o.Now)
	} else {
		b.SetMaxTimestamp(CreateTime, v.maxTimestamp)
	}
	return nil
}

// checkRecords goes over the records of a v2 batch. Their offsets have to be 0, 1, 2 ...
func (v *validation) checkRecords(b Batch, c *cursor) error {
	claims, baseTimestamp := b.TimestampType(), b.BaseTimestamp()
	for c.next() {
		index := c.read - 1
		if c.offsetDelta != index {
			return invalid("record %d has offset delta %d", index, c.offsetDelta)
		}
		// Of a batch that claims LogAppendTime too: these are the times that it is kept with.
		v.checkRecord(index, !c.key.isNull(), baseTimestamp+c.timestampDelta, claims)
	}
	if c.err != nil {
		return c.err
	}
	return v.result()
}

// checkRecord checks the key and the timestamp of one record.
func (v *validation) checkRecord(index int32, hasKey bool, timestamp int64, claims TimestampType) {
	o := &v.o
	v.maxTimestamp = max(v.maxTimestamp, timestamp)
	switch {
	case o.Compacted && !hasKey:
		v.blame(index, false, "compacted topic cannot accept a record without key")
	case o.TimestampType == CreateTime && timestamp != -1:
		if timestamp < o.Now-o.BeforeMaxMs || timestamp > o.latest() {
			v.blame(index, true, fmt.Sprintf("timestamp %d is out of range [%d, %d]",
				timestamp, o.Now-o.BeforeMaxMs, o.latest()))
		}
	case claims == LogAppendTime:
		v.blame(index, true, "producer must not set the timestamp type to LogAppendTime")
	}
}

// latest returns Now + AfterMaxMs, or the largest int64 if that is beyond it.
func (o *ValidateOptions) latest() int64 {
	if o.AfterMaxMs > math.MaxInt64-o.Now {
		return math.MaxInt64
	}
	return o.Now + o.AfterMaxMs
}

func (v *validation) blame(index int32, timestamp bool, message string) {
	if v.faults == nil {
		v.faults = new(InvalidRecordError)
	}
	v.faults.Timestamp = v.faults.Timestamp || timestamp
	if len(v.faults.Records) < recordErrorsMax {
		v.faults.Records = append(v.faults.Records, RecordError{Index: index, Message: message})
	}
}

// result returns what was blamed, as an error.
func (v *validation) result() error {
	if v.faults == nil {
		return nil
	}
	v.faults.Reason = "one or more records have been rejected"
	return v.faults
}
