package segment

import (
	"errors"
	"io/fs"

	"path/filepath"

	"github.com/gregor-kafka/gregor/vfs"
)

// directory returns where the files are.
func (s *Segment) directory() string {
	s.path.RLock()
	defer s.path.RUnlock()
	return s.path.dir
}

// SyncDir makes the names in a directory durable, of which those of the given segments are part:
// their next Flush need not do it.
func SyncDir(fsys vfs.FS, dir string, segments ...*Segment) error {
	var renewed []*Segment
	for _, s := range segments {
		s.flushing.Lock() // a Flush beside it waits, and then has nothing to do
		defer s.flushing.Unlock()
		if s.newName.Swap(false) {
			renewed = append(renewed, s)
		}
	}
	err := fsys.SyncDir(dir)
	if err != nil {
		for _, s := range renewed {
			s.newName.Store(true)
		}
	}
	return err
}

// ChangeSuffix renames the files, .log first: from "" to DeletedSuffix, from CleanedSuffix to
// SwapSuffix and so on. Files that are not there are left out. Reading goes on meanwhile.
func (s *Segment) ChangeSuffix(from, to string) error {
	s.path.Lock()
	defer s.path.Unlock()
	for _, kind := range kinds {
		err := s.fs.Rename(filepath.Join(s.path.dir, Name(s.base, kind, from)),
			filepath.Join(s.path.dir, Name(s.base, kind, to)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.path.suffix = to
	s.newName.Store(true)
	return nil
}

// Remove removes the files. Slices stay valid, anything else fails from now on.
func (s *Segment) Remove() error {
	s.release()
	for _, kind := range kinds {
		if err := s.removeFile(kind); err != nil {
			return err
		}
	}
	return nil
}

func (s *Segment) removeFile(kind Kind) error {
	s.path.RLock()
	defer s.path.RUnlock()
	if err := s.fs.Remove(s.pathLocked(kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RenameDir renames the directory of segments. No file of theirs is opened meanwhile, so that
// readers meet either name.
func RenameDir(fsys vfs.FS, oldDir, newDir string, segments []*Segment) error {
	for _, s := range segments {
		s.path.Lock()
		defer s.path.Unlock()
	}
	if err := fsys.Rename(oldDir, newDir); err != nil {
		return err
	}
	for _, s := range segments {
		s.path.dir = newDir
	}
	return nil
}
