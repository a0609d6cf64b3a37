package commitlog

import (
	"errors"
	"slices"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
)

// proveTxns makes sure, before a .txnindex file is used the first time, that it says what the
// batches say. A damaged one is made anew.
func (l *Log) proveTxns(o *Offsets, s *segment.Segment) error {
	err := checkTxns(o, s)
	if !segment.IsTxnIndexDamage(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.soundTxnsLocked(s)
}

// soundTxnsLocked is proveTxns for the writer.
func (l *Log) soundTxnsLocked(s *segment.Segment) error {
	err := checkTxns(l.offsets.Load(), s)
	if !segment.IsTxnIndexDamage(err) {
		return err
	}
	return l.remakeTxnsLocked(s, err)
}

func checkTxns(o *Offsets, s *segment.Segment) error {
	if s.TxnsProven() {
		return nil
	}
	return s.ProveTxns(func(id, offset int64) (bool, error) {
		i := o.floor(offset)
		if i < 0 {
			return true, nil // it has been deleted
		}
		return o.segments[i].TxnMayBegin(id, offset)
	})
}

// remakeTxnsLocked makes the .txnindex file of a segment from the batches, because of a damage.
func (l *Log) remakeTxnsLocked(s *segment.Segment, damage error) error {
	segments := l.offsets.Load().segments
	i := slices.Index(segments, s)
	if i < 0 || l.Failed() != nil {
		return damage
	}
	l.logger.Error("index of aborted transactions is made from the batches again", "partition", l.partition, "err", damage)
	state, err := l.replayProducers(segments[:i], segments[0].BaseOffset(), s.BaseOffset())
	if err != nil {
		return err
	}
	var list []segment.AbortedTxn
	for located, err := range s.Batches(0, s.Size()) {
		if errors.Is(err, record.ErrCorrupt) {
			break // nobody reads behind it
		}
		if err != nil {
			return err
		}
		b := located.Batch
		if b.ProducerID() < 0 {
			continue
		}
		t, ended := state.apply(b, parseEndTxn(b), position{b.BaseOffset(), s, located.Position})
		if ended && t.Aborted {
			list = append(list, state.aborted(t))
		}
	}
	return s.ReplaceAborted(list)
}
