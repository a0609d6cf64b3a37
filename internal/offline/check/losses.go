package check

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
)

// knownLosses are what gregor has written down about a partition: offsets whose records are lost, and
// transactions whose end is.
type knownLosses struct {
	listed []checkpoint.Loss // gregor-losses
	left   []checkpoint.Loss // of them, where no batch was found
	txns   []checkpoint.LostTransaction
}

// loadLosses reads both files. Behind what is lost nobody can tell what producers and transactions
// should be like.
func (p *partition) loadLosses() error {
	k := &p.losses
	for _, f := range []struct {
		name string
		read func(path string) error
	}{
		{checkpoint.Losses, func(path string) (err error) {
			k.listed, err = checkpoint.ReadLosses(p.fs, path)
			return err
		}},
		{checkpoint.TransactionsFile, func(path string) (err error) {
			k.txns, err = checkpoint.ReadTransactions(p.fs, path)
			return err
		}},
	} {
		path := filepath.Join(p.dir, f.name)
		err := f.read(path)
		if errors.Is(err, checkpoint.ErrCorrupt) {
			p.damage(path, -1, -1, "%s", reason(err))
		} else if err != nil {
			return err
		}
	}
	k.left = k.listed
	if len(k.listed) > 0 {
		p.txns.lost, p.producers.lost = true, true
	}
	return nil
}

// batch takes notice of a batch: what is there is not lost.
func (k *knownLosses) batch(in insight) {
	if len(k.left) > 0 {
		k.left = without(k.left, checkpoint.Loss{First: in.first, End: in.last + 1})
	}
}

// marker takes notice of the end of a transaction: it is not lost.
func (k *knownLosses) marker(producerID, offset int64) {
	if len(k.txns) > 0 {
		k.txns = slices.DeleteFunc(k.txns, func(t checkpoint.LostTransaction) bool {
			return t.ProducerID == producerID && t.FirstOffset <= offset && offset < t.EndOffset
		})
	}
}

// without returns stretches of offsets less one of them.
func without(list []checkpoint.Loss, away checkpoint.Loss) (left []checkpoint.Loss) {
	for _, l := range list {
		for _, part := range []checkpoint.Loss{{First: l.First, End: min(l.End, away.First)}, {First: max(l.First, away.End), End: l.End}} {
			if part.First < part.End {
				left = append(left, part)
			}
		}
	}
	return left
}

// unexplained returns what of a gap is not known to be lost.
func (k *knownLosses) unexplained(g gap) (parts []gap) {
	left := []checkpoint.Loss{{First: g.from, End: g.to}}
	for _, l := range k.listed {
		left = without(left, l)
	}
	for _, l := range left {
		part := g
		part.from, part.to = l.First, l.End
		parts = append(parts, part)
	}
	return parts
}

// reportLosses reports what is lost, as far as retention has not come to it.
func (p *partition) reportLosses() {
	start := p.logStart
	if len(p.logs) > 0 {
		start = max(start, p.logs[0])
	}
	path := filepath.Join(p.dir, checkpoint.Losses)
	for _, l := range p.losses.left {
		if first := max(l.First, start); first < l.End {
			p.damage(path, -1, first, "known damage: the records of offsets %d-%d are lost", first, l.End-1)
		}
	}
	path = filepath.Join(p.dir, checkpoint.TransactionsFile)
	for _, t := range p.losses.txns {
		switch {
		case t.EndOffset <= start:
		case t.Outcome == checkpoint.Undecided:
			p.damage(path, -1, t.FirstOffset, "known damage: whether the transaction of producer %d, offsets %d-%d, was committed is lost; gregor topics decide ends it",
				t.ProducerID, t.FirstOffset, t.EndOffset-1)
		default:
			p.note(path, -1, t.FirstOffset, "the end of the transaction of producer %d, offsets %d-%d, is lost; it counts as %v",
				t.ProducerID, t.FirstOffset, t.EndOffset-1, t.Outcome)
		}
	}
}
