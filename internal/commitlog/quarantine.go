package commitlog

import (
	"fmt"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// A Quarantined is a stretch of a segment that is damaged. Reads in its offsets get an error
// that matches segment.ErrCorrupt and is a *segment.CorruptError with the place and the first
// offset behind it; what is in front and behind is served. The offsets are never used again.
//
// Damage is found by recovery after an unclean stop, by the first read of what was in a file
// when the log was opened, by a look-up that meets it, and by Scrub. Nothing is written about
// damaged bytes: the next Open finds them in the same ways. Of what is gone with its bytes the file
// gregor-losses tells.
type Quarantined struct {
	Segment int64 // base offset
	segment.Damage
}

// Quarantine lists the stretches that are known to be damaged, in order.
func (l *Log) Quarantine() []Quarantined {
	var list []Quarantined
	for _, s := range l.offsets.Load().segments {
		for _, d := range s.Damages() {
			list = append(list, Quarantined{s.BaseOffset(), d})
		}
	}
	return list
}

// BytesCut returns how many bytes recovery has cut off the end of the log.
func (l *Log) BytesCut() int64 { return l.bytesCut.Load() }

// Scrub reads the sealed segments, and of the active one what was in its file when the log was
// opened, and puts what is damaged in quarantine, which is logged. pace, which may be nil, is called with the number of bytes before they are read; it may wait, and its error ends the
// scrub. A segment that is deleted meanwhile is left out.
func (l *Log) Scrub(pace func(bytes int) error) error {
	for _, s := range l.offsets.Load().segments {
		if s.BaseOffset() < l.offsets.Load().segments[0].BaseOffset() {
			continue
		}
		if _, err := s.Scrub(pace); err != nil {
			return fmt.Errorf("%v: %w", l.partition, err)
		}
	}
	return nil
}

func (l *Log) noteDamage(path string, d segment.Damage) {
	l.logger.Error("damage is put in quarantine", "partition", l.partition, "file", path, "position", d.Position, "bytes", d.Size,
		"first", d.First, "end", d.End, "err", d.Err)
}
