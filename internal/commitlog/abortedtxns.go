package commitlog

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// Before read_committed is served from a segment, its index of aborted transactions is held against
// the batches, once: what it says, and what it leaves out (doc/decisions/0008).
//
//	this process made it              nothing to do
//	the last clean stop vouches       its entries are compared with their markers
//	otherwise                         the headers of all batches are read
//	damage, or something is wrong     an examination (examination.go)

// txnFacts are what is known of the transactions in a segment beside its index of aborted ones. But
// for through they are immutable.
type txnFacts struct {
	// open are the transactions that go on behind the segment. Some may have no records in it.
	open []segment.OpenTxn

	// through is one more than the base of the last segment with the end of one that is open, 0 if
	// nobody has looked.
	through atomic.Int64

	// ended are all transactions that ended in a damage of the segment.
	ended []segment.OpenTxn
}

func (f *txnFacts) isNothing() bool {
	return len(f.open) == 0 && len(f.ended) == 0
}

// A factTable has the facts of those segments that have any. It is immutable.
type factTable map[*segment.Segment]*txnFacts

// noFacts are those of most segments.
var noFacts = new(txnFacts)

func (l *Log) knownFacts(s *segment.Segment) *txnFacts {
	if t := l.facts.Load(); t != nil {
		if f := (*t)[s]; f != nil {
			return f
		}
	}
	return noFacts
}

// setFactsLocked keeps the facts of a segment, and of no segment that has left the log.
func (l *Log) setFactsLocked(segments []*segment.Segment, s *segment.Segment, f *txnFacts) {
	next := factTable{}
	if t := l.facts.Load(); t != nil {
		maps.Copy(next, *t)
		maps.DeleteFunc(next, func(s *segment.Segment, _ *txnFacts) bool { return !slices.Contains(segments, s) })
	}
	if delete(next, s); !f.isNothing() {
		next[s] = f
	}
	l.storeFacts(next)
}

func (l *Log) storeFacts(t factTable) {
	if len(t) == 0 {
		l.facts.Store(nil)
		return
	}
	l.facts.Store(&t)
}

// noteOpenLocked notes, at the roll, which transactions go on behind the active segment.
func (l *Log) noteOpenLocked(segments []*segment.Segment, active *segment.Segment) {
	if !active.TxnsComplete() || len(l.mu.producers.open) == 0 {
		return
	}
	f := &txnFacts{}
	if had := l.knownFacts(active); had != noFacts {
		f.ended = had.ended
	}
	f.open = l.mu.producers.openTxns()
	l.setFactsLocked(segments, active, f)
}

func (s *ProducerState) openTxns() []segment.OpenTxn {
	list := make([]segment.OpenTxn, len(s.open))
	for i, p := range s.open {
		list[i] = segment.OpenTxn{ProducerID: p.id, FirstOffset: p.txn.offset}
	}
	return list
}

// cutFactsLocked takes notice of a truncation.
func (l *Log) cutFactsLocked(segments []*segment.Segment, offset int64) {
	t := l.facts.Load()
	if t == nil {
		return
	}
	next := factTable{}
	for s, f := range *t {
		if !slices.Contains(segments, s) {
			continue
		}
		cut := &txnFacts{
			open:  slices.DeleteFunc(slices.Clone(f.open), func(t segment.OpenTxn) bool { return t.FirstOffset >= offset }),
			ended: f.ended,
		}
		if !cut.isNothing() {
			next[s] = cut
		}
	}
	l.storeFacts(next)
}

// inheritFactsLocked gives the segments that a cleaning has made what was known of those that it replaces.
func (l *Log) inheritFactsLocked(segments, cleaned, old []*segment.Segment) {
	sum := &txnFacts{}
	for _, s := range old {
		f := l.knownFacts(s)
		sum.open = append(sum.open, f.open...)
		sum.ended = append(sum.ended, f.ended...)
	}
	for _, s := range cleaned {
		l.setFactsLocked(segments, s, &txnFacts{open: sum.open, ended: sum.ended})
	}
}

// factsAt returns what is known of segment i, whose index is right and complete then.
func (l *Log) factsAt(o *Offsets, i int) (*txnFacts, error) {
	s := o.segments[i]
	if s.TxnsComplete() && s.TxnsProven() {
		return l.knownFacts(s), nil
	}
	err := checkTxns(o, s)
	wrong := segment.IsTxnIndexDamage(err)
	switch {
	case err != nil && !wrong:
		return nil, err
	case !wrong && s.TxnsComplete():
		return l.knownFacts(s), nil
	case !wrong:
		if ok, err := l.scanTxns(s); ok || err != nil {
			return l.knownFacts(s), err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.examineLocked(s, err)
}

// soundTxnsLocked makes sure, before a transaction index is changed, that what it says is right.
func (l *Log) soundTxnsLocked(s *segment.Segment) error {
	err := checkTxns(l.offsets.Load(), s)
	if segment.IsTxnIndexDamage(err) {
		_, err = l.examineLocked(s, err)
	}
	return err
}

func checkTxns(o *Offsets, s *segment.Segment) error {
	if s.TxnsProven() {
		return nil
	}
	return s.ProveTxns(beginsIn(o.segments))
}

// beginsIn asks the segments whether a transaction may begin at an offset.
func beginsIn(segments []*segment.Segment) func(id, offset int64) (bool, error) {
	return func(id, offset int64) (bool, error) {
		i := floorSegment(segments, offset)
		if i < 0 {
			return true, nil // it has been deleted
		}
		return segments[i].TxnMayBegin(id, offset)
	}
}

// scanTxns compares an index with the headers of all batches. It reports whether the two agree, and nothing
// is missing behind these.
func (l *Log) scanTxns(s *segment.Segment) (bool, error) {
	size := s.Size()
	scan, err := s.ScanTxns(size)
	if err != nil || !scan.Intact {
		return false, err
	}
	entries, state, err := s.StoredAborted()
	if err != nil || state == segment.TxnIndexBad || !agree(entries, &scan) {
		return false, err
	}
	if wrong, err := contradicts(l.offsets.Load().segments, s, entries, &scan); wrong || err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	segments := l.offsets.Load().segments
	active := segments[len(segments)-1] == s
	if !slices.Contains(segments, s) || !active && s.Size() != size {
		return false, ErrSegmentsChanged
	}
	if !active { // of that the producers know
		l.setFactsLocked(segments, s, &txnFacts{open: scan.Open})
	}
	s.VouchTxns()
	return true, nil
}

// agree reports whether there is an entry for each ABORT marker, and nothing else but what came after
// the scan.
func agree(entries []segment.AbortedTxn, scan *segment.TxnScan) bool {
	entries = slices.DeleteFunc(slices.Clone(entries), func(a segment.AbortedTxn) bool { return a.LastOffset >= scan.End })
	return slices.EqualFunc(entries, scan.Aborted, func(e segment.AbortedTxn, a segment.ScannedTxn) bool {
		return e.LastOffset == a.LastOffset && e.ProducerID == a.ProducerID && (a.FirstOffset < 0 || e.FirstOffset <= a.FirstOffset) && e.FirstOffset >= a.After
	})
}

// contradicts reports whether what is around a segment says that its end is lost, or that a transaction which
// began in front of it, as an entry says, cannot have, because a marker of its producer is between.
func contradicts(segments []*segment.Segment, s *segment.Segment, entries []segment.AbortedTxn, scan *segment.TxnScan) (bool, error) {
	i := max(0, slices.Index(segments, s))
	for k, a := range scan.Aborted {
		if a.After >= 0 || entries[k].FirstOffset >= s.BaseOffset() {
			continue
		}
		if ended, err := hasControl(segments[:i], a.ProducerID, entries[k].FirstOffset); ended || err != nil {
			return ended, err
		}
	}
	if i+1 == len(segments) || scan.End >= segments[i+1].BaseOffset() {
		return false, nil
	}
	_, lost, err := s.LostEnd()
	return lost || len(s.Damages()) > 0, err
}

// hasControl reports whether a producer has a control batch behind an offset, by the headers.
func hasControl(segments []*segment.Segment, producerID, from int64) (found bool, err error) {
	for _, s := range segments[min(max(0, floorSegment(segments, from)), len(segments)):] {
		at, ok, err := s.Translate(from, 0)
		if err != nil && !errors.Is(err, segment.ErrCorrupt) {
			return false, err
		}
		if err != nil || !ok {
			continue
		}
		err = s.Headers(at.Position, s.Size(), func(h segment.Header) bool {
			found = h.Control && h.ProducerID == producerID
			return !found
		})
		if found || err != nil && !errors.Is(err, segment.ErrCorrupt) {
			return found, err
		}
	}
	return false, nil
}

// transactions returns what read_committed must know of the offsets [start, upper), which are in
// segments i to j: transactions that are aborted, and such that nobody knows of.
func (l *Log) transactions(o *Offsets, i, j int, start, upper int64) (aborted []segment.AbortedTxn, undecided []UndecidedTxn, err error) {
	for {
		aborted, undecided, err = l.transactionsNow(o, i, j, start, upper)
		if err != errFactsChanged {
			return aborted, undecided, err
		}
	}
}

func (l *Log) transactionsNow(o *Offsets, i, j int, start, upper int64) (aborted []segment.AbortedTxn, undecided []UndecidedTxn, err error) {
	last := j
	for k := i; k <= last; k++ {
		f, err := l.factsAt(o, k)
		if err != nil {
			return nil, nil, err
		}
		more, _, err := o.segments[k].Aborted(start, upper)
		if err != nil {
			return nil, nil, err
		}
		aborted = append(aborted, more...)
		if k <= j && len(f.open) > 0 {
			end, err := l.endOfOpen(o, k, f, upper)
			if err != nil {
				return nil, nil, err
			}
			last = max(last, end)
		}
	}
	lost, err := l.lostTransactions() // last of all: who looked at a segment may have added to it
	if err != nil {
		return nil, nil, err
	}
	aborted, undecided = lost.between(start, upper, aborted)
	return aborted, undecided, nil
}

// endOfOpen returns the index of the last segment that has the end of a transaction with records in
// segment i below upper.
func (l *Log) endOfOpen(o *Offsets, i int, f *txnFacts, upper int64) (int, error) {
	pending := map[int64]int64{} // first offsets by producer
	for _, t := range f.open {
		if t.FirstOffset < min(upper, o.LastStable) { // others are not read yet
			pending[t.ProducerID] = t.FirstOffset
		}
	}
	if len(pending) == 0 {
		return i, nil
	}
	if through := f.through.Load(); through > 0 {
		return max(i, o.floor(through-1)), nil
	}
	all := len(pending) == len(f.open)
	lost, err := l.lostTransactions()
	if err != nil {
		return i, err
	}
	k := i
	for len(pending) > 0 && k+1 < len(o.segments) {
		k++
		if err := l.dropEnded(o, k, pending, lost); err != nil {
			return 0, err
		}
	}
	all = all && len(pending) == 0
	maps.DeleteFunc(pending, lost.commits)
	switch {
	case len(pending) > 0:
		return k, l.noteEndless(o, i, pending)
	case all:
		f.through.Store(o.segments[k].BaseOffset() + 1)
	}
	return k, nil
}

// errFactsChanged says that something was found out about a segment.
var errFactsChanged = errors.New("transactions have become undecided")

// noteEndless deals with transactions that begin in segment i and have no end anywhere, though they are
// not open: what had it is lost. In a compacted log a marker may have gone before its records.
func (l *Log) noteEndless(o *Offsets, i int, pending map[int64]int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, had := o.segments[i], l.knownFacts(o.segments[i])
	segments := l.offsets.Load().segments
	if i+1 == len(o.segments) || !slices.Contains(segments, s) {
		return nil
	}
	lost, err := l.lostTransactionsLocked()
	if err != nil {
		return err
	}
	f := &txnFacts{ended: had.ended}
	var undecided []UndecidedTxn
	for _, t := range had.open {
		u := UndecidedTxn{t.ProducerID, t.FirstOffset, o.segments[i+1].BaseOffset()}
		first := t.FirstOffset
		if first < o.LogStart { // the producers know it by its first record behind that
			first = math.MaxInt64
		}
		if _, endless := pending[t.ProducerID]; !endless || l.mu.producers.isOpen(t.ProducerID, first) {
			f.open = append(f.open, t)
			continue
		}
		noted, hasNote := lost.find(u)
		w := txnWitnesses{outcome: txnEnded, complete: l.config.Load().Compact, noted: hasNote, note: noted}
		if w.verdict() == verdictUndecided {
			undecided = append(undecided, u)
		}
	}
	if len(f.open) == len(had.open) {
		return nil
	}
	if err := l.noteLostLocked(txnNotes{undecided: undecided}); err != nil {
		return err
	}
	l.setFactsLocked(segments, s, f)
	return errFactsChanged
}

// dropEnded takes the producers out of a set whose transactions end in segment k. An entry that has only the
// end of one is mended: its readers are those who know that there is more.
func (l *Log) dropEnded(o *Offsets, k int, pending map[int64]int64, lost *lostTxns) error {
	f, err := l.factsAt(o, k)
	if err != nil {
		return err
	}
	for _, t := range f.ended {
		if first, ok := pending[t.ProducerID]; ok && t.FirstOffset <= first {
			delete(pending, t.ProducerID)
		}
	}
	s := o.segments[k]
	if err := dropIndexed(s, pending); err != nil {
		return err
	}
	ends := map[int64]int64{} // offsets of first markers
	err = s.Headers(0, s.Size(), func(h segment.Header) bool {
		_, isPending := pending[h.ProducerID]
		if _, ended := ends[h.ProducerID]; h.Control && isPending && !ended {
			ends[h.ProducerID] = h.Last
		}
		return len(ends) < len(pending)
	})
	if err == nil && len(s.Damages()) == 0 { // there the first marker may be lost, and an examination has been here
		err = l.widen(o, k, lost.unlisted(pending), ends)
	}
	for id := range ends {
		delete(pending, id)
	}
	return err
}

// widen makes entries of the index of segment k begin where the transactions begin that end at their markers,
// unless these have ended before: what a cleaning has made of several segments may count as open what ended in it.
func (l *Log) widen(o *Offsets, k int, firsts, ends map[int64]int64) error {
	s := o.segments[k]
	isNarrow := func(a segment.AbortedTxn) bool {
		end, ended := ends[a.ProducerID]
		first, ok := firsts[a.ProducerID]
		return ended && ok && end == a.LastOffset && a.FirstOffset > first
	}
	list, _, err := s.Aborted(0, math.MaxInt64)
	if err != nil {
		return err
	}
	for _, a := range list {
		if !isNarrow(a) {
			continue
		}
		ended, err := hasControl(o.segments[:k], a.ProducerID, firsts[a.ProducerID])
		if err != nil {
			return err
		}
		if ended {
			firsts = maps.Clone(firsts) // the caller goes on with its own
			delete(firsts, a.ProducerID)
		}
	}
	if !slices.ContainsFunc(list, isNarrow) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.offsets.Load().segments, s) {
		return ErrSegmentsChanged
	}
	if list, _, err = s.StoredAborted(); err != nil {
		return err
	}
	list = slices.Clone(list)
	for i, a := range list {
		if isNarrow(a) {
			l.logger.Error("index of aborted transactions lacks the beginning of one", "partition", l.partition, "segment", s.BaseOffset(), "entry", a, "first", firsts[a.ProducerID])
			list[i].FirstOffset = firsts[a.ProducerID]
		}
	}
	if err := s.ReplaceAborted(list); err != nil {
		return l.spare("write index of aborted transactions", err)
	}
	return nil
}

// dropIndexed takes out those that are in the index of a segment. Their markers may be damaged.
func dropIndexed(s *segment.Segment, pending map[int64]int64) error {
	for id, first := range pending {
		list, _, err := s.Aborted(first, first+1)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(a segment.AbortedTxn) bool { return a.ProducerID == id }) {
			delete(pending, id)
		}
	}
	return nil
}
