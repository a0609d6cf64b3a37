package coordinator

import (
	"github.com/gregor-kafka/gregor/internal/record"
)

// recordOverheadMax bounds what a record of the sizes we write takes beside its key and
// value: length, attributes, timestamp and offset deltas, two lengths, header count.
const recordOverheadMax = 32

// sizeBound is at least the size of the batch that holds the records of writes.
func sizeBound(writes []Write) int {
	size := record.HeaderSize
	for _, w := range writes {
		for _, r := range w.Records {
			size += recordOverheadMax + len(r.Key) + len(r.Value)
		}
	}
	return size
}

// countThatFits says how many of writes go into one batch: at least one.
func countThatFits(writes []Write, maxBatch int) int {
	size := record.HeaderSize
	for i := range writes {
		size += sizeBound(writes[i:i+1]) - record.HeaderSize
		if i > 0 && size > maxBatch {
			return i
		}
	}
	return len(writes)
}

// encode makes one batch of all records, or returns nil when there are none.
func encode(writes []Write, codec record.Codec, nowMs int64) ([]byte, error) {
	b := record.NewBuilder(record.BuilderOptions{Codec: codec})
	for _, w := range writes {
		for _, r := range w.Records {
			if err := b.Append(record.Record{Offset: int64(b.Count()), Timestamp: nowMs, Key: r.Key, Value: r.Value}); err != nil {
				return nil, err
			}
		}
	}
	return b.Build(), nil
}
