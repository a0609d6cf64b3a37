package compaction

import (
	"io"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
)

// buildMap notes which record of each dirty key survives, from the first dirty offset on until
// the map is full, and how far it came (doc/format.md 7.4).
func (r *run) buildMap() error {
	r.latest = r.plan.FirstDirty - 1
	full, err := r.mapRange(r.plan.FirstDirty, r.plan.FirstUncleanable, r.mapWindow)
	if err != nil {
		return err
	}
	if !full {
		r.latest = r.plan.FirstUncleanable - 1
	}
	if r.m.versioned {
		// What was cleaned before may beat what came later.
		_, err = r.mapRange(r.view.LogStart, r.plan.FirstDirty, r.raiseWindow)
	}
	return err
}

// mapRange hands the records in offsets [start, end), and perhaps some in front of them, to
// take, a window at a time, until it says that it is full. Control batches and records of
// aborted transactions do not count.
func (r *run) mapRange(start, end int64, take func() (full bool, err error)) (full bool, err error) {
	if start >= end {
		return false, nil
	}
	txns := newTransactions()
	aborted, undecided, err := r.view.Aborted(start, end)
	if err != nil {
		return false, err
	}
	txns.add(aborted)
	txns.undecided = undecided
	for _, s := range r.view.Between(start, end) {
		from, ok, err := s.Translate(start, 0)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		r.source.open(s, from.Position)
		if full, err := r.mapSegment(txns, start, take); full || err != nil {
			return full, err
		}
	}
	return false, nil
}

func (r *run) mapSegment(txns *transactions, start int64, take func() (bool, error)) (full bool, err error) {
	for {
		chunk, err := r.source.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		r.result.MapBytesRead += int64(len(chunk))
		r.progress.MapBytes.Add(int64(len(chunk)))
		if err := r.use(len(chunk)); err != nil {
			return false, err
		}
		for b := range record.Batches(chunk) {
			if b.LastOffset() >= start {
				r.mapBatch(b, txns)
			}
			if r.window.full() {
				if full, err := take(); full || err != nil {
					return full, err
				}
			}
		}
		if full, err := take(); full || err != nil {
			return full, err
		}
	}
}

// mapBatch adds a batch to the window. One whose records cannot be read has no entries: it
// stays as it is, and so does what it may have superseded.
func (r *run) mapBatch(b record.Batch, txns *transactions) {
	if b.IsControl() {
		txns.marker(b)
		return
	}
	if txns.isUndecided(b) || txns.data(b) {
		return
	}
	r.window.add(b, 0)
	if err := r.window.load(&r.reading); err != nil {
		r.noteUnreadable(b, err)
	}
}

// mapWindow puts the records of the window into the map.
func (r *run) mapWindow() (full bool, err error) {
	defer r.window.reset()
	r.m.touch(r.window.entries)
	for i := range r.window.batches {
		b := &r.window.batches[i]
		for k := b.first; k < b.end; k++ {
			e := &r.window.entries[k]
			if e.keyless || e.offset < r.plan.FirstDirty {
				continue
			}
			if ok, err := r.m.put(e); !ok || err != nil {
				return !ok, err
			}
			r.latest = e.offset
		}
		r.result.MapRecords += int64(b.end - b.first)
		r.latest = max(r.latest, b.LastOffset())
	}
	return false, nil
}

// raiseWindow lets records that were cleaned before win against dirty ones.
func (r *run) raiseWindow() (full bool, err error) {
	defer r.window.reset()
	r.m.touch(r.window.entries)
	for i := range r.window.entries {
		if e := &r.window.entries[i]; !e.keyless && e.offset < r.plan.FirstDirty {
			r.m.raise(e)
		}
	}
	return false, nil
}

// noteUnreadable says once per cleaning that a batch with a right checksum makes no sense.
func (r *run) noteUnreadable(b record.Batch, err error) {
	if !r.unreadable {
		r.unreadable = true
		r.logger.Error("batch stays as it is, its records cannot be read", "partition", r.log.Partition(), "offset", b.BaseOffset(), "err", err)
	}
}

// legacyHorizon is the time of the newest segment that was cleaned before, less
// delete.retention.ms: tombstones of format v0 or v1 in files that are not newer go.
func (r *run) legacyHorizon() (int64, error) {
	var horizon int64
	for _, s := range r.view.Segments {
		if s.BaseOffset() >= r.plan.FirstDirty {
			break
		}
		modified, err := s.ModTime()
		if err != nil {
			return 0, err
		}
		horizon = modified.UnixMilli() - r.config.DeleteRetentionMs
	}
	return horizon, nil
}

// damaged reports whether a segment is known to have damage.
func damaged(s commitlog.CleanSegment) bool { return len(s.Damages()) > 0 }
