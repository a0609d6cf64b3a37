package offline

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/record"
)

// A producerWalk replays what producers wrote and holds each snapshot of them that it comes past
// against that. A snapshot may know producers that the log says nothing of any more, and it may
// have forgotten some: those that had not written for producer.id.expiration.ms.
type producerWalk struct {
	snapshots []producerSnapshotFile // those ahead, by offset
	producers map[int64]*replayed
	lost      bool // a bad batch may be of any producer
}

// A producerSnapshotFile is a .snapshot file that could be decoded.
type producerSnapshotFile struct {
	path   string
	offset int64 // the first that it does not cover
	list   []producerEntry
}

// A replayed producer is what a snapshot would say of it, as far as the log tells.
type replayed struct {
	producerEntry
	whole  bool // the epoch began in the log, so that the last batch is known
	marked bool // the last thing that was written is a marker
	ended  bool // a marker was seen, so that the beginning of an open transaction is known

	dataTimestamp int64 // of the last batch that is no marker, which Kafka 1 goes by
}

// loadProducers reads the snapshots of a partition and checks what can be told without the log.
func (p *partition) loadProducers() error {
	for name, kind := range p.kinds {
		if kind != producerSnapshot {
			continue
		}
		path := filepath.Join(p.dir, name)
		data, err := readIndex(p.fs, path)
		if errors.Is(err, fs.ErrNotExist) {
			p.vanished(path)
			continue
		}
		if err != nil {
			return err
		}
		list, err := decodeProducers(data)
		if err != nil {
			p.damage(path, -1, -1, "%v; an older snapshot and the log replace it", err)
			continue
		}
		_, offset := classify(name)
		f := producerSnapshotFile{path, offset, list}
		p.soundProducers(f)
		p.producers.snapshots = append(p.producers.snapshots, f)
	}
	slices.SortFunc(p.producers.snapshots, func(a, b producerSnapshotFile) int { return int(max(-1, min(1, a.offset-b.offset))) })
	return nil
}

func (p *partition) soundProducers(f producerSnapshotFile) {
	seen := map[int64]bool{}
	for i, e := range f.list {
		position := int64(snapshotHeaderSize + i*snapshotEntrySize)
		switch {
		case seen[e.id]:
			p.damage(f.path, position, -1, "producer %d is listed twice", e.id)
		case e.lastOffset >= f.offset || e.txnFirstOffset >= f.offset:
			p.damage(f.path, position, e.lastOffset, "producer %d has offsets %d and %d, the snapshot ends at %d",
				e.id, e.lastOffset, e.txnFirstOffset, f.offset)
		}
		seen[e.id] = true
	}
}

// batch takes the next good batch.
func (w *producerWalk) batch(s *segmentCheck, b record.Batch, in insight) {
	if len(w.snapshots) == 0 {
		return
	}
	w.pass(s.partition, in.first)
	if b.Magic() < 2 || b.ProducerID() < 0 || b.IsControl() && in.control != record.ControlAbort && in.control != record.ControlCommit {
		return
	}
	if w.producers == nil {
		w.producers = map[int64]*replayed{}
	}
	r := w.producers[b.ProducerID()]
	if r == nil {
		r = &replayed{producerEntry: producerEntry{id: b.ProducerID(), epoch: b.ProducerEpoch(), txnFirstOffset: -1}, dataTimestamp: -1}
		r.forget()
		w.producers[r.id] = r
	} else if r.epoch != b.ProducerEpoch() {
		r.epoch, r.whole = b.ProducerEpoch(), true
		r.forget()
	}
	r.timestamp = b.MaxTimestamp()
	r.marked = b.IsControl()
	if r.marked {
		r.coordinatorEpoch, r.txnFirstOffset, r.ended = in.coordinatorEpoch, -1, true
		return
	}
	r.whole, r.dataTimestamp = true, r.timestamp
	r.lastSequence, r.lastOffset, r.offsetDelta = b.LastSequence(), in.last, b.LastOffsetDelta()
	if b.IsTransactional() && r.txnFirstOffset < 0 {
		r.txnFirstOffset = in.first
	}
}

// forget is what the beginning of an epoch does.
func (r *replayed) forget() { r.lastSequence, r.lastOffset, r.offsetDelta = -1, -1, 0 }

// pass checks the snapshots up to an offset, which the walk has reached.
func (w *producerWalk) pass(p *partition, offset int64) {
	for len(w.snapshots) > 0 && w.snapshots[0].offset <= offset {
		f := w.snapshots[0]
		w.snapshots = w.snapshots[1:]
		if w.lost || len(p.logs) == 0 || f.offset <= p.logs[0] {
			continue
		}
		w.compare(p, f)
	}
}

func (w *producerWalk) compare(p *partition, f producerSnapshotFile) {
	complete := !p.compacted && len(p.offsets.gaps) == 0
	open := map[int64]bool{}
	for id, r := range w.producers {
		open[id] = complete && r.txnFirstOffset >= 0
	}
	for i, e := range f.list {
		delete(open, e.id)
		r := w.producers[e.id]
		agrees := true
		switch {
		case r == nil:
			agrees = max(e.lastOffset, e.txnFirstOffset) < p.wholeFrom()
		case complete:
			agrees = r.agrees(e, p.logs[0])
		case r.epoch == e.epoch && r.whole && e.lastOffset >= 0:
			agrees = e.lastOffset > r.lastOffset || e.lastOffset == r.lastOffset && e.lastSequence == r.lastSequence
		}
		if agrees {
			continue
		}
		position := int64(snapshotHeaderSize + i*snapshotEntrySize)
		if r == nil {
			p.damage(f.path, position, e.lastOffset, "producer %d has offsets %d and %d, the log has no batch of it", e.id, e.lastOffset, e.txnFirstOffset)
		} else {
			p.damage(f.path, position, e.lastOffset, "%s; the log says %s", e.appendText(nil), r.appendText(nil))
		}
	}
	for id, open := range open {
		if open { // such a producer does not expire
			p.damage(f.path, -1, w.producers[id].txnFirstOffset, "producer %d with a transaction open since offset %d is missing",
				id, w.producers[id].txnFirstOffset)
		}
	}
}

// agrees reports whether a snapshot may say e where the log from a start on says r.
func (r *replayed) agrees(e producerEntry, start int64) bool {
	switch {
	case e.epoch != r.epoch || r.whole && e.timestamp != r.timestamp && e.timestamp != r.dataTimestamp:
		return false
	case !r.whole && e.lastOffset >= start:
		return false
	case r.whole && (e.lastOffset != r.lastOffset || e.lastSequence != r.lastSequence || e.offsetDelta != r.offsetDelta):
		return false
	case r.marked && e.coordinatorEpoch != r.coordinatorEpoch:
		return false
	case e.txnFirstOffset == r.txnFirstOffset:
		return true
	}
	return !r.ended && r.txnFirstOffset >= 0 && 0 <= e.txnFirstOffset && e.txnFirstOffset < start
}

// finish checks the snapshots at the end of the log, and reports those behind it.
func (w *producerWalk) finish(p *partition) {
	w.pass(p, p.end())
	for _, f := range w.snapshots {
		if !p.torn {
			p.damage(f.path, -1, f.offset, "the log ends at %d", p.end())
		}
	}
}
