package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// A dirChange puts node under a name, or removes the name when node is nil. A rename also
// removes oldName from another (or the same) directory.
type dirChange struct {
	dir     *memNode
	name    string
	node    *memNode
	from    *memNode
	oldName string
}

// applyTo makes the change in the maps that entries gives for the directories.
func (c dirChange) applyTo(entries func(dir *memNode) map[string]*memNode) {
	if c.from != nil {
		delete(entries(c.from), c.oldName)
	}
	if c.node == nil {
		delete(entries(c.dir), c.name)
		return
	}
	entries(c.dir)[c.name] = c.node
}

func (m *Mem) changeLocked(c dirChange) {
	c.applyTo(func(dir *memNode) map[string]*memNode { return dir.entries })
	now := time.Now()
	c.dir.modTime = now
	if c.from != nil {
		c.from.modTime = now
	}
	m.changes = append(m.changes, c)
}

// syncDirLocked makes the entries of a directory durable, and those of the directories that a
// pending rename ties to it: half a rename is never durable.
func (m *Mem) syncDirLocked(dir *memNode) {
	tied := map[*memNode]bool{dir: true}
	for grown := true; grown; {
		grown = false
		for _, c := range m.changes {
			if c.from != nil && tied[c.dir] != tied[c.from] {
				tied[c.dir], tied[c.from] = true, true
				grown = true
			}
		}
	}
	for d := range tied {
		d.durable = maps.Clone(d.entries)
	}
	var rest []dirChange
	for _, c := range m.changes {
		if !tied[c.dir] {
			rest = append(rest, c)
		}
	}
	m.changes = rest
}

// A fileChange is a write of data at offset, or a truncation to offset.
type fileChange struct {
	offset   int64
	data     []byte
	truncate bool
}

func (c fileChange) applyTo(b []byte) []byte {
	if c.truncate {
		return resized(b, c.offset)
	}
	if end := c.offset + int64(len(c.data)); end > int64(len(b)) && len(c.data) > 0 {
		b = resized(b, end)
	}
	copy(b[min(c.offset, int64(len(b))):], c.data)
	return b
}

// resized returns b with the given length; new bytes are zero.
func resized(b []byte, size int64) []byte {
	if have := int64(len(b)); size > have {
		return append(b, make([]byte, size-have)...)
	}
	return b[:size]
}

func (n *memNode) changeLocked(c fileChange) {
	n.data = c.applyTo(n.data)
	n.pending = append(n.pending, c)
	n.modTime = time.Now()
}

func (n *memNode) syncLocked() {
	for _, c := range n.pending {
		n.synced = c.applyTo(n.synced)
	}
	n.pending = nil
}

// CrashClone returns what could be found after a crash at this moment: all that is synced, and
// of the rest what rng picks. With a nil rng nothing unsynced survives. The clone has no hook
// and no locks, and all in it is durable; m is not changed.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := crash{rng: rng, survived: make(map[*memNode]map[string]*memNode), clones: make(map[*memNode]*memNode)}
	for _, change := range m.changes {
		if c.keep() {
			change.applyTo(c.entries)
		}
	}
	clone := NewMem()
	clone.root = c.clone(m.root)
	return clone
}

// A crash decides what survives.
type crash struct {
	rng      *rand.Rand
	survived map[*memNode]map[string]*memNode // entries of the directories, once looked at
	clones   map[*memNode]*memNode
}

// keep tosses a coin.
func (c *crash) keep() bool { return c.rng != nil && c.rng.IntN(2) == 0 }

func (c *crash) entries(dir *memNode) map[string]*memNode {
	e := c.survived[dir]
	if e == nil {
		e = maps.Clone(dir.durable)
		c.survived[dir] = e
	}
	return e
}

// clone copies a node as it survives. A node with two names, where one half of two renames
// survived, stays one node.
func (c *crash) clone(n *memNode) *memNode {
	if done := c.clones[n]; done != nil {
		return done
	}
	clone := &memNode{dir: n.dir, mode: n.mode, modTime: n.modTime}
	c.clones[n] = clone
	if n.dir {
		clone.entries = make(map[string]*memNode)
		for _, name := range slices.Sorted(maps.Keys(c.entries(n))) {
			clone.entries[name] = c.clone(c.survived[n][name])
		}
		clone.durable = maps.Clone(clone.entries)
		return clone
	}
	clone.data = append([]byte(nil), n.synced...)
	for _, change := range c.order(n.pending) {
		clone.data = c.tear(clone.data, change)
	}
	clone.synced = append([]byte(nil), clone.data...)
	return clone
}

// order returns the changes as they were made, or, once in a while, in any order.
func (c *crash) order(pending []fileChange) []fileChange {
	if c.rng == nil || c.rng.IntN(4) > 0 {
		return pending
	}
	shuffled := append([]fileChange(nil), pending...)
	c.rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// sectorSize is the least that a disk writes.
const sectorSize = 512

// tear applies all, nothing or some of a change.
func (c *crash) tear(b []byte, change fileChange) []byte {
	if c.rng == nil {
		return b
	}
	switch outcome := c.rng.IntN(8); {
	case outcome < 3:
		return change.applyTo(b)
	case outcome < 5:
		return b
	case change.truncate:
		return c.tearTruncate(b, change.offset)
	case outcome == 5:
		return c.tearBytes(b, change)
	case outcome == 6:
		return c.tearSectors(b, change, sectorSize)
	default:
		return c.tearSectors(b, change, 4096)
	}
}

// tearTruncate leaves the file somewhere between its old size and the new one.
func (c *crash) tearTruncate(b []byte, size int64) []byte {
	low, high := min(size, int64(len(b))), max(size, int64(len(b)))
	return resized(b, low+c.rng.Int64N(high-low+1))
}

// tearBytes applies one stretch of a write, cut anywhere behind. Disks write sectors as a whole: in
// front of it only whole ones are missing. Often the size of the file has got through and the bytes
// have not.
func (c *crash) tearBytes(b []byte, w fileChange) []byte {
	size := int64(len(w.data))
	if c.keep() {
		b = resized(b, max(int64(len(b)), w.offset+size))
	}
	end := c.rng.Int64N(size + 1)
	start := int64(0)
	if c.keep() {
		start = c.rng.Int64N(end + 1)
		start = max(0, start-(w.offset+start)%sectorSize)
	}
	return fileChange{offset: w.offset + start, data: w.data[start:end]}.applyTo(b)
}

// tearSectors applies any of the aligned sectors of a write.
func (c *crash) tearSectors(b []byte, w fileChange, sector int64) []byte {
	for start := int64(0); start < int64(len(w.data)); {
		end := min(int64(len(w.data)), start+sector-(w.offset+start)%sector)
		if c.keep() {
			b = fileChange{offset: w.offset + start, data: w.data[start:end]}.applyTo(b)
		}
		start = end
	}
	return b
}
