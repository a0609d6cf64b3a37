package commitlog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// An UndecidedTxn is a transaction whose marker is lost in damage, and of which nothing tells whether
// it was committed. Readers of committed records get an error that matches segment.ErrCorrupt for its
// records, which begin at FirstOffset and end below EndOffset; records of others in between are read.
type UndecidedTxn struct {
	ProducerID  int64
	FirstOffset int64
	EndOffset   int64 // behind the damage with the marker
}

// aborted is what readers are told when it counts as aborted.
func (u UndecidedTxn) aborted() segment.AbortedTxn {
	return segment.AbortedTxn{ProducerID: u.ProducerID, FirstOffset: u.FirstOffset, LastOffset: u.EndOffset - 1, LastStableOffset: u.FirstOffset}
}

// ErrNotUndecided refuses the decision about a transaction that is not undecided.
var ErrNotUndecided = errors.New("no undecided transaction of the producer begins there")

// lostTxns are the transactions whose end is lost, with what was decided about them: the
// TransactionsFile of a log, which says so also when the index of aborted transactions looks whole
// again, or when nothing tells of the damage any more. It is immutable.
type lostTxns struct {
	list  []checkpoint.LostTransaction
	sound bool // false: the file is damaged, and nobody knows what it said
}

// nothingLost is what a log says that has no such file.
var nothingLost = &lostTxns{sound: true}

// find returns what is said of a transaction, if it is listed.
func (t *lostTxns) find(u UndecidedTxn) (checkpoint.TransactionOutcome, bool) {
	return t.findIn(u, u.EndOffset-1)
}

// findIn does if its end was in the same damage, which begins at lostFirst. A truncation may have made that
// longer.
func (t *lostTxns) findIn(u UndecidedTxn, lostFirst int64) (checkpoint.TransactionOutcome, bool) {
	if i := t.index(u.ProducerID, u.FirstOffset); i >= 0 && t.list[i].EndOffset > lostFirst {
		return t.list[i].Outcome, true
	}
	return 0, false
}

// at returns what is listed of a transaction with a record at an offset.
func (t *lostTxns) at(producerID, offset int64) (checkpoint.LostTransaction, bool) {
	i := slices.IndexFunc(t.list, func(t checkpoint.LostTransaction) bool {
		return t.ProducerID == producerID && t.FirstOffset <= offset && offset < t.EndOffset
	})
	if i < 0 {
		return checkpoint.LostTransaction{}, false
	}
	return t.list[i], true
}

// commits reports whether one is listed as committed.
func (t *lostTxns) commits(producerID, offset int64) bool {
	n, ok := t.at(producerID, offset)
	return ok && n.Outcome == checkpoint.Commit
}

// unlisted returns those of some transactions, by producer, that are not listed.
func (t *lostTxns) unlisted(firsts map[int64]int64) map[int64]int64 {
	if len(t.list) == 0 {
		return firsts
	}
	rest := maps.Clone(firsts)
	maps.DeleteFunc(rest, func(producerID, first int64) bool {
		_, ok := t.at(producerID, first)
		return ok
	})
	return rest
}

func (t *lostTxns) index(producerID, first int64) int {
	return slices.IndexFunc(t.list, func(t checkpoint.LostTransaction) bool {
		return t.ProducerID == producerID && t.FirstOffset == first
	})
}

// with returns a copy in which a transaction has an outcome.
func (t *lostTxns) with(u UndecidedTxn, o checkpoint.TransactionOutcome) *lostTxns {
	n := checkpoint.LostTransaction{ProducerID: u.ProducerID, FirstOffset: u.FirstOffset, EndOffset: u.EndOffset, Outcome: o}
	next := t.without(u)
	next.list = append(next.list, n)
	return next
}

// without returns a copy that does not list a transaction.
func (t *lostTxns) without(u UndecidedTxn) *lostTxns {
	list := slices.DeleteFunc(slices.Clone(t.list), func(t checkpoint.LostTransaction) bool {
		return t.ProducerID == u.ProducerID && t.FirstOffset == u.FirstOffset
	})
	return &lostTxns{list: list, sound: true}
}

// between adds what readers of the offsets [start, upper) have to know to lists.
func (t *lostTxns) between(start, upper int64, aborted []segment.AbortedTxn) ([]segment.AbortedTxn, []UndecidedTxn) {
	var undecided []UndecidedTxn
	for _, n := range t.list {
		u := UndecidedTxn{n.ProducerID, n.FirstOffset, n.EndOffset}
		switch {
		case n.EndOffset <= start || n.FirstOffset >= upper:
		case n.Outcome == checkpoint.Abort:
			aborted = append(aborted, u.aborted())
		case n.Outcome == checkpoint.Undecided:
			undecided = append(undecided, u)
		}
	}
	return aborted, undecided
}

func (l *Log) lostTxnsPath() string {
	return filepath.Join(l.dirLocked(), checkpoint.TransactionsFile)
}

// lostTransactions returns what the file says, which is read once.
func (l *Log) lostTransactions() (*lostTxns, error) {
	if t := l.lost.Load(); t != nil {
		return t, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostTransactionsLocked()
}

func (l *Log) lostTransactionsLocked() (*lostTxns, error) {
	if t := l.lost.Load(); t != nil {
		return t, nil
	}
	list, err := checkpoint.ReadTransactions(l.fs, l.lostTxnsPath())
	t := &lostTxns{list: list, sound: checkpoint.Whole(err)}
	if errors.Is(err, checkpoint.ErrCorrupt) {
		l.logger.Error("gregor-transactions is damaged", "partition", l.partition, "lost", !t.sound, "err", err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	l.lost.Store(t)
	if o := l.offsets.Load(); o != nil {
		err = errors.Join(l.cutLostLocked(o.End, l.mu.producers), l.dropFound(o.segments))
	}
	return l.lost.Load(), err
}

// dropFound forgets transactions whose marker is there after all, because somebody has mended what was
// damaged, and such that do not begin where they should, because it was another log.
func (l *Log) dropFound(segments []*segment.Segment) error {
	had := l.lost.Load()
	if had == nil {
		return nil
	}
	next := had
	for _, n := range had.list {
		u := UndecidedTxn{n.ProducerID, n.FirstOffset, n.EndOffset}
		found, err := hasMarker(segments, u)
		if err != nil {
			return err
		}
		begins, err := beginsIn(segments)(u.ProducerID, u.FirstOffset)
		if err != nil && !errors.Is(err, segment.ErrCorrupt) {
			return err
		}
		if found || err == nil && !begins {
			next = next.without(u)
		}
	}
	l.lost.Store(next)
	return nil
}

func hasMarker(segments []*segment.Segment, u UndecidedTxn) (bool, error) {
	m, err := lastMarker(segments, u.ProducerID, u.FirstOffset, u.EndOffset)
	return m.offset >= 0, err
}

// A foundMarker is the last marker of a producer in some stretch of a log.
type foundMarker struct {
	offset int64 // -1 for none
	abort  bool
	next   int64 // first record of the producer behind it in the stretch, -1 for none
}

// lastMarker looks for a marker of a producer with an offset in [from, to). What a segment has of offsets that
// are not its own, because its file was another's, is none: no reader gets it.
func lastMarker(segments []*segment.Segment, producerID, from, to int64) (foundMarker, error) {
	found := foundMarker{-1, false, -1}
	for i := max(0, floorSegment(segments, from)); i < len(segments) && segments[i].BaseOffset() < to; i++ {
		first, end := max(from, segments[i].BaseOffset()), to
		if i+1 < len(segments) {
			end = min(to, segments[i+1].BaseOffset())
		}
		err := walkProducers(segments[i], 0, func(l segment.Located) bool {
			b := l.Batch
			switch m := parseEndTxn(b); {
			case b.ProducerID() != producerID || b.BaseOffset() < first || b.BaseOffset() >= end:
			case m.valid:
				found = foundMarker{b.BaseOffset(), m.abort, -1}
			case !b.IsControl() && found.next < 0:
				found.next = b.BaseOffset()
			}
			return b.BaseOffset() < end
		}, func(segment.Damage) error { return nil })
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// setLostLocked puts a list in force and writes it.
func (l *Log) setLostLocked(t *lostTxns) error {
	l.lost.Store(t)
	return checkpoint.WriteTransactions(l.fs, l.lostTxnsPath(), t.list)
}

// txnNotes are transactions of which the TransactionsFile is to tell, or not any more.
type txnNotes struct {
	undecided []UndecidedTxn
	committed []UndecidedTxn // as an index says by its silence
	aborted   []UndecidedTxn // though no index says so
	proven    []UndecidedTxn // they have an end that everybody finds
}

// noteLostLocked makes sure that readers after the next start are told of transactions what those of now are.
func (l *Log) noteLostLocked(n txnNotes) error {
	had, err := l.lostTransactionsLocked()
	if err != nil {
		return err
	}
	next := had
	for _, u := range n.proven {
		if next.index(u.ProducerID, u.FirstOffset) >= 0 {
			next = next.without(u)
		}
	}
	for _, u := range n.aborted {
		if o, listed := next.find(u); !listed || o != checkpoint.Abort {
			next = next.with(u, checkpoint.Abort)
		}
	}
	for _, u := range n.committed {
		if _, listed := next.find(u); !listed {
			next = next.with(u, checkpoint.Commit)
		}
	}
	for _, u := range n.undecided {
		if o, listed := next.find(u); listed && o == checkpoint.Undecided {
			continue
		}
		l.logger.Error("end of a transaction is lost in damage: readers of committed records get an error for its records",
			"partition", l.partition, "producer", u.ProducerID, "first", u.FirstOffset, "end", u.EndOffset)
		next = next.with(u, checkpoint.Undecided)
	}
	if next == had {
		return nil
	}
	err = l.setLostLocked(next)
	if vfs.IsFull(err) {
		l.logger.Warn("undecided transactions are not noted", "partition", l.partition, "err", err)
		return nil
	}
	return err
}

// noteCutLocked notes, before a truncation to an offset in the last of the kept segments, the transactions
// that may have ended in damage, of which a marker tells that goes. It returns those that went on.
func (l *Log) noteCutLocked(segments []*segment.Segment, kept int, offset int64) (ongoing []segment.OpenTxn, err error) {
	if len(l.mu.producers.producers) == 0 {
		return nil, nil
	}
	var list []UndecidedTxn
	for i, s := range segments[:kept] {
		known := s.TxnsComplete() && s.TxnsProven()
		quiet := known && len(l.knownFacts(s).ended) == 0 || !known && i+1 < kept
		if known && l.knownFacts(s) == noFacts || len(s.Damages()) == 0 && quiet {
			continue
		}
		doubts, err := l.doubtsIn(segments, i)
		if err != nil {
			return nil, err
		}
		for _, d := range doubts {
			switch {
			case d.outcome == txnOngoing:
				ongoing = append(ongoing, d.open())
			case d.first.offset < offset && d.marker >= offset && !d.noted:
				list = append(list, d.undecided())
			}
		}
	}
	return ongoing, l.noteLostLocked(txnNotes{undecided: list})
}

// cutLostLocked takes notice of a truncation to an offset. Transactions that are open again are not
// lost any more.
func (l *Log) cutLostLocked(offset int64, state *ProducerState) error {
	had, err := l.lostTransactionsLocked()
	if err != nil {
		return err
	}
	next := &lostTxns{sound: had.sound}
	for _, t := range had.list {
		if t.EndOffset <= offset {
			next.list = append(next.list, t)
		} else if t.EndOffset = offset; t.FirstOffset < offset && !state.isOpen(t.ProducerID, t.FirstOffset) {
			next.list = append(next.list, t)
		}
	}
	if slices.Equal(next.list, had.list) {
		return nil
	}
	return l.setLostLocked(next)
}

// UndecidedTxns lists the transactions that are known to be undecided, by first offset. It reads what
// damage is known of to find out.
func (l *Log) UndecidedTxns() ([]UndecidedTxn, error) {
	o := l.offsets.Load()
	for i, s := range o.segments {
		if len(s.Damages()) > 0 {
			if _, err := l.factsAt(o, i); err != nil {
				return nil, fmt.Errorf("%v: %w", l.partition, err)
			}
		}
	}
	lost, err := l.lostTransactions()
	if err != nil {
		return nil, err
	}
	_, list := lost.between(o.LogStart, o.End, nil)
	slices.SortFunc(list, func(a, b UndecidedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return list, nil
}

// UndecidedKnown counts the undecided transactions that somebody has come across since the start. It
// reads nothing.
func (l *Log) UndecidedKnown() int {
	lost := l.lost.Load()
	if lost == nil {
		return 0
	}
	o := l.offsets.Load()
	_, list := lost.between(o.LogStart, o.End, nil)
	return len(list)
}

// DecideTxn ends an undecided transaction, as somebody says who knows or has made up his mind. When it
// returns nil that is on the disk.
func (l *Log) DecideTxn(producerID, firstOffset int64, commit bool) error {
	if err := l.prepare(); err != nil {
		return err
	}
	list, err := l.UndecidedTxns()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(u UndecidedTxn) bool { return u.ProducerID == producerID && u.FirstOffset == firstOffset })
	if i < 0 {
		return fmt.Errorf("%v: %w: producer %d, offset %d", l.partition, ErrNotUndecided, producerID, firstOffset)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usableLocked(); err != nil {
		return err
	}
	return l.decideLocked(list[i], commit)
}

func (l *Log) decideLocked(u UndecidedTxn, commit bool) error {
	had, err := l.lostTransactionsLocked()
	if err != nil {
		return err
	}
	outcome := checkpoint.Abort
	if commit {
		outcome = checkpoint.Commit
	}
	next := had.with(u, outcome)
	if err := l.setLostLocked(next); err != nil {
		l.lost.Store(had)
		return l.spare("write "+checkpoint.TransactionsFile, err)
	}
	l.logger.Warn("transaction is decided by hand", "partition", l.partition, "producer", u.ProducerID, "first", u.FirstOffset, "outcome", outcome)
	if commit {
		return nil
	}
	return l.indexAbortLocked(u, next)
}

// indexAbortLocked enters an abort that was decided into the index of aborted transactions, where Kafka
// finds it. It does not if others may have ended in the same damage, as an entry would say that they
// did not.
func (l *Log) indexAbortLocked(u UndecidedTxn, lost *lostTxns) error {
	segments := l.offsets.Load().segments
	s := segments[max(0, floorSegment(segments, u.EndOffset-1))]
	inDamage := slices.ContainsFunc(s.Damages(), func(d segment.Damage) bool { return d.First < u.EndOffset && u.EndOffset <= d.End })
	alone := !slices.ContainsFunc(lost.list, func(t checkpoint.LostTransaction) bool {
		return t.EndOffset == u.EndOffset && (t.ProducerID != u.ProducerID || t.FirstOffset != u.FirstOffset)
	})
	if !inDamage || !alone {
		return nil
	}
	list, _, err := s.StoredAborted()
	if err != nil {
		return err
	}
	a := u.aborted()
	at, taken := slices.BinarySearchFunc(list, a.LastOffset, func(e segment.AbortedTxn, last int64) int { return cmp.Compare(e.LastOffset, last) })
	if taken {
		return nil
	}
	return s.ReplaceAborted(slices.Insert(list, at, a))
}
