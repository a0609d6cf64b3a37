package check

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
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
	list   []files.ProducerEntry
}

// A replayed producer is what a snapshot would say of it, as far as the log tells.
type replayed struct {
	files.ProducerEntry
	whole  bool // the epoch began in the log, so that the last batch is known
	marked bool // the last thing that was written is a marker
	ended  bool // a marker was seen, so that the beginning of an open transaction is known

	dataTimestamp int64 // of the last batch that is no marker, which Kafka 1 goes by
}

// loadProducers reads the snapshots of a partition and checks what can be told without the log.
func (p *partition) loadProducers() error {
	for name, kind := range p.kinds {
		if kind != files.ProducerSnapshot {
			continue
		}
		path := filepath.Join(p.dir, name)
		data, err := files.Read(p.fs, path)
		if errors.Is(err, fs.ErrNotExist) {
			p.vanished(path)
			continue
		}
		if err != nil {
			return err
		}
		list, err := files.DecodeProducers(data)
		if err != nil {
			p.damage(path, -1, -1, "%v; an older snapshot and the log replace it", err)
			continue
		}
		_, offset := files.Classify(name)
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
		position := files.ProducerPosition(i)
		switch {
		case seen[e.ID]:
			p.damage(f.path, position, -1, "producer %d is listed twice", e.ID)
		case e.LastOffset >= f.offset || e.TxnFirstOffset >= f.offset:
			p.damage(f.path, position, e.LastOffset, "producer %d has offsets %d and %d, the snapshot ends at %d",
				e.ID, e.LastOffset, e.TxnFirstOffset, f.offset)
		}
		seen[e.ID] = true
	}
}

// Batch takes the next good batch.
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
		r = &replayed{ProducerEntry: files.ProducerEntry{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), TxnFirstOffset: -1}, dataTimestamp: -1}
		r.forget()
		w.producers[r.ID] = r
	} else if r.Epoch != b.ProducerEpoch() {
		r.Epoch, r.whole = b.ProducerEpoch(), true
		r.forget()
	}
	r.Timestamp = b.MaxTimestamp()
	r.marked = b.IsControl()
	if r.marked {
		r.CoordinatorEpoch, r.TxnFirstOffset, r.ended = in.coordinatorEpoch, -1, true
		return
	}
	r.whole, r.dataTimestamp = true, r.Timestamp
	r.LastSequence, r.LastOffset, r.OffsetDelta = b.LastSequence(), in.last, b.LastOffsetDelta()
	if b.IsTransactional() && r.TxnFirstOffset < 0 {
		r.TxnFirstOffset = in.first
	}
}

// forget is what the beginning of an epoch does.
func (r *replayed) forget() { r.LastSequence, r.LastOffset, r.OffsetDelta = -1, -1, 0 }

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
		open[id] = complete && r.TxnFirstOffset >= 0
	}
	for i, e := range f.list {
		delete(open, e.ID)
		r := w.producers[e.ID]
		agrees := true
		switch {
		case r == nil:
			agrees = max(e.LastOffset, e.TxnFirstOffset) < p.wholeFrom()
		case complete:
			agrees = r.agrees(e, p.logs[0])
		case r.Epoch == e.Epoch && r.whole && e.LastOffset >= 0:
			agrees = e.LastOffset > r.LastOffset || e.LastOffset == r.LastOffset && e.LastSequence == r.LastSequence
		}
		if agrees {
			continue
		}
		position := files.ProducerPosition(i)
		if r == nil {
			p.damage(f.path, position, e.LastOffset, "producer %d has offsets %d and %d, the log has no batch of it", e.ID, e.LastOffset, e.TxnFirstOffset)
		} else {
			p.damage(f.path, position, e.LastOffset, "%s; the log says %s", e.AppendText(nil), r.AppendText(nil))
		}
	}
	for id, open := range open {
		if open { // such a producer does not expire
			p.damage(f.path, -1, w.producers[id].TxnFirstOffset, "producer %d with a transaction open since offset %d is missing",
				id, w.producers[id].TxnFirstOffset)
		}
	}
}

// agrees reports whether a snapshot may say e where the log from a start on says r.
func (r *replayed) agrees(e files.ProducerEntry, start int64) bool {
	switch {
	case e.Epoch != r.Epoch || r.whole && e.Timestamp != r.Timestamp && e.Timestamp != r.dataTimestamp:
		return false
	case !r.whole && e.LastOffset >= start:
		return false
	case r.whole && (e.LastOffset != r.LastOffset || e.LastSequence != r.LastSequence || e.OffsetDelta != r.OffsetDelta):
		return false
	case r.marked && e.CoordinatorEpoch != r.CoordinatorEpoch:
		return false
	case e.TxnFirstOffset == r.TxnFirstOffset:
		return true
	}
	return !r.ended && r.TxnFirstOffset >= 0 && 0 <= e.TxnFirstOffset && e.TxnFirstOffset < start
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
