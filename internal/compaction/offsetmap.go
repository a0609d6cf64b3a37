package compaction

import (
	"fmt"
	"io"
	"math/bits"
)

// An offsetMap says for each key that is dirty which record survives (Kafka's SkimpyOffsetMap).
// It has digests and no keys, in open addressing:
//
//	0        8        16       24
//	+--------+--------+--------+
//	| hi     | lo     | offset |   a slot; digest 0 is an empty one
//	+--------+--------+--------+
//
// A key's slot is the first free one from hi * slots / 2^64 on. That keeps the order of the
// digests, so that a map which grows is copied from front to back. It begins small, doubles
// when it is full, and ends at its limit: then it takes no new keys.
type offsetMap struct {
	*hasher
	slots      []slot
	memory     memory
	loadFactor float64
	limit      int // of slots
	count      int // of keys
	max        int // of keys before it has to grow

	// versions are beside the slots where the newest record is not the one that survives.
	versions       []int64
	versionsMemory memory
	versioned      bool

	sink uint64 // keeps the compiler from leaving touch out
}

type slot struct {
	digest
	offset int64
}

const (
	slotSize    = 24
	versionSize = 8
	firstSlots  = 32 << 10 // at most; they fit in a cache
)

// newOffsetMap returns a map for up to keys keys, in at most maxBytes bytes when it has grown.
// While it grows there is half of it besides. Its secret key is from source.
func newOffsetMap(source io.Reader, maxBytes, keys int64, loadFactor float64, versioned bool) (*offsetMap, error) {
	size := int64(slotSize)
	if versioned {
		size += versionSize
	}
	if loadFactor <= 0 || loadFactor > 1 {
		loadFactor = 0.9
	}
	m := &offsetMap{hasher: newHasher(source), loadFactor: loadFactor, versioned: versioned}
	m.limit = int(max(2, min(maxBytes/size, int64(float64(keys)/loadFactor)+2)))
	return m, m.resize(min(m.limit, firstSlots))
}

// close gives the memory back.
func (m *offsetMap) close() {
	m.memory.free()
	m.versionsMemory.free()
	*m = offsetMap{}
}

// resize moves the map to another number of slots.
func (m *offsetMap) resize(n int) error {
	old := *m
	var err error
	if m.memory, err = allocate(n * slotSize); err != nil {
		*m = old
		return fmt.Errorf("offset map of %d slots: %w", n, err)
	}
	m.slots = slotsOf(m.memory, n)
	if m.versioned {
		if m.versionsMemory, err = allocate(n * versionSize); err != nil {
			m.memory.free()
			*m = old
			return fmt.Errorf("versions of %d slots: %w", n, err)
		}
		m.versions = versionsOf(m.versionsMemory, n)
	}
	m.max = min(max(1, int(float64(n)*m.loadFactor)), n-1)
	for i, s := range old.slots {
		if s.digest != (digest{}) {
			k, _ := m.find(s.digest)
			m.slots[k] = s
			if m.versioned {
				m.versions[k] = old.versions[i]
			}
		}
	}
	old.memory.free()
	old.versionsMemory.free()
	return nil
}

// home is where the search for a digest begins.
func (m *offsetMap) home(d digest) int {
	i, _ := bits.Mul64(d.hi, uint64(len(m.slots)))
	return int(i)
}

// find returns the slot of a digest, or the free one where it belongs.
func (m *offsetMap) find(d digest) (i int, found bool) {
	slots := m.slots
	for i = m.home(d); ; {
		s := &slots[i]
		if s.digest == d {
			return i, true
		}
		if s.digest == (digest{}) {
			return i, false
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// touch brings the slots of digests near before they are searched: the first one, and the one
// two behind, which is often in the next line of the cache. The loads do not wait for each
// other, as those of find do.
func (m *offsetMap) touch(entries []entry) {
	sink, slots := m.sink, m.slots
	last := len(slots) - 1
	for i := range entries {
		home := m.home(entries[i].digest)
		sink += slots[home].hi + slots[min(home+2, last)].hi
	}
	m.sink = sink
}

// put notes the record of an entry if it beats the one that is known for its key. It reports
// false if the map has no room for another key.
func (m *offsetMap) put(e *entry) (ok bool, err error) {
	i, found := m.find(e.digest)
	if !found {
		if m.count == m.max {
			if len(m.slots) == m.limit {
				return false, nil
			}
			if err := m.resize(min(2*len(m.slots), m.limit)); err != nil {
				return false, err
			}
			i, _ = m.find(e.digest)
		}
		m.count++
	} else if m.versioned && e.version < m.versions[i] {
		return true, nil
	}
	m.slots[i] = slot{e.digest, e.offset}
	if m.versioned {
		m.versions[i] = e.version
	}
	return true, nil
}

// raise is put for a key that is in the map already; others are left out.
func (m *offsetMap) raise(e *entry) {
	i, found := m.find(e.digest)
	if found && (e.version > m.versions[i] || e.version == m.versions[i] && e.offset > m.slots[i].offset) {
		m.slots[i].offset, m.versions[i] = e.offset, e.version
	}
}

// beaten reports whether another record of the same key survives in the place of this one.
func (m *offsetMap) beaten(e *entry) bool {
	i, found := m.find(e.digest)
	if m.versioned {
		return found && e.offset != m.slots[i].offset
	}
	return found && e.offset < m.slots[i].offset
}
