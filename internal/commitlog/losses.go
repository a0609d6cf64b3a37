package commitlog

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// errLost is why offsets are in quarantine that have no bytes.
var errLost = errors.New("records are lost")

// unbounded is the end of a loss that reaches up to the log end.
const unbounded = math.MaxInt64

// Losses are offsets whose records are gone with their bytes. Nothing in the files tells them from
// what compaction has removed, so a file of their own does, as long as there are any.
type losses struct {
	list   []loss
	stored []checkpoint.Loss // what the file says
	has    bool              // there is a file
}

// A loss is what was between two segments, or more.
type loss struct {
	first, end int64
	why        error
}

func (l *losses) add(first, end int64, why error) {
	if first < end {
		l.list = append(l.list, loss{first, end, why})
	}
}

// load reads the file, of which only what is in it is believed.
func (l *losses) load(fsys vfs.FS, dir string) error {
	var err error
	l.has = true
	l.stored, err = checkpoint.ReadLosses(fsys, filepath.Join(dir, checkpoint.Losses))
	for _, known := range l.stored {
		l.add(known.First, known.End, errLost)
	}
	return err
}

// latest returns the end of the last loss that the file knows, or 0.
func (l *losses) latest() int64 {
	if n := len(l.stored); n > 0 {
		return l.stored[n-1].End
	}
	return 0
}

// touch reports whether any of [first, end) is lost.
func (l *losses) touch(first, end int64) bool {
	return slices.ContainsFunc(l.list, func(known loss) bool { return known.first < end && first < known.end })
}

// in returns what of the gap [first, end) is lost, in order.
func (l *losses) in(first, end int64) (parts []loss) {
	for _, known := range l.list {
		if part := (loss{max(first, known.first), min(end, known.end), known.why}); part.first < part.end {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b loss) int { return cmp.Compare(a.first, b.first) })
	merged := parts[:0]
	for _, part := range parts {
		if n := len(merged); n > 0 && part.first <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, part.end)
			continue
		}
		merged = append(merged, part)
	}
	return merged
}

// store makes the file say list. It goes when there is nothing to say.
func (l *losses) store(fsys vfs.FS, dir string, list []checkpoint.Loss) error {
	path := filepath.Join(dir, checkpoint.Losses)
	switch {
	case slices.Equal(list, l.stored) && l.has == (len(list) > 0):
		return nil
	case len(list) > 0:
		if err := checkpoint.WriteLosses(fsys, path, list); err != nil {
			return err
		}
	default:
		if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	l.stored, l.has = list, len(list) > 0
	return nil
}
