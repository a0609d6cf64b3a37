package segment

import (
	"fmt"
	"slices"
)

// A Damage is a stretch of a .log file in which no batch makes sense, between two that do. It is
// in quarantine: reads stop in front of it, a read inside of its offsets gets a *CorruptError,
// and what is behind it is found and served as ever. The bytes stay as they are.
type Damage struct {
	Position, Size int64 // bytes [Position, Position+Size); a Size of 0 says that they are missing
	First, End     int64 // offsets [First, End) that were in it; none if they are equal
	Err            error // what is wrong at Position
}

func (d Damage) end() int64 { return d.Position + d.Size }

func (d Damage) String() string {
	return fmt.Sprintf("bytes [%d,%d) offsets [%d,%d): %v", d.Position, d.end(), d.First, d.End, d.Err)
}

// frame makes the stretch look like a batch with its offsets, which walkers pass by.
func (d Damage) frame() frame {
	return frame{position: d.Position, size: int(d.Size), base: d.First, last: d.End - 1, maxTimestamp: -1, leaderEpoch: -1, damaged: true}
}

// damageList is an immutable list, sorted by position and disjoint.
type damageList []Damage

// at returns the damage that has the byte at a position.
func (l *damageList) at(position int64) (Damage, bool) {
	i := l.from(position)
	if i < len(*l) && (*l)[i].Position <= position {
		return (*l)[i], true
	}
	return Damage{}, false
}

// from returns the index of the first damage with bytes at a position or behind it.
func (l *damageList) from(position int64) int {
	i, _ := slices.BinarySearchFunc(*l, position, func(d Damage, position int64) int {
		if d.end() <= position {
			return -1
		}
		return 1
	})
	return i
}

// with returns the damage that has an offset.
func (l damageList) with(offset int64) (Damage, bool) {
	for _, d := range l {
		if d.First <= offset && offset < d.End {
			return d, true
		}
	}
	return Damage{}, false
}

// Damages returns what is in quarantine, in order. The list is not to be changed.
func (s *Segment) Damages() []Damage { return s.health.list() }

// OnDamage makes found be called for each Damage when it is put in quarantine. It may be called
// with locks of the segment held and must not call it. Set it before anything else is done.
func (s *Segment) OnDamage(found func(path string, d Damage)) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.mu.onDamage = found
}

// AddLoss puts offsets in quarantine that are lost together with their bytes: those between the
// last batch and the next segment. why says how that is known. It is forgotten when the segment is
// opened again.
func (s *Segment) AddLoss(first, end int64, why error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	d := Damage{Position: s.size.Load(), First: first, End: end, Err: why}
	if known, ok := damageList(s.Damages()).with(first); ok && known.End >= end {
		return
	}
	s.health.setLocked(&s.files, append(slices.Clone(s.Damages()), d))
}
