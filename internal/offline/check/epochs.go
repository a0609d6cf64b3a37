package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
)

// An epochWalk holds the leader epochs of batches, which no checksum covers, against
// leader-epoch-checkpoint.
type epochWalk struct {
	entries []checkpoint.EpochEntry
	present bool // the file is there and makes sense
	next    int  // index of the first entry above the batch at hand

	early oddEpoch // first batch of an epoch that reaches from the log start to the first entry

	count int  // batches with an epoch, behind the last message of an old format
	any   bool // there is a batch with an epoch, be it before such a message
	odd   []oddEpoch
	more  int // odd ones that are not in the list

	// news are the batches at the end, as far as all have an epoch above those of the file: a
	// broker that was killed had not written it yet.
	news int
	new  oddEpoch // the first of them

	before, prev oddEpoch // the last two batches with an epoch, got is the epoch
	falling      []oddEpoch
}

// An oddEpoch is a batch whose epoch is not the one of its offset.
type oddEpoch struct {
	path             string
	position, offset int64
	got, want        int32
}

func (p *partition) epochsPath() string { return filepath.Join(p.dir, checkpoint.LeaderEpochs) }

// loadEpochs reads the file and checks what can be told without the log.
func (p *partition) loadEpochs() error {
	if p.kinds[checkpoint.LeaderEpochs] != files.EpochCheckpoint {
		return nil
	}
	entries, err := checkpoint.ReadEpochs(p.fs, p.epochsPath())
	if errors.Is(err, checkpoint.ErrCorrupt) {
		p.damage(p.epochsPath(), -1, -1, "%s", reason(err))
		if !checkpoint.Whole(err) {
			return nil
		}
		err = nil
	}
	if err != nil {
		return err
	}
	before := checkpoint.EpochEntry{Epoch: -1, StartOffset: -1}
	for _, e := range entries {
		if e.Epoch <= before.Epoch || e.StartOffset <= before.StartOffset {
			p.damage(p.epochsPath(), -1, e.StartOffset, "epoch %d from offset %d on comes behind epoch %d from %d on",
				e.Epoch, e.StartOffset, before.Epoch, before.StartOffset)
			return nil
		}
		before = e
	}
	p.epochs.entries, p.epochs.present = entries, true
	return nil
}

// Batch takes the next good batch. One of an old format empties the cache of epochs, so all
// before it is forgotten.
func (w *epochWalk) batch(s *segmentCheck, position int64, b record.Batch) {
	if b.Magic() < 2 {
		w.count, w.odd, w.more, w.news, w.early = 0, nil, 0, 0, oddEpoch{}
		return
	}
	epoch := b.LeaderEpoch()
	if epoch == -1 { // as cleaned from an old format
		return
	}
	w.any = true
	first := b.BaseOffset()
	w.ascend(oddEpoch{s.path, position, first, epoch, w.prev.got})
	if first < w.forgotten(s) {
		if from := max(first, s.logStart); b.LastOffset() >= from && len(w.entries) > 0 && from < w.entries[0].StartOffset && w.early.path == "" {
			w.early = oddEpoch{path: s.path, position: position, offset: from}
		}
		if len(w.entries) > 0 && first < w.entries[0].StartOffset && epoch > w.entries[0].Epoch {
			w.falling = append(w.falling, oddEpoch{s.path, position, first, epoch, w.entries[0].Epoch})
		}
		return
	}
	w.count++
	for w.next > 0 && w.entries[w.next-1].StartOffset > first {
		w.next--
	}
	for w.next < len(w.entries) && w.entries[w.next].StartOffset <= first {
		w.next++
	}
	want := int32(-1)
	if w.next > 0 {
		want = w.entries[w.next-1].Epoch
	}
	now := oddEpoch{s.path, position, first, epoch, want}
	switch {
	case !s.clean && len(w.entries) > 0 && w.next == len(w.entries) && epoch > want:
		if w.news++; w.news == 1 {
			w.new = now
		}
		return
	case w.news > 0:
		w.addOdd(w.new, w.news)
		w.news = 0
	}
	if epoch != want {
		w.addOdd(now, 1)
	}
}

// addOdd adds the first of count odd batches to the list, if there is room.
func (w *epochWalk) addOdd(first oddEpoch, count int) {
	if len(w.odd) == findingsMax {
		w.more += count
		return
	}
	w.odd = append(w.odd, first)
	w.more += count - 1
}

// forgotten is the offset below which the file says nothing: what is deleted. After an unclean
// stop the log start may not have been written yet.
func (w *epochWalk) forgotten(s *segmentCheck) int64 {
	if !s.clean && len(w.entries) > 0 {
		return max(s.logStart, w.entries[0].StartOffset)
	}
	return s.logStart
}

// ascend holds an epoch against those of the batches before: it cannot be smaller. If the one
// before stands out from its neighbours, it is the odd one.
func (w *epochWalk) ascend(now oddEpoch) {
	if now.got < w.prev.got && len(w.falling) < findingsMax {
		if odd := w.prev; w.before.got <= now.got && odd.path != "" {
			odd.want = w.before.got
			w.falling = append(w.falling, odd)
			w.prev = w.before
		} else {
			w.falling = append(w.falling, now)
			return
		}
	}
	w.before, w.prev = w.prev, now
}

// reportFalling reports the batches that only their neighbours contradict.
func (p *partition) reportFalling() {
	for _, e := range p.epochs.falling[:min(len(p.epochs.falling), findingsMax)] {
		if !slices.ContainsFunc(p.epochs.odd, func(o oddEpoch) bool { return o.path == e.path && o.position == e.position }) {
			p.damage(e.path, e.position, e.offset, "leader epoch %d where its neighbours have %d", e.got, e.want)
		}
	}
}

// checkLeaderEpoch holds the epoch of the last batch against the metadata log, which knew of it before
// anything was written in it. An unclean stop may have taken that from the disk.
func (p *partition) checkLeaderEpoch() {
	last := p.epochs.prev
	if p.leaderEpoch == unknown || last.got <= p.leaderEpoch {
		return
	}
	severity := Note
	if p.clean {
		severity = Damage
	}
	p.add(Finding{last.path, last.position, last.offset, severity, "leader epoch " + itoa(int64(last.got)) + ", the metadata log knows none above " +
		itoa(int64(p.leaderEpoch)) + " for the partition: its end is missing, or the epoch is wrong"})
}

// reportEarly reports a log start in front of the first leader epoch, which moves with it. A kill may
// come between the two.
func (p *partition) reportEarly() {
	e := p.epochs.early
	if e.path == "" {
		return
	}
	severity := Note
	if p.clean {
		severity = Damage
	}
	p.add(Finding{filepath.Join(filepath.Dir(p.dir), checkpoint.LogStartOffsets), -1, e.offset, severity, p.name.String() + " has batches from " +
		itoa(e.offset) + " on, its leader epochs begin at " + itoa(p.epochs.entries[0].StartOffset) + ": records that were deleted are back"})
}

// checkBlankEpochs looks for a file without a byte beside batches with epochs in front of messages of an old format. Who
// empties the list because of those, or deletes its entries, leaves the header of a list.
func (p *partition) checkBlankEpochs() error {
	if !p.epochs.any || !p.epochs.present {
		return nil
	}
	info, err := p.fs.Stat(p.epochsPath())
	if err == nil && info.Size() == 0 {
		p.damage(p.epochsPath(), -1, -1, "empty; batches have leader epochs")
	}
	return err
}

// checkEpochs decides who is wrong: the file if most batches contradict it, else the batches.
func (p *partition) checkEpochs() error {
	w := &p.epochs
	p.reportFalling()
	p.checkLeaderEpoch()
	p.reportEarly()
	if w.count == 0 {
		p.checkLastEpoch(Note) // all may have been lost that was not flushed, or the file is another partition's
		return p.checkBlankEpochs()
	}
	exists := p.kinds[checkpoint.LeaderEpochs] == files.EpochCheckpoint
	if e := w.new; w.news > 0 {
		p.note(e.path, e.position, e.offset, "leader epoch %d, which %s has not; there was no clean stop, and the next start adds it", e.got, checkpoint.LeaderEpochs)
	}
	switch odd := len(w.odd) + w.more; {
	case !exists && p.appeared(p.epochsPath()): // a broker runs
	case !exists:
		p.damage(p.epochsPath(), -1, -1, "missing; batches have leader epochs")
	case !w.present: // reported
	case len(w.entries) == 0:
		p.damage(p.epochsPath(), -1, -1, "empty; batches have leader epochs")
	default:
		if odd > 0 && (2*odd > w.count || w.count == 1) {
			e := w.odd[0]
			p.damage(p.epochsPath(), -1, e.offset, "epoch %d at offset %d, the batch there has %d", e.want, e.offset, e.got)
		}
		if 2*odd <= w.count || w.count == 1 {
			for _, e := range w.odd {
				p.damage(e.path, e.position, e.offset, "leader epoch %d, %s says %d", e.got, checkpoint.LeaderEpochs, e.want)
			}
		}
	}
	p.checkLastEpoch(Damage)
	return nil
}

// checkLastEpoch holds the last entry against the end of the log, which it cannot be behind.
func (p *partition) checkLastEpoch(severity Severity) {
	list := p.epochs.entries
	if len(list) == 0 || list[len(list)-1].StartOffset <= p.end() || p.torn {
		return
	}
	e := list[len(list)-1]
	p.add(Finding{p.epochsPath(), -1, e.StartOffset, severity, fmt.Sprintf("epoch %d begins at offset %d, the log ends at %d", e.Epoch, e.StartOffset, p.end())})
}
