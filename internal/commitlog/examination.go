package commitlog

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// An examination finds out, batch by batch, which transactions were aborted in a segment that has
// damage in it, or whose index of aborted transactions is not what it should be.
type examination struct {
	log      *Log
	segments []*segment.Segment
	i        int
	s        *segment.Segment
	live     *ProducerState // of the log end

	// complete says that an index that looks whole has all that was aborted up to the last stop.
	// After an unclean one that is only so for what was on the disk.
	complete bool

	state  *ProducerState
	first  int                  // of state.doubts that this segment has raised
	last   int                  // and one behind the last
	stored []segment.AbortedTxn // entries of the index that no batch disproves
	made   []segment.AbortedTxn // entries by the markers of the segment
	mended map[int64]int64      // offsets in damage where batches are known: who was aborted there, or -1
	facts  txnFacts

	notes txnNotes
}

// errIncomplete: the markers and the index do not agree.
var errIncomplete = errors.New("it does not have the transactions that the markers say were aborted")

// examineLocked makes the transaction index of a segment what the batches say, and returns what else
// there is to know. damage is what is wrong with the index, or nil.
func (l *Log) examineLocked(s *segment.Segment, damage error) (*txnFacts, error) {
	segments := l.offsets.Load().segments
	i := slices.Index(segments, s)
	switch {
	case i < 0:
		return nil, ErrSegmentsChanged
	case l.Failed() != nil:
		return nil, cmp.Or(damage, l.Failed())
	case s.TxnsComplete() && s.TxnsProven():
		return l.knownFacts(s), nil // somebody else was here
	}
	had, _, err := s.StoredAborted()
	if err != nil {
		return nil, err
	}
	if err := l.examine(segments, i, l.mu.producers, true); err != nil {
		return nil, err
	}
	if damage == nil {
		damage = errIncomplete
	}
	if has, _, err := s.StoredAborted(); err != nil || !slices.Equal(has, had) {
		l.logger.Error("index of aborted transactions was made from the batches again", "partition", l.partition, "segment", s.BaseOffset(), "err", cmp.Or(err, damage))
	}
	return l.knownFacts(s), nil
}

// examine is for the writer.
func (l *Log) examine(segments []*segment.Segment, i int, live *ProducerState, complete bool) error {
	e, err := l.examinationOf(segments, i)
	if err != nil {
		return err
	}
	e.live, e.complete = live, e.complete && complete
	list, err := e.merged()
	if err != nil {
		return err
	}
	if err := e.decideAll(list); err != nil {
		return err
	}
	if err := e.s.ReplaceAborted(list); err != nil {
		return l.spare("write index of aborted transactions", err)
	}
	if i == len(segments)-1 {
		e.facts.open = nil // the producers know
	}
	l.setFactsLocked(segments, e.s, &e.facts)
	return nil
}

// examinationOf reads what there is to know of segment i.
func (l *Log) examinationOf(segments []*segment.Segment, i int) (*examination, error) {
	e := &examination{log: l, segments: segments, i: i, s: segments[i], complete: true, mended: map[int64]int64{}}
	if err := e.read(); err != nil {
		return nil, err
	}
	return e, e.readOn()
}

// doubtsIn returns the transactions whose end may be in damage of segment i.
func (l *Log) doubtsIn(segments []*segment.Segment, i int) ([]doubt, error) {
	e, err := l.examinationOf(segments, i)
	if err != nil {
		return nil, err
	}
	return e.doubts(), nil
}

// read goes through the segment.
func (e *examination) read() (err error) {
	if e.state, err = e.log.replayProducers(e.segments[:e.i], e.segments[0].BaseOffset(), e.s.BaseOffset()); err != nil {
		return err
	}
	e.first = len(e.state.doubts)
	if err := e.readStored(); err != nil {
		return err
	}
	err = walkProducers(e.s, 0, func(l segment.Located) bool {
		if b := l.Batch; b.ProducerID() >= 0 {
			e.note(e.state.apply(b, parseEndTxn(b), position{b.BaseOffset(), e.s, l.Position}))
		}
		return true
	}, func(d segment.Damage) error {
		remains, err := e.s.Remains(d)
		if b := remains.Batch; b != nil {
			e.mended[b.LastOffset()] = -1
			if m := parseEndTxn(b); m.valid && m.abort {
				e.mended[b.LastOffset()] = b.ProducerID()
			}
		}
		if err == nil {
			var t CompletedTxn
			var ended bool
			t, ended, err = e.state.lostIn(e.s, d, e.stored)
			e.note(t, ended)
		}
		return err
	})
	e.facts.open = e.state.openTxns()
	e.last = len(e.state.doubts)
	for _, d := range e.doubts() {
		if d.isPending() {
			e.facts.open = append(e.facts.open, d.open())
		}
	}
	return err
}

// doubts are the transactions whose end may be in damage of the segment.
func (e *examination) doubts() []doubt { return e.state.doubts[e.first:e.last] }

func (e *examination) note(t CompletedTxn, ended bool) {
	if ended && t.Aborted {
		e.made = append(e.made, e.state.aborted(t))
	}
}

// readStored takes the entries of the index that may be right.
func (e *examination) readStored() error {
	stored, state, err := e.s.StoredAborted()
	if err != nil {
		return err
	}
	begins := beginsIn(e.segments)
	for _, a := range stored {
		wrong, err := e.s.DisprovesTxn(a, begins)
		if err == nil && !wrong {
			a, wrong, err = e.narrowed(a, stored)
		}
		if err != nil {
			return err
		}
		if !wrong {
			e.stored = append(e.stored, a)
		}
	}
	// A file that is missing may have been there: it proves nothing.
	e.complete = e.complete && state == segment.TxnIndexWhole && len(e.stored) == len(stored)
	return nil
}

// narrowed returns an entry whose marker cannot be read without what another marker has ended. It is wrong
// if nothing is left, or if that is an ABORT which no entry has: then it is that one's, with another last
// offset.
func (e *examination) narrowed(a segment.AbortedTxn, stored []segment.AbortedTxn) (_ segment.AbortedTxn, wrong bool, err error) {
	next, err := e.s.NextOffset()
	if err != nil && !errors.Is(err, segment.ErrCorrupt) {
		return a, false, err
	}
	lost := func(d segment.Damage) bool { return d.First <= a.LastOffset && a.LastOffset < d.End }
	if a.LastOffset < next && !slices.ContainsFunc(e.s.Damages(), lost) {
		return a, false, nil // it can
	}
	m, err := lastMarker(e.segments, a.ProducerID, a.FirstOffset, a.LastOffset)
	if err != nil || m.offset < 0 {
		return a, false, err
	}
	a.FirstOffset = m.next
	isOwn := func(other segment.AbortedTxn) bool { return other.LastOffset == m.offset }
	return a, m.next < 0 || m.abort && m.offset >= e.s.BaseOffset() && !slices.ContainsFunc(stored, isOwn), nil
}

// readOn looks behind the segment for what becomes of transactions whose end may be in its damage.
func (e *examination) readOn() error {
	if err := e.log.mu.snapshots.witness(e.end(), e.state); err != nil {
		return err
	}
	for _, s := range e.segments[e.i+1:] {
		if !slices.ContainsFunc(e.doubts(), doubt.isPending) {
			return nil
		}
		stored, _, err := s.StoredAborted()
		if err != nil {
			return err
		}
		err = walkProducers(s, 0, func(l segment.Located) bool {
			if b := l.Batch; b.ProducerID() >= 0 {
				e.state.apply(b, parseEndTxn(b), position{b.BaseOffset(), s, l.Position})
			}
			return true
		}, func(d segment.Damage) error {
			_, _, err := e.state.lostIn(s, d, stored)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// merged returns what the index is to have: what the markers say, and of what it has what they do
// not contradict.
func (e *examination) merged() ([]segment.AbortedTxn, error) {
	list := slices.Clone(e.made)
	for _, a := range e.stored {
		at := func(m segment.AbortedTxn) bool { return m.LastOffset == a.LastOffset }
		if m, known := e.mended[a.LastOffset]; known && m != a.ProducerID {
			continue
		}
		switch i := slices.IndexFunc(e.made, at); {
		case i < 0:
			list = append(list, a)
		default:
			wider, err := isWider(e.segments, a, e.made[i])
			if err != nil {
				return nil, err
			}
			if wider {
				list[i] = a
			}
		}
	}
	slices.SortFunc(list, func(a, b segment.AbortedTxn) int { return cmp.Compare(a.LastOffset, b.LastOffset) })
	for _, a := range e.made {
		e.complete = e.complete && slices.ContainsFunc(e.stored, func(s segment.AbortedTxn) bool {
			return s.LastOffset == a.LastOffset && s.ProducerID == a.ProducerID
		})
	}
	return list, nil
}

// isWider reports whether an entry of an index tells more of a transaction than its marker and the
// batches behind a damage: it begins in front of that, and no other marker of the producer is between.
func isWider(segments []*segment.Segment, had, made segment.AbortedTxn) (bool, error) {
	if had.LastOffset != made.LastOffset || had.ProducerID != made.ProducerID || had.FirstOffset >= made.FirstOffset {
		return false, nil
	}
	if ok, err := beginsIn(segments)(had.ProducerID, had.FirstOffset); !ok || err != nil {
		return false, err
	}
	other, err := hasMarker(segments, UndecidedTxn{had.ProducerID, had.FirstOffset, made.FirstOffset})
	return !other, err
}

// decideAll decides about the transactions that are in doubt, and notes those that stay so.
func (e *examination) decideAll(list []segment.AbortedTxn) error {
	lost, err := e.log.lostTransactionsLocked()
	if err != nil {
		return err
	}
	for i := range e.doubts() {
		d := &e.doubts()[i]
		covered, err := e.covered(d, list)
		if err != nil {
			return err
		}
		told, err := e.markerIsIndexed(d)
		if err != nil {
			return err
		}
		noted, hasNote := lost.findIn(d.undecided(), d.lostFirst)
		w := txnWitnesses{
			outcome: d.outcome, indexed: covered, complete: e.complete && told && lost.sound && !d.gone, noted: hasNote, note: noted,
			open: e.live.isOpen(d.producerID, d.first.offset),
		}
		e.decide(d, w.verdict(), w.indexed)
		if w.outcome == txnCommitted {
			e.notes.proven = append(e.notes.proven, d.undecided())
		}
	}
	return e.log.noteLostLocked(e.notes)
}

func (d *doubt) undecided() UndecidedTxn {
	return UndecidedTxn{d.producerID, d.first.offset, d.lostEnd}
}

// covered reports whether an index of aborted transactions has one.
func (e *examination) covered(d *doubt, list []segment.AbortedTxn) (bool, error) {
	has := func(a segment.AbortedTxn) bool {
		return a.ProducerID == d.producerID && a.FirstOffset <= d.first.offset && a.LastOffset >= d.lostFirst
	}
	if slices.ContainsFunc(list, has) || d.outcome == txnPending {
		return slices.ContainsFunc(list, has), nil
	}
	for _, s := range e.segments[e.i+1:] { // its marker is in one of these
		if stored, _, err := s.StoredAborted(); err != nil || slices.ContainsFunc(stored, has) {
			return err == nil, err
		}
		if s.BaseOffset() > d.marker {
			break
		}
	}
	return false, nil
}

// markerIsIndexed reports whether the index of a later segment has the ABORT marker that was found behind
// the damage: without it, that index does not tell whose marker it is.
func (e *examination) markerIsIndexed(d *doubt) (bool, error) {
	if d.outcome != txnEnded || !d.abort || d.marker < e.end() {
		return true, nil
	}
	stored, _, err := e.segments[floorSegment(e.segments, d.marker)].StoredAborted()
	return slices.ContainsFunc(stored, func(a segment.AbortedTxn) bool { return a.LastOffset == d.marker && a.ProducerID == d.producerID }), err
}

func (e *examination) decide(d *doubt, v txnVerdict, indexed bool) {
	elsewhere := v == verdictAborted && indexed && d.marker >= e.end() // its entry is with its marker
	if v == verdictOpen || elsewhere {
		return
	}
	f := &e.facts
	f.open = slices.DeleteFunc(f.open, func(t segment.OpenTxn) bool { return t == d.open() })
	f.ended = append(f.ended, d.open())
	switch v {
	case verdictAborted:
		if indexed {
			e.notes.proven = append(e.notes.proven, d.undecided())
		} else {
			e.notes.aborted = append(e.notes.aborted, d.undecided()) // no index says so
		}
	case verdictCommitted:
		if d.outcome != txnCommitted {
			e.notes.committed = append(e.notes.committed, d.undecided()) // after a crash no index is silent
		}
	case verdictUndecided:
		e.notes.undecided = append(e.notes.undecided, d.undecided())
	}
}

// end returns the offset behind the segment.
func (e *examination) end() int64 {
	if e.i+1 < len(e.segments) {
		return e.segments[e.i+1].BaseOffset()
	}
	return math.MaxInt64
}

// isOpen reports whether a producer has a transaction open that begins at an offset, or in front.
func (s *ProducerState) isOpen(producerID, first int64) bool {
	p := s.producers[producerID]
	return p != nil && p.txn.offset >= 0 && p.txn.offset <= first
}

// txnWitnesses are what is known of a transaction whose marker may be in a damage.
type txnWitnesses struct {
	outcome  txnOutcome // by the batches behind the damage
	indexed  bool       // an index of aborted transactions has it
	complete bool       // and would have it if it was aborted
	open     bool       // the producer state at the log end has it open
	noted    bool       // it was undecided before
	note     checkpoint.TransactionOutcome
}

// A txnVerdict is what readers of committed records are told of a transaction.
type txnVerdict int8

const (
	verdictOpen txnVerdict = iota // it goes on behind the damage
	verdictCommitted
	verdictAborted
	verdictUndecided
)

// verdict decides. Proofs come first, then what the operator said, and last that an index which had
// been written to the end says nothing of it.
func (w txnWitnesses) verdict() txnVerdict {
	switch {
	case w.outcome == txnOngoing && !w.noted, w.outcome == txnPending && w.open:
		return verdictOpen
	case w.outcome == txnAborted, w.indexed:
		return verdictAborted
	case w.outcome == txnCommitted, w.noted && w.note == checkpoint.Commit:
		return verdictCommitted
	case w.noted && w.note == checkpoint.Abort:
		return verdictAborted
	case w.complete && !w.noted:
		return verdictCommitted
	}
	return verdictUndecided
}
