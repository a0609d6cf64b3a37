package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/record"
)

// Nothing in a .txnindex file says whether a bit of it has turned round. What it says can be held
// against the batches:
//
//	first offset                 last offset
//	+--------+                   +--------+
//	| data,  |  ...              | ABORT, |    both of the producer; compaction may have taken
//	| in txn |                   | marker |    the data, not the marker
//	+--------+                   +--------+
//
// and the last stable offset is not above the marker. (Which it was exactly, only a replay of all
// producers would tell.)

// maxMarker bounds what is read of a marker, in bytes.
const maxMarker = 4 << 10

// TxnsProven reports whether ProveTxns is done, or never needed.
func (s *Segment) TxnsProven() bool { return s.txnsProven.Load() }

// ProveTxns compares what the .txnindex file says with the batches and reports what is wrong as
// a CorruptError. begins is asked for transactions that begin in front of the segment: could it be
// that the producer's transaction begins at the offset? An error of begins is returned.
func (s *Segment) ProveTxns(begins func(producerID, offset int64) (bool, error)) error {
	if err := s.wholeTxns(); err != nil {
		return err
	}
	txns, err := s.loadTxns()
	if err != nil {
		return err
	}
	p := txnProof{s, begins}
	for i, a := range txns.view() {
		if err := p.prove(a); err != nil {
			if errors.Is(err, ErrCorrupt) {
				continue // the batches are damaged: they cannot tell
			}
			if isBadFrame(err) {
				err = &CorruptError{Path: s.Path(TxnIndexFile), Position: int64(i) * txnEntrySize, Offset: -1, Err: err}
			}
			return err
		}
	}
	s.txnsProven.Store(true)
	return nil
}

// wholeTxns looks for a part of an entry at the end of the file, which a clean stop does not leave.
func (s *Segment) wholeTxns() error {
	s.index.Lock()
	defer s.index.Unlock()
	f, err := s.openTxnsLocked(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if torn := size % txnEntrySize; err == nil && torn != 0 {
		err = &CorruptError{Path: f.Name(), Position: size - torn, Offset: -1, Err: badFrame("%d bytes of an entry", torn)}
	}
	return err
}

// plausible finds fault with an entry of a segment for what it says itself.
func plausible(a AbortedTxn, base int64) error {
	switch {
	case a.FirstOffset < 0 || a.FirstOffset >= a.LastOffset || !inRange(a.LastOffset, base):
		return badFrame("transaction from %d to %d", a.FirstOffset, a.LastOffset)
	case a.LastStableOffset < 0 || a.LastStableOffset > a.LastOffset+1:
		return badFrame("last stable offset %d of the transaction that ends at %d", a.LastStableOffset, a.LastOffset)
	}
	return nil
}

// A txnProof holds what a .txnindex file says against the batches.
type txnProof struct {
	s      *Segment
	begins func(producerID, offset int64) (bool, error) // of transactions that begin in front of the segment
}

func (p txnProof) prove(a AbortedTxn) error {
	if err := plausible(a, p.s.base); err != nil {
		return err
	}
	if err := p.marker(a); err != nil {
		return err
	}
	begins := p.begins
	if a.FirstOffset >= p.s.base {
		begins = p.s.TxnMayBegin
	}
	ok, err := begins(a.ProducerID, a.FirstOffset)
	if err == nil && !ok {
		err = badFrame("no transaction of producer %d begins at %d", a.ProducerID, a.FirstOffset)
	}
	return err
}

// DisprovesTxn reports whether the batches say that a transaction is none that this segment has an
// ABORT marker of. What cannot be read says nothing. begins is as in ProveTxns.
func (s *Segment) DisprovesTxn(a AbortedTxn, begins func(producerID, offset int64) (bool, error)) (bool, error) {
	err := txnProof{s, begins}.prove(a)
	switch {
	case isBadFrame(err):
		return true, nil
	case errors.Is(err, ErrCorrupt):
		return false, nil
	}
	return false, err
}

// marker looks for the ABORT marker of a transaction. One that cannot be read may be it.
func (p txnProof) marker(a AbortedTxn) error {
	f, err := p.s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	fr, b, err := p.s.headAt(f, a.LastOffset)
	if err == ErrNotFound {
		return p.missing(a)
	}
	if err != nil || fr.damaged {
		return err
	}
	if fr.last != a.LastOffset || fr.magic != 2 || fr.size > maxMarker || !b.IsControl() || b.ProducerID() != a.ProducerID || !isAbort(b) {
		return badFrame("no ABORT marker of producer %d at %d", a.ProducerID, a.LastOffset)
	}
	return nil
}

// missing judges an entry whose marker would be behind the last batch, which the batches do not
// contradict in front of the next segment.
func (p txnProof) missing(a AbortedTxn) error {
	if _, ok := damageList(p.s.Damages()).with(a.LastOffset); ok {
		return nil
	}
	if g := p.s.health.guard.Load(); g != nil && a.LastOffset < g.bound {
		return nil
	}
	return badFrame("no marker at %d", a.LastOffset)
}

// headAt returns the batch that has an offset or is the first behind it: all of it if it is as small
// as a marker, or else its header. A checksum that is wrong puts it in quarantine.
func (s *Segment) headAt(f *openFile, offset int64) (frame, record.Batch, error) {
	for {
		fr, err := s.locate(f, offset, 0)
		if err != nil || fr.damaged || fr.magic != 2 {
			return fr, nil, err
		}
		ok, err := s.isSummed(f, fr)
		if err != nil {
			return fr, nil, err
		}
		if ok {
			b := make(record.Batch, min(fr.size, maxMarker))
			_, err := f.ReadAt(b, fr.position)
			return fr, b, err
		}
		if news, err := s.health.prove(&s.files, f, nil); err != nil || !news {
			fr.damaged = true
			return fr, nil, err
		}
	}
}

func isAbort(b record.Batch) bool {
	t, ok := b.ControlType()
	return ok && t == record.ControlAbort
}

// TxnMayBegin reports whether a transaction of a producer may begin at an offset: a batch of it
// does, or compaction has taken what was there, or damage.
func (s *Segment) TxnMayBegin(producerID, offset int64) (bool, error) {
	f, err := s.log.acquire()
	if err != nil {
		return false, err
	}
	defer f.release()
	fr, b, err := s.headAt(f, offset)
	switch {
	case err == ErrNotFound:
		return true, nil
	case err != nil || fr.damaged:
		return err == nil, err
	case fr.base != offset:
		return fr.base > offset, nil
	case fr.magic != 2:
		return false, nil
	}
	return b.IsTransactional() && !b.IsControl() && b.ProducerID() == producerID, nil
}

// ReplaceAborted makes a list, ascending by last offset and made of the batches, what the .txnindex
// file has: none is missing. On a full disk the file stays as it is, and what is in memory counts.
// One writer at a time; reading goes on.
func (s *Segment) ReplaceAborted(list []AbortedTxn) error {
	if s.cfg.ReadOnly {
		return ErrReadOnly
	}
	last := int64(math.MinInt64)
	for _, a := range list {
		if a.LastOffset <= last {
			return fmt.Errorf("aborted transaction ends at offset %d, not behind %d", a.LastOffset, last)
		}
		last = a.LastOffset
	}
	s.index.Lock()
	defer s.index.Unlock()
	s.txns.Store(newTable(list))
	s.txnsProven.Store(true)
	s.txnsComplete.Store(true)
	return s.replaceTxnsLocked(list)
}

// TxnsComplete reports whether no aborted transaction is missing in the transaction index: this process
// has made it, or looked, or VouchTxns was called.
func (s *Segment) TxnsComplete() bool { return s.txnsComplete.Load() }

// VouchTxns says that no aborted transaction is missing in the transaction index.
func (s *Segment) VouchTxns() { s.txnsComplete.Store(true) }

// IsTxnIndexDamage reports whether an error is about the bytes of a .txnindex file.
func IsTxnIndexDamage(err error) bool {
	c, ok := errors.AsType[*CorruptError](err)
	if !ok {
		return false
	}
	_, kind, _, ok := ParseName(filepath.Base(c.Path))
	return ok && kind == TxnIndexFile
}
