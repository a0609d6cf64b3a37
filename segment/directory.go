package segment

import (
	"slices"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Kind is one of the files of a segment, by the suffix of its name.
type Kind = segment.Kind

// The files of a segment.
const (
	LogFile       = segment.LogFile
	IndexFile     = segment.IndexFile
	TimeIndexFile = segment.TimeIndexFile
	TxnIndexFile  = segment.TxnIndexFile
)

// Name returns the name of a segment's file.
func Name(base int64, kind Kind) string { return segment.Name(base, kind, "") }

// ParseName takes a file's name apart. suffix is empty for the files of a log, and such as ".deleted" or ".cleaned"
// for those on their way out or in. ok is false for names that are no segment's.
func ParseName(name string) (base int64, kind Kind, suffix string, ok bool) {
	return segment.ParseName(name)
}

// List returns the base offsets of the segments in the directory of a partition, in order.
func List(fsys vfs.FS, dir string) ([]int64, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		if base, kind, suffix, ok := ParseName(e.Name()); ok && kind == LogFile && suffix == "" {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}
