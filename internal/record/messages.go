package record

import "iter"

// Messages yields the messages of format v0 or v1 in b as they are stored, with their own
// offset fields and checksums: those in a wrapper, or b itself. They are valid until the next
// step. An error is the last thing yielded. A v2 batch has none.
func (b Batch) Messages() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		switch {
		case !b.isMessage():
		case b.Codec() == None:
			yield(b, nil)
		default:
			b.inner(yield)
		}
	}
}

func (b Batch) inner(yield func(Batch, error) bool) {
	s := scratches.Get().(*scratch)
	defer s.release()
	w, err := b.unwrap(s, DefaultMaxDecompressed)
	if err != nil {
		yield(nil, err)
		return
	}
	for p := w.set; len(p) > 0; {
		m, err := w.next(p)
		if !yield(m, err) || err != nil {
			return
		}
		p = p[len(m):]
	}
}
