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
	list []loss
	file *lossFile
}

// A lossFile is the file gregor-losses; nil where there is none.
type lossFile struct {
	says    []checkpoint.Loss
	damaged bool // it is to be written anew
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
	says, err := checkpoint.ReadLosses(fsys, filepath.Join(dir, checkpoint.Losses))
	l.file = &lossFile{says, err != nil}
	for _, known := range says {
		l.add(known.First, known.End, errLost)
	}
	return err
}

// latest returns the last loss that the file knows, or a zero one.
func (f *lossFile) latest() checkpoint.Loss {
	if f == nil || len(f.says) == 0 {
		return checkpoint.Loss{}
	}
	return f.says[len(f.says)-1]
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

// storeLossesLocked makes the file say list. It goes when there is nothing to say.
func (l *Log) storeLossesLocked(list []checkpoint.Loss) error {
	known := l.mu.losses
	path := filepath.Join(l.dirLocked(), checkpoint.Losses)
	switch {
	case known == nil && len(list) == 0 || known != nil && len(list) > 0 && !known.damaged && slices.Equal(list, known.says):
		return nil
	case len(list) > 0:
		if err := checkpoint.WriteLosses(l.fs, path, list); err != nil {
			return err
		}
		l.mu.losses = &lossFile{says: list}
		return nil
	}
	if err := l.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mu.losses = nil
	return l.fs.SyncDir(l.dirLocked())
}
