package segment

import "sync/atomic"

// A table is a list of index entries that one goroutine appends to while others read. Readers
// call view and get entries that never change; whoever shortens a list makes a new table.
type table[E any] struct {
	n       atomic.Int32
	entries []E // the first n are published
}

func newTable[E any](entries []E) *table[E] {
	t := &table[E]{entries: entries}
	t.n.Store(int32(len(entries)))
	return t
}

func (t *table[E]) view() []E { return t.entries[:t.n.Load()] }

// appendTo appends an entry to the table behind p, or to a larger copy that takes its place.
// One goroutine at a time.
func appendTo[E any](p *atomic.Pointer[table[E]], e E) {
	t := p.Load()
	n := int(t.n.Load())
	if n == len(t.entries) {
		larger := &table[E]{entries: make([]E, max(8, 2*n))}
		copy(larger.entries, t.entries)
		larger.n.Store(int32(n))
		p.Store(larger)
		t = larger
	}
	t.entries[n] = e
	t.n.Store(int32(n + 1))
}
