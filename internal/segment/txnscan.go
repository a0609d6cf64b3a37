package segment

import (
	"cmp"
	"io"
	"slices"

	"github.com/gregor-kafka/gregor/internal/record"
)

// A TxnScan is what the headers of a segment say of transactions.
type TxnScan struct {
	// Aborted are what ABORT markers ended, in order.
	Aborted []ScannedTxn

	// Open are transactions with records here whose marker is not, by first offset.
	Open []OpenTxn

	End int64 // offset behind the last batch

	// Intact says that nothing stood in the way. Otherwise the rest is of no use.
	Intact bool
}

// A ScannedTxn is a transaction that an ABORT marker ended.
type ScannedTxn struct {
	ProducerID  int64
	FirstOffset int64 // of its records in the segment, -1 for none
	LastOffset  int64 // of the marker
	After       int64 // behind the marker of the transaction before, -1 for none in the segment
}

// An OpenTxn is a transaction that goes on behind a segment.
type OpenTxn struct {
	ProducerID  int64
	FirstOffset int64 // of its records that are known
}

// ScanTxns reads the headers of the batches in the first size bytes, and nothing of records but
// markers, and the first batch of each transaction for its checksum. Damage that is met goes to
// quarantine.
func (s *Segment) ScanTxns(size int64) (TxnScan, error) {
	if len(s.Damages()) > 0 {
		return TxnScan{}, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return TxnScan{}, err
	}
	defer f.release()
	w := txnScanner{s: s, f: f, open: map[int64]int64{}, ended: map[int64]int64{}, next: s.base}
	w.sc = scanner{file: f, limit: min(size, s.size.Load())}
	defer w.sc.release()
	intact, err := w.run()
	if err != nil || !intact {
		return TxnScan{}, err
	}
	return TxnScan{Aborted: w.aborted, Open: w.openTxns(), End: w.next, Intact: true}, nil
}

type txnScanner struct {
	s       *Segment
	f       *openFile
	sc      scanner
	next    int64 // offset behind the batch before
	aborted []ScannedTxn
	open    map[int64]int64 // first offsets by producer
	ended   map[int64]int64 // offsets behind their last markers
	proven  bool            // that offsets are missing is no damage
}

func (w *txnScanner) run() (intact bool, err error) {
	for position := int64(0); ; {
		fr, err := w.sc.at(position)
		if err == io.EOF {
			return true, nil
		}
		odd := isBadFrame(err)
		if err != nil && !odd {
			return false, err
		}
		if !odd && fr.magic == 2 {
			if odd, err = w.batch(fr); err != nil {
				return false, err
			}
		}
		if odd || !w.follows(fr) {
			if news, err := w.s.health.prove(&w.s.files, w.f, nil); err != nil || news || odd || len(w.s.Damages()) > 0 {
				return false, err
			}
			w.proven = true
		}
		w.next, position = fr.last+1, fr.end()
	}
}

// follows reports whether a batch goes on where the one before ended.
func (w *txnScanner) follows(fr frame) bool {
	return w.proven || fr.base == w.next || fr.magic < 2 && fr.base >= w.next || w.s.health.doubt.Load() == nil && fr.base > w.next
}

// batch takes notice of a batch. odd says that it is damaged.
func (w *txnScanner) batch(fr frame) (odd bool, err error) {
	head := record.Batch(w.sc.block[fr.position-w.sc.start:][:record.HeaderSize])
	id := head.ProducerID()
	if head.IsControl() {
		return w.marker(fr)
	}
	first, isOpen := w.open[id]
	switch {
	case isOpen == head.IsTransactional(), head.Count() == 0: // compaction leaves headers without records
		return false, nil
	case !isOpen:
		first = fr.base
	}
	if ok, err := w.s.isSummed(w.f, fr); !ok || err != nil {
		return true, err
	}
	if !head.IsTransactional() {
		return false, nil // of a producer whose transaction must have ended
	}
	w.open[id] = first
	return false, nil
}

func (w *txnScanner) marker(fr frame) (odd bool, err error) {
	if fr.size > maxMarker {
		return true, nil
	}
	b := make(record.Batch, fr.size)
	if _, err := w.f.ReadAt(b, fr.position); err != nil {
		return false, err
	}
	if b.Verify() != nil {
		return true, nil
	}
	t, ok := b.ControlType()
	if !ok || t != record.ControlAbort && t != record.ControlCommit {
		return false, nil
	}
	id := b.ProducerID()
	if t == record.ControlAbort {
		w.aborted = append(w.aborted, ScannedTxn{id, offsetOr(w.open, id, -1), fr.last, offsetOr(w.ended, id, -1)})
	}
	delete(w.open, id)
	w.ended[id] = fr.last + 1
	return false, nil
}

func offsetOr(offsets map[int64]int64, id, otherwise int64) int64 {
	if offset, ok := offsets[id]; ok {
		return offset
	}
	return otherwise
}

func (w *txnScanner) openTxns() (list []OpenTxn) {
	for id, first := range w.open {
		list = append(list, OpenTxn{id, first})
	}
	slices.SortFunc(list, func(a, b OpenTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return list
}

// isSummed reports whether the checksum of a batch is right.
func (s *Segment) isSummed(f *openFile, fr frame) (bool, error) {
	r := newBatchReader(&s.files, s.health.damage.Load(), f, fr.position, fr.end())
	defer r.release()
	err := r.checkSum(fr)
	if err != nil && isDamage(err) {
		return false, nil
	}
	return err == nil, err
}

// A Header is what the header of a batch says of transactions.
type Header struct {
	First, Last   int64
	Position      int64
	ProducerID    int64 // -1 for none
	Transactional bool
	Control       bool
}

// Headers calls visit for the batches that begin in bytes [from, to), from their headers alone, until
// it returns false. Damage is passed by.
func (s *Segment) Headers(from, to int64, visit func(Header) bool) error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	sc := s.scanner(f)
	defer sc.release()
	for position := from; position < to; {
		fr, err := sc.at(position)
		if err == io.EOF || err == errTorn {
			return nil
		}
		if isBadFrame(err) {
			err = s.files.corrupt(position, -1, err)
		}
		if err != nil {
			return err
		}
		h := Header{First: fr.base, Last: fr.last, Position: position, ProducerID: -1}
		if fr.magic == 2 {
			head := record.Batch(sc.block[position-sc.start:][:record.HeaderSize])
			h.ProducerID, h.Transactional, h.Control = head.ProducerID(), head.IsTransactional(), head.IsControl()
		}
		if !fr.damaged && !visit(h) {
			return nil
		}
		position = fr.end()
	}
	return nil
}
