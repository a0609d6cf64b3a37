package compaction

import (
	"encoding/binary"
	"math"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

// An entry is what the map asks of a record.
type entry struct {
	digest
	offset    int64
	version   int64 // for a versioned map
	keyless   bool
	tombstone bool
}

// A window is some batches in a row with all their records, which are looked up together (see
// offsetMap.touch).
type window struct {
	batches []windowBatch
	entries []entry
	plain   []byte // records that were compressed
}

// A windowBatch is a batch of a window. The records are looked at if it has some entries.
type windowBatch struct {
	record.Batch
	at         int    // position in its chunk
	records    []byte // of a v2 batch, decompressed
	first, end int    // its entries
	retention  retention
	keepEmpty  bool // if only its header, it stays
}

// A window is full when it has so many records, or so many decompressed bytes.
const (
	windowEntries = 256
	windowBytes   = 1 << 20
)

func (w *window) full() bool { return len(w.entries) >= windowEntries || len(w.plain) >= windowBytes }

func (w *window) reset() {
	w.batches, w.entries = w.batches[:0], w.entries[:0]
	if cap(w.plain) > 2*windowBytes {
		w.plain = nil
	}
	w.plain = w.plain[:0]
}

// add takes a batch in without its records.
func (w *window) add(b record.Batch, at int) *windowBatch {
	w.batches = append(w.batches, windowBatch{Batch: b, at: at, first: len(w.entries), end: len(w.entries)})
	return &w.batches[len(w.batches)-1]
}

// A recordReader says how records are read.
type recordReader struct {
	*hasher
	strategy        commitlog.CompactionStrategy
	header          string // for CompactByHeader
	maxDecompressed int
}

// load reads the records of the batch that was added last. An error means that they are not
// what a batch may contain; then there are no entries for it.
func (w *window) load(r *recordReader) error {
	b := &w.batches[len(w.batches)-1]
	var err error
	if b.Magic() < 2 {
		err = w.loadMessages(b, r)
	} else {
		err = w.loadRecords(b, r)
	}
	if err != nil {
		w.entries = w.entries[:b.first]
	}
	b.end = len(w.entries)
	return err
}

func (w *window) loadRecords(b *windowBatch, r *recordReader) (err error) {
	b.records = b.Batch[record.HeaderSize:]
	if b.Codec() != record.None {
		start := len(w.plain)
		if w.plain, err = record.AppendRecords(w.plain, b.Batch, r.maxDecompressed); err != nil {
			return err
		}
		b.records = w.plain[start:]
	}
	base := b.BaseOffset()
	s := record.NewScan(b.Batch, b.records)
	for s.Next() {
		key, ok := s.Key()
		e := entry{offset: base + int64(s.OffsetDelta()), keyless: !ok, tombstone: s.IsTombstone()}
		if ok {
			e.digest = r.hash(key)
		}
		if r.strategy != commitlog.CompactByOffset {
			e.version = r.version(b, &s)
		}
		w.entries = append(w.entries, e)
	}
	return s.Err()
}

// version is what a record is compared by. Records without one lose against all that have one.
func (r *recordReader) version(b *windowBatch, s *record.Scan) int64 {
	switch {
	case r.strategy == commitlog.CompactByHeader:
		if value, ok := s.Header(r.header); ok && len(value) == 8 {
			return int64(binary.BigEndian.Uint64(value))
		}
		return math.MinInt64
	case b.TimestampType() == record.LogAppendTime:
		return b.MaxTimestamp()
	}
	return b.BaseTimestamp() + s.TimestampDelta()
}

func (w *window) loadMessages(b *windowBatch, r *recordReader) error {
	for m, err := range b.RecordsMax(r.maxDecompressed) {
		if err != nil {
			return err
		}
		e := entry{offset: m.Offset, keyless: m.Key == nil, tombstone: m.Value == nil, version: m.Timestamp}
		if r.strategy == commitlog.CompactByHeader {
			e.version = math.MinInt64
		}
		if m.Key != nil {
			e.digest = r.hash(m.Key)
		}
		w.entries = append(w.entries, e)
	}
	return nil
}
