package segment

import "io"

// below is how many batches FirstBelowBase looks at: one may be there because of one bit, two are not.
const below = 2

// FirstBelowBase counts the good batches at the beginning of the file that begin below the base offset,
// two at most. There are none in a file that has its own name.
func (s *Segment) FirstBelowBase() (count int, err error) {
	if s.base == 0 {
		return 0, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer f.release()
	r := newBatchReader(&s.files, s.health.damage.Load(), f, 0, s.size.Load())
	r.damage = nil
	defer r.release()
	for count < below {
		l, err := r.next()
		if err == io.EOF || err != nil && isDamage(err) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
		if l.Batch.Verify() != nil {
			return count, nil
		}
		if from, err := l.Batch.FirstOffset(); err != nil || from >= s.base {
			return count, nil
		}
		count++
	}
	return count, nil
}
