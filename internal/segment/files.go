package segment

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"path/filepath"

	"github.com/gregor-kafka/gregor/vfs"
)

// fileSet is where the files of a segment are. They may be renamed while they are opened.
type fileSet struct {
	fs   vfs.FS
	base int64

	// path is held for reading while a file is opened, for writing while files are renamed.
	path struct {
		sync.RWMutex
		dir, suffix string
	}

	renamed atomic.Bool // the directory has changed since its last sync
}

// directory returns where the files are.
func (n *fileSet) directory() string {
	n.path.RLock()
	defer n.path.RUnlock()
	return n.path.dir
}

// name returns the path of a file, which may not exist.
func (n *fileSet) name(kind Kind) string {
	n.path.RLock()
	defer n.path.RUnlock()
	return n.nameLocked(kind)
}

func (n *fileSet) nameLocked(kind Kind) string {
	digits := nameDigits(n.base)
	return n.path.dir + string(filepath.Separator) + string(digits[:]) + string(kind) + n.path.suffix
}

func (n *fileSet) open(kind Kind, flag int) (vfs.File, error) {
	n.path.RLock()
	defer n.path.RUnlock()
	return n.fs.OpenFile(n.nameLocked(kind), flag, 0o644)
}

func (n *fileSet) stat(kind Kind) (fs.FileInfo, error) {
	n.path.RLock()
	defer n.path.RUnlock()
	return n.fs.Stat(n.nameLocked(kind))
}

// size returns that of a file in bytes, 0 for one that is missing.
func (n *fileSet) size(kind Kind) (int64, error) {
	info, err := n.stat(kind)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (n *fileSet) sync(kind Kind) error {
	f, err := n.open(kind, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncNames makes the names of the files durable.
func (n *fileSet) syncNames() error {
	if !n.renamed.Swap(false) {
		return nil
	}
	err := n.fs.SyncDir(n.directory())
	if err != nil {
		n.renamed.Store(true)
	}
	return err
}

func (n *fileSet) remove(kind Kind) error {
	n.path.RLock()
	defer n.path.RUnlock()
	if err := n.fs.Remove(n.nameLocked(kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// changeSuffix renames all of them, .log first. Files that are not there are left out.
func (n *fileSet) changeSuffix(from, to string) error {
	n.path.Lock()
	defer n.path.Unlock()
	for _, kind := range kinds {
		err := n.fs.Rename(filepath.Join(n.path.dir, Name(n.base, kind, from)),
			filepath.Join(n.path.dir, Name(n.base, kind, to)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	n.path.suffix = to
	n.renamed.Store(true)
	return nil
}

// corrupt says where the .log file stops making sense.
func (n *fileSet) corrupt(position, offset int64, err error) error {
	return &CorruptError{Path: n.name(LogFile), Position: position, Offset: offset, Err: err}
}

// quarantined is the error for a reader of a damaged stretch.
func (n *fileSet) quarantined(d Damage) error {
	return &CorruptError{Path: n.name(LogFile), Position: d.Position, Offset: d.First, Err: d.Err, End: d.End}
}

// SyncDir makes the names in a directory durable, of which those of the given segments are part:
// their next Flush need not do it.
func SyncDir(fsys vfs.FS, dir string, segments ...*Segment) error {
	var renewed []*Segment
	for _, s := range segments {
		s.flushing.Lock() // a Flush beside it waits, and then has nothing to do
		defer s.flushing.Unlock()
		if s.files.renamed.Swap(false) {
			renewed = append(renewed, s)
		}
	}
	err := fsys.SyncDir(dir)
	if err != nil {
		for _, s := range renewed {
			s.files.renamed.Store(true)
		}
	}
	return err
}

// ChangeSuffix renames the files, .log first: from "" to DeletedSuffix, from CleanedSuffix to
// SwapSuffix and so on. Files that are not there are left out. Reading goes on meanwhile.
func (s *Segment) ChangeSuffix(from, to string) error {
	return s.files.changeSuffix(from, to)
}

// Remove removes the files. Slices stay valid, anything else fails from now on.
func (s *Segment) Remove() error {
	s.release()
	for _, kind := range kinds {
		if err := s.files.remove(kind); err != nil {
			return err
		}
	}
	return nil
}

// RenameDir renames the directory of segments. No file of theirs is opened meanwhile, so that
// readers meet either name.
func RenameDir(fsys vfs.FS, oldDir, newDir string, segments []*Segment) error {
	for _, s := range segments {
		s.files.path.Lock()
		defer s.files.path.Unlock()
	}
	if err := fsys.Rename(oldDir, newDir); err != nil {
		return err
	}
	for _, s := range segments {
		s.files.path.dir = newDir
	}
	return nil
}
