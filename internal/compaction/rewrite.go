package compaction

import (
	"errors"
	"io"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// A retention is what becomes of a batch. (Kafka: BatchRetention)
type retention int8

const (
	retainFiltered    retention = iota // its records are looked at one by one
	retainBatch                        // it stays as it is
	retainEmpty                        // its header stays
	retainWithHorizon                  // it stays and gets a delete horizon
	retainNothing
)

// rewrite replaces the segments up to the end of the map, a group at a time.
func (r *run) rewrite() error {
	segments := r.view.Between(r.view.Segments[0].BaseOffset(), r.latest+1)
	weights := make([]weight, len(segments))
	for i, s := range segments {
		var err error
		if weights[i], err = weigh(s); err != nil {
			return err
		}
	}
	for len(segments) > 0 {
		n := group(weights, &r.config)
		txns, result := r.txns.clone(), r.result
		err := r.rewriteGroup(segments[:n], weights[0].damaged)
		if errors.Is(err, errDamaged) {
			// Known now, so that the next group ends in front of it.
			r.txns, r.result = txns, result
			for i := range n {
				weights[i].damaged = damaged(segments[i])
			}
			continue
		}
		if err != nil {
			return err
		}
		segments, weights = segments[n:], weights[n:]
	}
	return nil
}

func (r *run) rewriteGroup(group []commitlog.CleanSegment, isDamaged bool) error {
	if isDamaged {
		return r.observe(group[0])
	}
	r.out = output{log: r.log, used: r.wrote, bufSize: r.source.size, buf: r.out.buf[:0]}
	err := r.fillOutput(group)
	if err == nil {
		old := make([]*segment.Segment, len(group))
		for i, s := range group {
			old[i] = s.Segment
		}
		err = r.log.ReplaceSegments(r.view, r.out.segments, old)
		if err != nil && !isUndone(err) {
			return err // the files are what the next start makes of them
		}
	}
	if err != nil {
		return errors.Join(err, r.out.discard())
	}
	r.result.Groups += len(r.out.segments)
	r.result.Segments += len(group)
	return nil
}

// isUndone reports whether a swap that failed has left the log as it was.
func isUndone(err error) bool {
	_, full := errors.AsType[*commitlog.DiskFullError](err)
	return full || errors.Is(err, commitlog.ErrSegmentsChanged)
}

func (r *run) fillOutput(group []commitlog.CleanSegment) error {
	if err := r.out.begin(group[0].BaseOffset()); err != nil {
		return err
	}
	for _, s := range group {
		if err := r.rewriteSegment(s); err != nil {
			return err
		}
	}
	modified, err := group[len(group)-1].ModTime()
	if err != nil {
		return err
	}
	return r.out.finish(modified)
}

// observe takes notice of the transactions in a segment that stays as it is because of damage.
// What may be in the damage can come back, so that nothing behind it may go that keeps older
// records down: no tombstone and no marker.
func (r *run) observe(s commitlog.CleanSegment) error {
	r.source.open(s, 0)
	for {
		chunk, err := r.source.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := r.use(len(chunk)); err != nil {
			return err
		}
		for b := range record.Batches(chunk) {
			if b.IsControl() {
				r.txns.marker(b)
			} else {
				r.txns.data(b)
			}
		}
	}
	r.lost()
	r.result.Damaged++
	r.logger.Warn("segment is not cleaned because of damage", "partition", r.log.Partition(), "segment", s.BaseOffset())
	return nil
}

// lost says that from here on there may be older records that nobody has seen.
func (r *run) lost() { r.txns.lost = true }

func (r *run) rewriteSegment(s commitlog.CleanSegment) error {
	aborted, undecided, err := r.view.Aborted(s.BaseOffset(), s.Next)
	if err != nil {
		return err
	}
	r.txns.add(aborted)
	r.txns.undecided = undecided
	modified, err := s.ModTime()
	if err != nil {
		return err
	}
	r.oldTombstones = modified.UnixMilli() > r.horizonOfOld
	r.source.open(s, 0)
	for {
		chunk, err := r.source.next()
		if r.source.damaged {
			return errDamaged
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		r.result.BytesRead += int64(len(chunk))
		r.progress.ReadBytes.Add(int64(len(chunk)))
		if err := r.use(len(chunk)); err != nil {
			return err
		}
		if err := r.rewriteChunk(chunk); err != nil {
			return err
		}
	}
}

func (r *run) rewriteChunk(chunk []byte) error {
	at := 0
	for b := range record.Batches(chunk) {
		r.judge(r.window.add(b, at))
		at += len(b)
		if r.window.full() {
			if err := r.writeWindow(chunk); err != nil {
				return err
			}
		}
	}
	if err := r.writeWindow(chunk); err != nil {
		return err
	}
	return r.out.endRun()
}

// judge decides about a batch as far as its header tells (doc/format.md 7.5).
func (r *run) judge(b *windowBatch) {
	r.result.BatchesRead++
	b.keepEmpty = b.NextOffset() == r.plan.FirstUncleanable ||
		r.view.EndsProducer(b.ProducerID(), b.ProducerEpoch(), b.LastOffset(), b.IsControl())
	switch {
	case b.IsControl():
		r.judgeMarker(b)
	case r.txns.isUndecided(b.Batch):
		b.retention = retainBatch
		r.lost()
		r.countKept(b)
	case r.txns.data(b.Batch):
		b.retention = retainEmpty
		r.countGone(b, &r.result.Aborted)
	case b.Count() == 0:
		b.retention = retainEmpty
	default:
		b.retention = retainFiltered
		if err := r.window.load(&r.reading); err != nil {
			r.noteUnreadable(b.Batch, err)
			r.lost()
			b.retention = retainBatch
		}
	}
}

func (r *run) judgeMarker(b *windowBatch) {
	empty, aborted := r.txns.marker(b.Batch)
	if aborted != nil {
		r.out.aborted = append(r.out.aborted, *aborted)
	}
	switch horizon, ok := b.DeleteHorizon(); {
	case b.Count() == 0:
		b.retention = retainEmpty
	case !empty:
		b.retention = retainBatch
		r.countKept(b)
	case !ok:
		b.retention = retainWithHorizon
		r.countKept(b)
	case horizon <= r.now:
		b.retention = retainEmpty
		r.countGone(b, &r.result.Markers)
	default:
		b.retention = retainBatch
		r.countKept(b)
	}
}

func (r *run) countKept(b *windowBatch) {
	r.result.RecordsRead += int64(b.Count())
	r.result.RecordsWritten += int64(b.Count())
}

func (r *run) countGone(b *windowBatch, why *int64) {
	r.result.RecordsRead += int64(b.Count())
	*why += int64(b.Count())
}

// writeWindow looks the records of the window up and writes what stays.
func (r *run) writeWindow(chunk []byte) error {
	defer r.window.reset()
	r.m.touch(r.window.entries)
	for i := range r.window.batches {
		b := &r.window.batches[i]
		if b.retention == retainFiltered {
			r.filter(b)
		}
		if err := r.write(b, chunk); err != nil {
			return err
		}
	}
	r.progress.Records.Add(int64(len(r.window.entries)))
	return nil
}

// filter decides about the records of a batch, and so about the batch.
func (r *run) filter(b *windowBatch) {
	r.keep = r.keep[:0]
	kept, tombstones := 0, false
	alive := r.tombstonesLive(b.Batch)
	for k := b.first; k < b.end; k++ {
		e := &r.window.entries[k]
		keep := r.retains(e, alive)
		r.keep = append(r.keep, keep)
		if keep {
			kept++
			tombstones = tombstones || e.tombstone
		}
	}
	r.result.RecordsRead += int64(len(r.keep))
	r.result.RecordsWritten += int64(kept)
	switch _, has := b.DeleteHorizon(); {
	case kept == 0:
		b.retention = retainEmpty
	case tombstones && b.Magic() >= 2 && !has:
		b.retention = retainWithHorizon
	case kept == len(r.keep):
		b.retention = retainBatch
	}
}

// tombstonesLive reports whether readers may still need the tombstones of a batch.
func (r *run) tombstonesLive(b record.Batch) bool {
	switch {
	case r.txns.lost:
		return true
	case b.Magic() < 2:
		return r.oldTombstones
	}
	horizon, ok := b.DeleteHorizon()
	return !ok || r.now < horizon
}

// retains decides about a record of a batch that is not discarded.
func (r *run) retains(e *entry, tombstonesLive bool) bool {
	switch {
	case e.offset > r.latest:
		return true
	case e.keyless:
		r.result.Keyless++
		return false
	case r.m.beaten(e):
		r.result.Superseded++
		return false
	case e.tombstone && !tombstonesLive:
		r.result.Tombstones++
		return false
	}
	return true
}

// write carries out the retention of a batch.
func (r *run) write(b *windowBatch, chunk []byte) error {
	last := b.LastOffset()
	switch b.retention {
	case retainBatch:
		r.result.BatchesCopied++
		return r.out.keep(chunk, b.at, len(b.Batch), last)
	case retainEmpty:
		if !b.keepEmpty || b.Magic() < 2 {
			return nil
		}
		return r.out.rebuild(last, func(dst []byte) ([]byte, error) { return append(dst, record.EmptyBatch(b.Batch)...), nil })
	}
	return r.out.rebuild(last, func(dst []byte) ([]byte, error) { return r.appendRetained(dst, b) })
}

// appendRetained appends what is left of a batch.
func (r *run) appendRetained(dst []byte, b *windowBatch) ([]byte, error) {
	if b.Magic() < 2 {
		return r.appendMessages(dst, b)
	}
	o := record.RetainOptions{Level: r.config.Level(b.Codec())}
	if b.retention == retainWithHorizon {
		o.DeleteHorizon = r.now + r.config.DeleteRetentionMs
	}
	keep, records := r.keep, b.records
	if b.IsControl() {
		keep = make([]bool, b.Count())
		for i := range keep {
			keep[i] = true
		}
		var err error
		if records, err = record.AppendRecords(nil, b.Batch, r.reading.maxDecompressed); err != nil {
			return dst, err
		}
	}
	return record.AppendRetained(dst, b.Batch, records, keep, o)
}

// appendMessages appends what is left of a wrapper of format v0 or v1, in its format.
func (r *run) appendMessages(dst []byte, b *windowBatch) ([]byte, error) {
	o := record.SetOptions{Magic: b.Magic(), Codec: b.Codec(), Level: r.config.Level(b.Codec()), AppendTime: b.MaxTimestamp()}
	if o.TimestampType = b.TimestampType(); o.TimestampType == record.NoTimestamp {
		o.TimestampType = record.CreateTime
	}
	set, err := record.NewSetBuilder(o)
	if err != nil {
		return dst, err
	}
	i := 0
	for m, err := range b.RecordsMax(r.reading.maxDecompressed) {
		if err == nil && r.keep[i] {
			err = set.Append(m)
		}
		if err != nil {
			return dst, err
		}
		i++
	}
	return append(dst, set.Build()...), nil
}
