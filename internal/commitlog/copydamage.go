package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// CopyDamage brings the end of a copy behind a stretch that is in quarantine in the log that is copied,
// which a read at that end has met as err. The copy has the same bytes then, and in front of the next
// segment the same offsets in quarantine. It returns how many bytes that were, at least 1. Damage that
// the log does not know yet is looked for, and the next read meets it.
func (l *Log) CopyDamage(from *Log, err error) (int, error) {
	met, ok := errors.AsType[*segment.CorruptError](err)
	if !ok || met.End == 0 {
		return from.expose(l.Offsets().End, err)
	}
	s, d, ok := from.damageAt(met)
	if !ok {
		return 0, err // it is gone meanwhile
	}
	if err := from.prepareDamage(s, d); err != nil {
		return 0, err
	}
	witnesses := from.snapshotsNow()
	if err := l.prepare(); err != nil {
		return 0, err
	}
	if err := l.room(); err != nil {
		return 0, err
	}
	l.files.Lock()
	defer l.files.Unlock()
	l.mu.Lock()
	defer l.unlockRolled()
	if err := l.usableLocked(); err != nil {
		return 0, err
	}
	end := l.offsets.Load().End
	if err := l.copyDamageLocked(s, d, &witnesses); err != nil {
		return 0, errors.Join(l.spare("copy damage", err), l.truncateLocked(end))
	}
	return int(max(d.Size, 1)), nil
}

// expose looks for the damage that a reader at an offset has met as err.
func (l *Log) expose(offset int64, err error) (int, error) {
	o := l.Offsets()
	for _, s := range o.segments[max(0, o.floor(offset)):] {
		if s == o.active() { // of that only what was there when it was opened would be looked at
			if err := l.Roll(); err != nil {
				return 0, err
			}
		}
		if news, err := s.Scrub(nil); err != nil || news {
			return 1, err
		}
		if next, err := s.NextOffset(); err == nil && next > offset {
			break
		}
	}
	return 0, err
}

// prepareDamage finds out what there is to know of transactions whose end may be in a damage, before
// it is copied, and whether its bytes can be read: later an error would be the copy's.
func (l *Log) prepareDamage(s *segment.Segment, d segment.Damage) error {
	o := l.Offsets()
	_, err := l.factsAt(o, max(0, o.floor(s.BaseOffset())))
	if err == nil {
		err = s.ReadDamage(d, func([]byte, int64) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("%v: %w", l.partition, err)
	}
	return nil
}

// damageAt returns the damage that a reader has met, and its segment.
func (l *Log) damageAt(met *segment.CorruptError) (*segment.Segment, segment.Damage, bool) {
	for _, s := range l.Offsets().segments {
		for _, d := range s.Damages() {
			if d.First == met.Offset && d.End == met.End {
				return s, d, true
			}
		}
	}
	return nil, segment.Damage{}, false
}

// snapshotsNow returns what to look up producer snapshots with. Of those that are removed meanwhile
// nothing is found.
func (l *Log) snapshotsNow() snapshots {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.snapshots
	s.offsets, s.unsynced, s.doubted = slices.Clone(s.offsets), nil, nil
	return s
}

func (l *Log) copyDamageLocked(from *segment.Segment, d segment.Damage, witnesses *snapshots) error {
	o, c := l.offsets.Load(), l.config.Load()
	if d.First < o.End { // the log begins in it: the bytes in front are not of this one
		d.First, d.Size = o.End, 0
	}
	active := o.active()
	tooLarge := active.Size() > 0 && active.Size()+d.Size > int64(c.SegmentBytes)
	begins := d.First == from.BaseOffset() // what the indexes in front are worth is no matter then
	if d.First > active.BaseOffset() && (tooLarge || begins || d.First > o.End) {
		if err := l.rollLocked(d.First, "damage", c); err != nil {
			return err
		}
		active = l.offsets.Load().active()
	}
	if err := l.appendDamageLocked(active, from, d, witnesses); err != nil {
		return err
	}
	return l.rollLocked(d.End, "damage", c)
}

// appendDamageLocked does to the copy what recovery does when it meets damage.
func (l *Log) appendDamageLocked(active, from *segment.Segment, d segment.Damage, witnesses *snapshots) error {
	aborted, _, err := from.StoredAborted()
	if err != nil {
		return err
	}
	if err := l.soundTxnsLocked(active); err != nil {
		return err
	}
	if d.Size == 0 {
		if err := l.addLossLocked(checkpoint.Loss{First: d.First, End: d.End}); err != nil {
			return err
		}
	}
	if err := active.AppendDamage(from, d); err != nil {
		return err
	}
	l.offsets.data = d.End
	next := l.offsets.next()
	next.end = position{d.End, active, active.Size()}
	l.offsets.publish(next, l.mu.producers)
	copied := active.Damages()
	t, ended, err := l.mu.producers.lostIn(active, copied[len(copied)-1], aborted)
	if ended {
		l.mu.producers.complete(t) // TakeOver sees to the index
	}
	if err == nil {
		err = witnesses.witness(d.End, l.mu.producers)
	}
	return err
}

// addLossLocked notes a loss at the end of the log, in place of one that could not be copied before.
func (l *Log) addLossLocked(lost checkpoint.Loss) error {
	var list []checkpoint.Loss
	if l.mu.losses != nil {
		list = slices.DeleteFunc(slices.Clone(l.mu.losses.says), func(had checkpoint.Loss) bool { return had.End > lost.First })
	}
	return l.storeLossesLocked(append(list, lost))
}
