package record

// A wrappedSet is a message set that will be compressed when its offsets are known.
type wrappedSet struct {
	messages []byte
	codec    Codec
	level    int
	maxSize  int // max.message.bytes, 0 is no limit
}

// validateMessages is Validate for logs of format v0 and v1.
func (v *validation) validateMessages(set []byte, first Batch, source, target Codec) (Validated, error) {
	result := Validated{
		Set:           set,
		Magic:         v.o.Magic,
		Converted:     first.Magic() != v.o.Magic,
		SourceCodec:   source,
		LogAppendTime: v.o.logAppendTime(),
	}
	var inPlace bool
	var err error
	switch {
	case target > LZ4:
		return Validated{}, &InvalidRecordError{Reason: target.String() + " in an old format", Err: ErrUnsupportedCompression}
	case result.Converted || source != target:
	case source == None:
		inPlace, err = true, v.checkMessages(set)
	case v.o.Magic == 1:
		inPlace, err = v.checkWrapper(first)
	}
	if err == nil && !inPlace {
		result.Rebuilt = true
		err = v.rebuildMessages(&result, target)
	}
	if err != nil {
		return Validated{}, err
	}
	result.Count = int(v.walked)
	result.LastOffsetDelta = int32(v.walked - 1)
	result.MaxTimestamp = v.messagesTimestamp()
	return result, nil
}

// messagesTimestamp returns the largest timestamp that the messages have now.
func (v *validation) messagesTimestamp() int64 {
	switch {
	case v.o.Magic == 0:
		return -1
	case v.o.TimestampType == LogAppendTime:
		return v.o.Now
	}
	return v.maxTimestamp
}

// checkMessages checks uncompressed messages and stamps them.
func (v *validation) checkMessages(set []byte) error {
	if err := v.walkSet(set, func(Record) error { return nil }); err != nil {
		return err
	}
	for b := range Batches(set) {
		if v.o.TimestampType == LogAppendTime {
			b.SetMaxTimestamp(LogAppendTime, v.o.Now)
		} else {
			b.SetMaxTimestamp(CreateTime, b.MaxTimestamp())
		}
	}
	return nil
}

// checkWrapper checks a v1 wrapper, and stamps it if its inner offsets are 0, 1, 2 ... If
// not, it has to be built anew.
func (v *validation) checkWrapper(b Batch) (inPlace bool, err error) {
	s := scratches.Get().(*scratch)
	defer s.release()
	w, err := b.unwrap(s, v.o.MaxDecompressed)
	if err != nil {
		return false, err
	}
	index := int64(0)
	for p := w.set; len(p) > 0; index++ {
		inner, err := w.next(p)
		if err != nil {
			return false, err
		}
		if inner.BaseOffset() != index {
			return false, nil
		}
		p = p[len(inner):]
	}
	if err := v.walk(b, func(Record) error { return nil }); err != nil {
		return false, err
	}
	b.SetMaxTimestamp(v.o.TimestampType, v.messagesTimestamp())
	return true, nil
}

// rebuildMessages makes the set of result into one of the log's format and codec.
func (v *validation) rebuildMessages(result *Validated, target Codec) error {
	o := SetOptions{Magic: v.o.Magic, Codec: target, Level: v.o.Level, TimestampType: v.o.TimestampType, AppendTime: v.o.Now}
	if v.o.Magic == 0 {
		o.Codec = None // until Stamp
	}
	builder, err := NewSetBuilder(o)
	if err != nil {
		return err
	}
	if err := v.walkSet(result.Set, builder.Append); err != nil {
		return err
	}
	result.Set = builder.Build()
	if o.Codec != target {
		result.wrapped = &wrappedSet{messages: result.Set, codec: target, level: v.o.Level, maxSize: v.o.MaxMessageBytes}
		return nil
	}
	for b := range Batches(result.Set) {
		if tooLarge(b, &v.o) {
			return &TooLargeError{Size: len(b), Max: v.o.MaxMessageBytes}
		}
	}
	return nil
}

// stampMessages gives messages, or a wrapper, their offsets.
func (v *Validated) stampMessages(base int64) error {
	if w := v.wrapped; w != nil {
		stampEach(w.messages, base)
		b := SetBuilder{opts: SetOptions{Magic: 0, Codec: w.codec, Level: w.level}, set: w.messages, count: v.Count, lastOffset: base + int64(v.Count) - 1}
		v.Set = b.Build()
		if w.maxSize > 0 && len(v.Set) > w.maxSize {
			return &TooLargeError{Size: len(v.Set), Max: w.maxSize}
		}
		return nil
	}
	if first := Batch(v.Set); first.Codec() != None {
		first.SetBaseOffset(base + int64(v.Count) - 1)
		return nil
	}
	stampEach(v.Set, base)
	return nil
}

// stampEach gives each message of a set its offset.
func stampEach(set []byte, base int64) {
	for b := range Batches(set) {
		b.SetBaseOffset(base)
		base++
	}
}
