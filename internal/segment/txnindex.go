package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/gregor-kafka/gregor/vfs"
)

// txnEntrySize is the size of an entry of a .txnindex file, in bytes.
const txnEntrySize = 34

// An AbortedTxn is a transaction that readers of committed records have to leave out. It is in
// the segment that has its ABORT marker.
type AbortedTxn struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64 // of the marker
	LastStableOffset int64 // after the marker: all below was decided then
}

func (a AbortedTxn) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, 0) // version
	for _, v := range [...]int64{a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStableOffset} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func parseAbortedTxn(b []byte) AbortedTxn {
	field := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[2+8*i:])) }
	return AbortedTxn{field(0), field(1), field(2), field(3)}
}

// AppendAborted adds a transaction to the .txnindex file. Its LastOffset is larger than that of
// the one before. When the disk is full the file gets it later: with the next one, or when the
// segment is sealed or closed. One writer at a time.
func (s *Segment) AppendAborted(a AbortedTxn) error {
	if s.cfg.ReadOnly {
		return ErrReadOnly
	}
	s.index.Lock()
	defer s.index.Unlock()
	txns, err := s.loadTxnsLocked()
	if err != nil {
		return err
	}
	known := txns.view()
	if n := len(known); n > 0 && a.LastOffset <= known[n-1].LastOffset {
		return fmt.Errorf("aborted transaction ends at offset %d, not behind %d", a.LastOffset, known[n-1].LastOffset)
	}
	appendTo(&s.txns, a)
	if err := s.storeTxnsLocked(); err != nil && !vfs.IsFull(err) {
		return err
	}
	return nil
}

// storeTxnsLocked writes the transactions that are not in the file yet.
func (s *Segment) storeTxnsLocked() (err error) {
	txns := s.txns.Load()
	if txns == nil || s.index.txnHeld || len(txns.view()) == s.index.storedTxns {
		return nil
	}
	s.index.noTxnFile = false
	f, err := s.files.open(TxnIndexFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.index.txnUnsynced = true
	s.files.renamed.Store(true)
	var b []byte
	for _, a := range txns.view()[s.index.storedTxns:] {
		b = a.append(b)
	}
	if _, err := f.WriteAt(b, int64(s.index.storedTxns)*txnEntrySize); err != nil {
		return err
	}
	s.index.storedTxns = len(txns.view())
	return nil
}

// Aborted returns the transactions with records in [fetchOffset, upper) whose markers are in
// this segment. done says that no later segment can have more of them, if the last stable offsets in
// the index are right.
func (s *Segment) Aborted(fetchOffset, upper int64) (list []AbortedTxn, done bool, err error) {
	txns, err := s.loadTxns()
	if err != nil {
		return nil, false, err
	}
	all := txns.view()
	from, _ := slices.BinarySearchFunc(all, fetchOffset, func(a AbortedTxn, at int64) int { return cmp.Compare(a.LastOffset, at) })
	for i := range all[from:] {
		a := &all[from+i]
		if a.FirstOffset < upper {
			list = append(list, *a)
		}
		done = done || a.LastStableOffset >= upper
	}
	return list, done, nil
}

// NoteNoTxnIndex says that there is no .txnindex file, so that nobody looks for it in vain. Most
// segments have none.
func (s *Segment) NoteNoTxnIndex() {
	s.index.Lock()
	defer s.index.Unlock()
	s.index.noTxnFile = true
}

// openTxnsLocked opens the .txnindex file. A missing one is looked for once.
func (s *Segment) openTxnsLocked(flag int) (vfs.File, error) {
	if s.index.noTxnFile {
		return nil, fs.ErrNotExist
	}
	f, err := s.files.open(TxnIndexFile, flag)
	s.index.noTxnFile = errors.Is(err, fs.ErrNotExist)
	return f, err
}

func (s *Segment) loadTxns() (*table[AbortedTxn], error) {
	if t := s.txns.Load(); t != nil {
		return t, nil
	}
	s.index.Lock()
	defer s.index.Unlock()
	return s.loadTxnsLocked()
}

// A TxnIndexState says what a .txnindex file is worth.
type TxnIndexState int8

// A file is only made for an entry, so that none is normal, and an empty one is not.
const (
	TxnIndexWhole TxnIndexState = iota
	TxnIndexMissing
	TxnIndexEmpty
	TxnIndexBad // something in it is no entry, or half of one
)

// StoredAborted returns what can be read of the .txnindex file, up to the first thing in it that is
// no entry, and of entries that are not in the file yet.
func (s *Segment) StoredAborted() ([]AbortedTxn, TxnIndexState, error) {
	s.index.Lock()
	defer s.index.Unlock()
	list, state, err := s.storedAborted()
	if t := s.txns.Load(); err == nil && t != nil && len(t.view()) > len(list) && !s.index.txnHeld {
		list = slices.Clone(t.view())
	}
	return list, state, err
}

func (s *Segment) storedAborted() (list []AbortedTxn, state TxnIndexState, err error) {
	f, err := s.openTxnsLocked(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, TxnIndexMissing, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	list, bad, err := decodeTxns(f, size/txnEntrySize, s.base)
	switch {
	case bad != nil || size%txnEntrySize != 0:
		state = TxnIndexBad
	case size == 0:
		state = TxnIndexEmpty
	}
	return list, state, err
}

// CheckTxnIndex reads the .txnindex file and reports damage as a CorruptError. Recover makes
// the file anew.
func (s *Segment) CheckTxnIndex() error {
	s.index.Lock()
	defer s.index.Unlock()
	_, err := s.loadTxnsLocked()
	return err
}

// loadTxnsLocked reads the file once; the list then stays in memory.
func (s *Segment) loadTxnsLocked() (*table[AbortedTxn], error) {
	if t := s.txns.Load(); t != nil {
		return t, nil
	}
	list, err := s.readTxns()
	if err != nil {
		return nil, err
	}
	t := newTable(list)
	s.txns.Store(t)
	s.index.storedTxns = len(list)
	return t, nil
}

// readTxns reads all whole entries; fewer bytes than an entry at the end are ignored.
func (s *Segment) readTxns() ([]AbortedTxn, error) {
	f, err := s.openTxnsLocked(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	list, bad, err := decodeTxns(f, size/txnEntrySize, s.base)
	if err != nil {
		return nil, err
	}
	if bad != nil {
		position := int64(len(list)) * txnEntrySize
		return nil, &CorruptError{Path: f.Name(), Position: position, Offset: -1, Err: bad}
	}
	return list, nil
}

// decodeTxns reads count entries, one at a time: there are few, and a hostile file ends at its
// first wrong one. bad says what is wrong with the entry behind list.
func decodeTxns(r io.ReaderAt, count, base int64) (list []AbortedTxn, bad, err error) {
	last := base - 1
	b := make([]byte, txnEntrySize)
	for i := range count {
		if _, err := r.ReadAt(b, i*txnEntrySize); err != nil {
			return nil, nil, err
		}
		a := parseAbortedTxn(b)
		switch {
		case int8(b[0]) > 0: // as Kafka, which looks at the first byte of two only
			return list, fmt.Errorf("unknown version %d", b[0]), nil
		case a.LastOffset <= last:
			return list, fmt.Errorf("last offset %d is not above %d", a.LastOffset, last), nil
		}
		last = a.LastOffset
		list = append(list, a)
	}
	return list, nil, nil
}

// truncateTxnsLocked drops the transactions that end at an offset or behind it.
func (s *Segment) truncateTxnsLocked(offset int64) error {
	txns, err := s.loadTxnsLocked()
	if err != nil {
		return err
	}
	known := txns.view()
	keep := 0
	for keep < len(known) && known[keep].LastOffset < offset {
		keep++
	}
	if keep == len(known) {
		return nil
	}
	s.txns.Store(newTable(append([]AbortedTxn(nil), known[:keep]...)))
	s.index.storedTxns = min(s.index.storedTxns, keep)
	return s.trimTxnFile(int64(s.index.storedTxns) * txnEntrySize)
}

// holdTxnsLocked begins a new transaction index in memory. The file stays until keepTxns, so that a
// crash takes nothing away that cannot be made again.
func (s *Segment) holdTxnsLocked() {
	s.txns.Store(newTable[AbortedTxn](nil))
	s.index.storedTxns = 0
	s.index.txnHeld = true
	s.txnsProven.Store(true)
}

// keepTxns ends what holdTxnsLocked began. Entries of the file whose marker would be in a damage stay,
// those that say that a transaction began earlier, and those with an ABORT marker for a transaction that
// nobody knew to be open: nothing says here that they are wrong. aborts has the producers of such
// markers by offset.
func (s *Segment) keepTxns(damages damageList, aborts map[int64]int64) error {
	s.index.Lock()
	defer s.index.Unlock()
	stored, state, err := s.storedAborted()
	if err != nil {
		return err
	}
	list := slices.Clone(s.txns.Load().view())
	proven := true
	for _, a := range stored {
		i := slices.IndexFunc(list, func(m AbortedTxn) bool { return m.LastOffset == a.LastOffset })
		_, damaged := damages.with(a.LastOffset)
		switch {
		case plausible(a, s.base) != nil:
			continue
		case i < 0 && (damaged || offsetOr(aborts, a.LastOffset, -1) == a.ProducerID):
			list = append(list, a)
		case i >= 0 && list[i].ProducerID == a.ProducerID && list[i].FirstOffset > a.FirstOffset:
			list[i] = a // damage may hide where it began
		default:
			continue
		}
		proven = false
	}
	sortTxns(list)
	s.txnsProven.Store(proven)
	s.txnsComplete.Store(true)
	s.index.txnHeld = false
	s.txns.Store(newTable(list))
	if slices.Equal(list, stored) && state != TxnIndexBad {
		s.index.storedTxns, s.index.txnUnsynced = len(list), len(list) > 0
		return nil
	}
	return s.replaceTxnsLocked(list)
}

func sortTxns(list []AbortedTxn) {
	slices.SortFunc(list, func(a, b AbortedTxn) int { return cmp.Compare(a.LastOffset, b.LastOffset) })
}

// replaceTxnsLocked makes the file what the list says, at once or, on a full disk, later.
func (s *Segment) replaceTxnsLocked(list []AbortedTxn) error {
	s.index.storedTxns = 0
	if len(list) == 0 {
		return s.trimTxnFile(0)
	}
	var b []byte
	for _, a := range list {
		b = a.append(b)
	}
	s.index.noTxnFile = false
	err := vfs.WriteFileAtomic(s.files.fs, s.Path(TxnIndexFile), b)
	switch {
	case err == nil:
		s.index.storedTxns = len(list)
	case vfs.IsFull(err):
		err = nil
	}
	return err
}

func (s *Segment) trimTxnFile(size int64) (err error) {
	var f vfs.File
	f, err = s.openTxnsLocked(os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.index.txnUnsynced = true
	return trimFile(f, size)
}
