package commitlog

import (
	"errors"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// provenEpochs returns the leader epochs, which are held against the batches where they begin
// when somebody asks for the first time. If the batches say something else, because the file was
// missing, empty, an older one or damaged, they are made from all batches again.
func (l *Log) provenEpochs() *EpochCache {
	if !l.epochs.proven.Load() {
		o := l.offsets.Load()
		if err := l.proveEpochs(o); err != nil && o == l.offsets.Load() {
			l.logger.Warn("leader epochs cannot be compared with the batches", "partition", l.partition, "err", err)
		}
	}
	return l.epochs
}

func (l *Log) proveEpochs(o *Offsets) error {
	agree, err := l.epochsAgree(o)
	if err != nil {
		return err
	}
	if agree {
		l.epochs.proven.Store(true)
		return nil
	}
	entries, err := l.epochsOfBatches(o)
	if err == nil {
		l.replaceEpochs(o, entries)
	}
	return err
}

// replaceEpochs puts the entries of the batches up to the end in o in the place of those that
// the cache has, unless a truncation has come between.
func (l *Log) replaceEpochs(o *Offsets, entries []checkpoint.EpochEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.offsets.Load()
	if now.End < o.End {
		return
	}
	were := l.epochs.list()
	i, _ := searchStart(were, o.End)
	for _, e := range were[i:] { // written since
		if n := len(entries); n == 0 || entries[n-1].Epoch < e.Epoch {
			entries = append(entries, e)
		}
	}
	l.epochs.proven.Store(true)
	if slices.Equal(entries, were) { // as after batches of an old format
		return
	}
	l.logger.Warn("leader epochs are made from the batches again", "partition", l.partition, "were", were, "are", entries)
	l.epochs.store(entries)
	l.epochs.truncateFromStart(now.LogStart)
}

// epochsAgree looks at the batches on both sides of each beginning, and the first and the last.
func (l *Log) epochsAgree(o *Offsets) (bool, error) {
	offsets := []int64{o.LogStart, o.End - 1}
	for _, e := range l.epochs.list() {
		offsets = append(offsets, e.StartOffset-1, e.StartOffset)
	}
	for _, offset := range offsets {
		if offset < o.LogStart || offset >= o.End {
			continue
		}
		base, epoch, err := epochOfBatchAt(o, offset)
		if err != nil {
			return false, err
		}
		known, _ := l.epochs.epochFor(max(base, o.LogStart), o.End)
		if epoch >= 0 && epoch != known {
			return false, nil
		}
	}
	return true, nil
}

// epochOfBatchAt returns the base offset and the leader epoch of the batch that has an offset, or
// else of the next one in its segment. The epoch is -1 if there is none, or it has none.
func epochOfBatchAt(o *Offsets, offset int64) (base int64, epoch int32, err error) {
	i := floorSegment(o.segments, offset)
	if i < 0 {
		return offset, -1, nil
	}
	s := o.segments[i]
	p, ok, err := s.Translate(offset, 0)
	if !ok || err != nil {
		return offset, -1, exceptCorrupt(err)
	}
	for found, err := range s.Batches(p.Position, p.Position+int64(p.Size)) {
		if err != nil {
			return offset, -1, exceptCorrupt(err)
		}
		return found.Batch.BaseOffset(), epochOf(found.Batch), nil
	}
	return offset, -1, nil
}

func exceptCorrupt(err error) error {
	if errors.Is(err, record.ErrCorrupt) {
		return nil
	}
	return err
}

// epochOf returns a batch's leader epoch, -1 for an old format.
func epochOf(b record.Batch) int32 {
	if b.Magic() < 2 {
		return -1
	}
	return b.LeaderEpoch()
}

// epochsOfBatches returns what the batches from the log start on say.
func (l *Log) epochsOfBatches(o *Offsets) ([]checkpoint.EpochEntry, error) {
	var w epochWalk
	for _, s := range o.segments[max(0, floorSegment(o.segments, o.LogStart)):] {
		if err := w.segment(s, o.LogStart, o.End); err != nil {
			return nil, err
		}
	}
	l.epochs.file.Lock()
	file, err := checkpoint.ReadEpochs(l.fs, l.epochs.path)
	l.epochs.file.Unlock()
	if !checkpoint.Whole(err) {
		file = nil
	}
	return epochsOfRuns(w.runs, file, l.epochs.entered.Load()), nil
}

// An epochRun is count batches of the same leader epoch, one behind the other.
type epochRun struct {
	checkpoint.EpochEntry
	count int
}

// An epochWalk collects where leader epochs begin.
type epochWalk struct{ runs []epochRun }

func (w *epochWalk) segment(s *segment.Segment, start, end int64) error {
	for found, err := range s.Batches(0, s.Size()) {
		if err != nil {
			return exceptCorrupt(err)
		}
		b := found.Batch
		n := len(w.runs)
		switch {
		case b.NextOffset() <= start:
		case b.BaseOffset() >= end:
			return nil
		case b.Magic() < 2:
			w.runs = nil // Kafka forgets what came before
		case n > 0 && w.runs[n-1].Epoch == b.LeaderEpoch():
			w.runs[n-1].count++
		case b.LeaderEpoch() >= 0:
			w.runs = append(w.runs, epochRun{checkpoint.EpochEntry{Epoch: b.LeaderEpoch(), StartOffset: max(b.BaseOffset(), start)}, 1})
		}
	}
	return nil
}

// epochsOfRuns returns where epochs begin. No checksum covers the epoch of a batch: a single
// batch that its neighbours or the epoch of the leader contradict, or that is of no later epoch
// than the file knows, is taken for what the file says, if that fits.
func epochsOfRuns(runs []epochRun, file []checkpoint.EpochEntry, leader int32) (entries []checkpoint.EpochEntry) {
	if leader < 0 {
		leader = math.MaxInt32
	}
	before := int32(0)
	for i, r := range runs {
		next := leader
		if i+1 < len(runs) && runs[i+1].Epoch >= before {
			next = min(next, runs[i+1].Epoch)
		}
		fits := func(epoch int32) bool { return before <= epoch && epoch <= next }
		known := int32(-1)
		if n, found := searchStart(file, r.StartOffset); found {
			known = file[n].Epoch
		} else if n > 0 {
			known = file[n-1].Epoch
		}
		switch {
		case r.count == 1 && fits(known) && (!fits(r.Epoch) || r.Epoch < file[len(file)-1].Epoch):
			r.Epoch = known
		case r.Epoch < before || r.Epoch > leader || r.count == 1 && r.Epoch != known && !fits(r.Epoch):
			continue
		}
		if n := len(entries); n == 0 || entries[n-1].Epoch != r.Epoch {
			entries = append(entries, r.EpochEntry)
		}
		before = r.Epoch
	}
	return entries
}
