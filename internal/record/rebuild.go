package record

// walk checks the records of a batch of any format and hands them to take, with offsets
// counted on from the last walk. What the batch says of its offsets only matters in v2:
// some clients have never got those in wrappers right (KAFKA-9669). Records are blamed by
// their index in the batch.
func (v *validation) walk(b Batch, take func(Record) error) error {
	index, claims := int32(0), b.TimestampType()
	var stopped error
	visit := func(r Record) bool {
		if delta := r.Offset - b.BaseOffset(); !b.isMessage() && delta != int64(index) {
			stopped = invalid("record %d has offset delta %d", index, delta)
			return false
		}
		v.checkRecord(index, r.Key != nil, r.Timestamp, claims)
		index++
		r.Offset = v.walked
		v.walked++
		if err := take(r); err != nil {
			stopped = &InvalidRecordError{Reason: "set cannot be converted", Err: err}
		}
		return stopped == nil
	}
	err := b.each(v.o.MaxDecompressed, visit)
	switch {
	case err != nil:
		return err
	case stopped != nil:
		return stopped
	}
	return v.result()
}

// recompress makes a v2 batch into one with another codec. Producer, sequence, headers and
// what kind of batch it is stay.
func (v *validation) recompress(b Batch, target Codec) (Batch, error) {
	o := v.builderOptions(target)
	o.LeaderEpoch = new(b.LeaderEpoch())
	o.Transactional, o.Control = b.IsTransactional(), b.IsControl()
	if b.ProducerID() != -1 {
		o.Producer = &Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence()}
	}
	builder := NewBuilder(o)
	if err := v.walk(b, builder.Append); err != nil {
		return nil, err
	}
	return builder.Build(), nil
}

func (v *validation) builderOptions(target Codec) BuilderOptions {
	return BuilderOptions{
		Codec:         target,
		Level:         v.o.Level,
		TimestampType: v.o.TimestampType,
		AppendTime:    v.o.Now,
	}
}

// convert makes a set of messages, format v0 or v1, into one v2 batch.
func (v *validation) convert(set []byte, target Codec) (Batch, error) {
	builder := NewBuilder(v.builderOptions(target))
	if err := v.walkSet(set, builder.Append); err != nil {
		return nil, err
	}
	return builder.Build(), nil
}

// walkSet walks over all batches of a set.
func (v *validation) walkSet(set []byte, take func(Record) error) error {
	for b, err := range Batches(set) {
		if err != nil {
			return err
		}
		if err := v.walk(b, take); err != nil {
			return err
		}
	}
	return nil
}
