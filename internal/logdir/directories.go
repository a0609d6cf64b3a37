package logdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/topic"
)

// directories are those of a Manager, in the order of the configuration; one that is only the metadata
// directory is last.
type directories []*dir

// online returns the log directories that serve.
func (l directories) online() []*dir {
	return slices.DeleteFunc(slices.Clone(l), func(d *dir) bool { return !d.holdsLogs || d.failure() != nil })
}

func (l directories) onlineAt(path string) *dir {
	for _, d := range l.online() {
		if d.path == filepath.Clean(path) {
			return d
		}
	}
	return nil
}

func (l directories) someOffline() bool {
	return slices.ContainsFunc(l, func(d *dir) bool { return d.holdsLogs && d.failure() != nil })
}

// parkedIn returns the directory in which a partition lies that has no open log, or nil.
func (l directories) parkedIn(p topic.Partition) *dir {
	for _, d := range l.online() {
		if _, ok := d.parked(p); ok {
			return d
		}
	}
	return nil
}

// missingFrom returns the directory in which a partition should be and was not at start, or nil.
func (l directories) missingFrom(p topic.Partition) *dir {
	for _, d := range l.online() {
		if d.isMissing(p) {
			return d
		}
	}
	return nil
}

// unlock releases all lock files.
func (l directories) unlock() error {
	var errs []error
	for _, d := range l {
		d.changing.Lock()
		errs = append(errs, d.unlock())
		d.changing.Unlock()
	}
	return errors.Join(errs...)
}

// enough is nil while there is a directory for logs and the metadata directory.
func (l directories) enough(metadataDir string) error {
	var errs []error
	serving := false
	for _, d := range l {
		err := d.failure()
		switch {
		case err == nil:
			serving = serving || d.holdsLogs
		case d.path == filepath.Clean(metadataDir):
			return fmt.Errorf("%w: the metadata directory %s failed: %w", ErrNoDirectory, d.path, err)
		default:
			errs = append(errs, err)
		}
	}
	if !serving {
		return fmt.Errorf("%w: %w", ErrNoDirectory, errors.Join(errs...))
	}
	return nil
}
