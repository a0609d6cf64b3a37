package coordinator

import "time"

// A Record is a key and a value for the log. A nil value is a tombstone.
type Record struct {
	Key, Value []byte
}

// A Replayed record is one that was read from the log. Key and Value are valid only
// during the call that passes it.
type Replayed struct {
	Record
	Offset     int64
	ProducerID int64 // of the transaction that the record belongs to, or -1
}

// A Machine is the state of one shard. The runtime calls it from one goroutine at a time.
type Machine interface {
	// Replay applies one record of the log. An error means that the record cannot be
	// understood; it is reported and the record skipped.
	Replay(r Replayed) error
	// EndTransaction applies the marker that ends a producer's transaction.
	EndTransaction(producerID int64, commit bool)
	// Loaded runs once, after the whole log was replayed and before the first event.
	Loaded(t *Turn)
	// Deadline says when the machine wants Tick, if ever.
	Deadline() (time.Time, bool)
	// Tick does what is due at t.Now.
	Tick(t *Turn)
	// Stop answers every request that the machine holds on to with err. The machine is
	// not used afterwards.
	Stop(err error)
}

// A Turn is one step of a shard: what time it is, and what the step wants written.
type Turn struct {
	Now    time.Time
	Writes []Write
}

// A Write is a list of records that go to the log in one batch, and what follows.
// Done gets the offset of the first record, or the reason why none was written. The turn
// it gets is a new one, in which it may ask for further writes.
type Write struct {
	Records []Record
	Done    func(t *Turn, first int64, err error)
}

// Write asks for records to be appended. With no records Done follows all the same, when
// the writes before it are committed.
func (t *Turn) Write(records []Record, done func(t *Turn, first int64, err error)) {
	t.Writes = append(t.Writes, Write{records, done})
}

// NowMs is the turn's time as Kafka's records have it: milliseconds since 1970.
func (t *Turn) NowMs() int64 { return t.Now.UnixMilli() }
