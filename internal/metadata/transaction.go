package metadata

import "errors"

// Transactions takes metadata transactions (KIP-868) out of a log: what lies between a
// BeginTransactionRecord and its EndTransactionRecord happens when the latter is read, and not
// at all when an AbortTransactionRecord comes instead. The zero value stands between two.
type Transactions struct {
	open    bool
	pending []Record
}

// Open reports whether a transaction has begun and not ended.
func (t *Transactions) Open() bool { return t.open }

// Next takes the records of one batch and returns those that happen with it. On error nothing
// has changed.
func (t *Transactions) Next(records []Record) ([]Record, error) {
	next, ready := *t, []Record(nil)
	for _, r := range records {
		switch r.(type) {
		case *BeginTransactionRecord:
			if next.open {
				return nil, errors.Join(ErrCorrupt, errors.New("a transaction begins inside another"))
			}
			next = Transactions{open: true}
		case *EndTransactionRecord, *AbortTransactionRecord:
			if !next.open {
				return nil, errors.Join(ErrCorrupt, errors.New("a transaction ends that has not begun"))
			}
			if _, end := r.(*EndTransactionRecord); end {
				ready = append(ready, next.pending...)
			}
			next = Transactions{}
		default:
			if next.open {
				next.pending = append(next.pending, r)
			} else {
				ready = append(ready, r)
			}
		}
	}
	*t = next
	return ready, nil
}
