package segment

import (
	"io"
	"io/fs"
	"math"
	"slices"
)

// carryChunk is how much of a damage is copied at a time.
const carryChunk = 64 << 10

// AppendDamage appends the bytes of a damage of another segment as they are, none if they are missing,
// and puts them in quarantine with the offsets that they had. The caller seals the segment then:
// behind bad bytes nothing is appended, which they could make look whole.
func (s *Segment) AppendDamage(from *Segment, d Damage) error {
	if err := s.becomeWriter(); err != nil {
		return err
	}
	size := s.size.Load()
	if size+d.Size > math.MaxInt32 {
		return ErrFull
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	err = from.ReadDamage(d, func(b []byte, at int64) error {
		n, err := f.WriteAt(b, size+at)
		if err == nil && n < len(b) {
			err = &fs.PathError{Op: "write", Path: s.Path(LogFile), Err: io.ErrShortWrite}
		}
		return err
	})
	s.dirty.Store(true)
	if err != nil {
		return undoWrite(f, size, err)
	}
	s.size.Store(size + d.Size)
	s.txnsComplete.Store(false)
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	d.Position = size
	s.health.setLocked(&s.files, append(slices.Clone(s.Damages()), d))
	return nil
}

// ReadDamage reads the bytes of a damage, a part at a time. An error of part ends it.
func (s *Segment) ReadDamage(d Damage, part func(b []byte, at int64) error) error {
	buf := make([]byte, min(carryChunk, d.Size))
	for at := int64(0); at < d.Size; {
		b := buf[:min(int64(len(buf)), d.Size-at)]
		if err := s.ReadBytes(b, d.Position+at); err != nil {
			return err
		}
		if err := part(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// DoubtTxns makes what the transaction index says and leaves out be looked at again.
func (s *Segment) DoubtTxns() {
	s.txnsComplete.Store(false)
	s.txnsProven.Store(false)
}
