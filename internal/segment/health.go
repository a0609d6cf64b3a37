package segment

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// health is what is known of the bytes of a .log file. Readers load, who changes it holds mu.
type health struct {
	damage atomic.Pointer[damageList] // nil: none known
	guard  atomic.Pointer[guard]      // nil: damage is an error
	doubt  atomic.Pointer[doubt]      // nil: every byte was proven, or written by this process
	mu     struct {
		sync.Mutex
		proven   bool // Guard need not doubt
		onDamage func(path string, d Damage)
	}
}

// A guard bounds what is to be proven: the bytes below end, whose offsets are below bound.
type guard struct{ end, bound int64 }

// A doubt says which bytes below a guard's end nobody has looked at since the file was opened.
// It is immutable.
type doubt struct{ proven []span }

// A span is a stretch of good batches. next is the offset behind its last one.
type span struct{ from, to, next int64 }

// list is what is in quarantine, in order.
func (h *health) list() []Damage {
	if l := h.damage.Load(); l != nil {
		return *l
	}
	return nil
}

// guardTo guards the bytes below end, with offsets below bound.
func (h *health) guardTo(end, bound int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guard.Store(&guard{end: end, bound: bound})
	if !h.mu.proven {
		h.doubt.Store(&doubt{})
		h.mu.proven = true // only once
	}
}

// setLocked publishes a list and tells of what is new in it.
func (h *health) setLocked(files *fileSet, list []Damage) (news bool) {
	old := h.list()
	if len(list) == 0 {
		h.damage.Store(nil)
	} else {
		h.damage.Store((*damageList)(&list))
	}
	for _, d := range list {
		known := slices.ContainsFunc(old, func(o Damage) bool { return o.Position == d.Position && o.Size == d.Size })
		if known {
			continue
		}
		news = true
		if h.mu.onDamage != nil {
			h.mu.onDamage(files.name(LogFile), d)
		}
	}
	return news
}

// cutLocked forgets what is at a position and behind it, or an offset, because it was
// truncated.
func (h *health) cutLocked(files *fileSet, position, offset int64) {
	var kept []Damage
	for _, d := range h.list() {
		d.End = min(d.End, offset)
		if d.Size > 0 && d.end() <= position || d.Size == 0 && d.First < d.End && d.Position <= position {
			kept = append(kept, d)
		}
	}
	h.setLocked(files, kept)
}

// before returns the position of the first damage at or behind a position, or limit.
func (h *health) before(position, limit int64) int64 {
	if l := h.damage.Load(); l != nil {
		if i := l.from(position); i < len(*l) {
			return min(limit, (*l)[i].Position)
		}
	}
	return limit
}

// errorAt is the error for a reader of a damaged stretch.
func (h *health) errorAt(files *fileSet, position int64) error {
	l := h.damage.Load()
	if l == nil {
		return ErrNotFound // truncated meanwhile
	}
	d, ok := l.at(position)
	if !ok {
		return ErrNotFound
	}
	return files.quarantined(d)
}

// lossAt returns the error for an offset behind the last batch that is known to be lost.
func (h *health) lossAt(files *fileSet, offset int64) error {
	list := h.list()
	if n := len(list); n > 0 && list[n-1].Size == 0 && offset < list[n-1].End {
		return files.quarantined(list[n-1])
	}
	return ErrNotFound
}

// prove walks over everything that is guarded and renews the list of damageList.
func (h *health) prove(files *fileSet, f *openFile, pace func(int) error) (news bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.guard.Load()
	if g == nil {
		return false, nil
	}
	p := newProver(files, f, g.end, g.bound)
	defer p.release()
	p.r.pace = pace
	var list damageList
	for {
		_, d, err := p.step()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
		if d.Size > 0 {
			if p.tail {
				d.End = max(d.First, g.bound)
			}
			list = append(list, d)
		}
	}
	for _, d := range h.list() {
		if d.Size == 0 || d.Position >= g.end {
			list = append(list, d)
		}
	}
	h.doubt.Store(nil)
	return h.setLocked(files, list), nil
}

// heal is called by who met bytes that are no batch, and knew the damage seen; true asks to
// look again.
func (h *health) heal(files *fileSet, f *openFile, err error, seen *damageList) bool {
	if h.guard.Load() == nil || !isDamage(err) {
		return false
	}
	if h.damage.Load() != seen {
		return true
	}
	if corrupt, ok := errors.AsType[*CorruptError](err); ok && corrupt.End > 0 {
		return false // in quarantine already
	}
	news, err := h.prove(files, f, nil)
	return err == nil && news
}

// cut takes notice of a truncation.
func (h *health) cut(files *fileSet, position, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cutLocked(files, position, offset)
	if g := h.guard.Load(); g != nil {
		h.guard.Store(&guard{end: min(g.end, position), bound: min(g.bound, offset)})
	}
	if d := h.doubt.Load(); d != nil {
		h.doubt.Store(&doubt{slices.DeleteFunc(slices.Clone(d.proven), func(sp span) bool { return sp.to > position })})
	}
}

// find returns the span that has a position.
func (d *doubt) find(position int64) (int, bool) {
	for i, sp := range d.proven {
		if sp.from <= position && position < sp.to {
			return i, true
		}
	}
	return 0, false
}

// proveSpan looks at the batches from sp on, up to a position, and keeps what it learns. An
// index entry vouches for the first one: it must end at the entry's offset. From then on no
// offset may be missing. False says that something is odd, and that all must be looked at.
func (h *health) proveSpan(files *fileSet, f *openFile, sp span, entry, to int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, g := h.doubt.Load(), h.guard.Load()
	if d == nil {
		return true
	}
	r := newBatchReader(files, h.damage.Load(), f, sp.from, g.end)
	defer r.release()
	rest := slices.Clone(d.proven)
	for r.position < to {
		if i, ok := (&doubt{rest}).find(r.position); ok {
			sp.from = min(sp.from, rest[i].from)
			sp.to, sp.next = rest[i].to, rest[i].next
			r.position = sp.to
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		l, err := r.next()
		if err != nil || l.Batch.Verify() != nil {
			return false
		}
		last := l.Batch.LastOffset()
		switch {
		case sp.next < 0 && last != entry:
			return false
		case sp.next >= 0 && l.Batch.BaseOffset() != sp.next || last < l.Batch.BaseOffset():
			return false
		}
		sp.to, sp.next = r.position, last+1
	}
	if sp.from == 0 && sp.to >= g.end {
		h.doubt.Store(nil)
	} else {
		h.doubt.Store(&doubt{append(rest, sp)})
	}
	return true
}
