package record

// recompress makes a v2 batch into one with another codec. Producer, sequence, headers and
// what kind of batch it is stay.
func (v *validation) recompress(b Batch, target Codec) (Batch, error) {
	s := scratches.Get().(*scratch)
	defer s.release()
	c, err := b.open(s, v.o.MaxDecompressed)
	if err != nil {
		return nil, err
	}
	again := c
	if err := v.checkRecords(b, &c); err != nil {
		return nil, err
	}
	o := v.builderOptions(target)
	o.LeaderEpoch = b.LeaderEpoch()
	o.Transactional, o.Control = b.IsTransactional(), b.IsControl()
	if b.ProducerID() != -1 {
		o.Producer = &Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence()}
	}
	builder := NewBuilder(o)
	claims, r := b.TimestampType(), Record{}
	for again.next() {
		r.Offset = int64(again.offsetDelta)
		r.Timestamp = b.BaseTimestamp() + again.timestampDelta
		if claims == LogAppendTime {
			r.Timestamp = b.MaxTimestamp()
		}
		r.Key, r.Value = again.key.of(again.records), again.value.of(again.records)
		r.Headers = appendHeaders(r.Headers[:0], again.records, &again.layout)
		if err := builder.Append(r); err != nil {
			return nil, &InvalidRecordError{Reason: "batch cannot be compressed anew", Err: err}
		}
	}
	return builder.Build(), nil
}

func (v *validation) builderOptions(target Codec) BuilderOptions {
	return BuilderOptions{
		Codec:         target,
		Level:         v.o.Level,
		LeaderEpoch:   -1,
		TimestampType: v.o.TimestampType,
		AppendTime:    v.o.Now,
	}
}

// convert makes a set of messages, format v0 or v1, into one v2 batch. Offsets are counted
// from 0, whatever the set says: some clients have never got those in wrappers right
// (KAFKA-9669). Records are blamed by their index in their wrapper.
func (v *validation) convert(set []byte, target Codec) (Batch, error) {
	builder := NewBuilder(v.builderOptions(target))
	for b, err := range Batches(set) {
		if err != nil {
			return nil, err
		}
		if err := v.convertMessage(builder, b); err != nil {
			return nil, err
		}
	}
	return builder.Build(), nil
}

func (v *validation) convertMessage(builder *Builder, b Batch) error {
	index := int32(0)
	var full error
	err := b.eachMessage(v.o.MaxDecompressed, func(r Record) bool {
		v.checkRecord(index, r.Key != nil, r.Timestamp, b.TimestampType())
		index++
		r.Offset = int64(builder.Count())
		full = builder.Append(r)
		return full == nil
	})
	switch {
	case err != nil:
		return err
	case full != nil:
		return &InvalidRecordError{Reason: "set cannot be converted", Err: full}
	}
	return v.result()
}
