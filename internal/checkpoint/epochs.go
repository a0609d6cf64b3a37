package checkpoint

import (
	"strconv"

	"github.com/gregor-kafka/gregor/vfs"
)

// An EpochEntry says at which offset a leader epoch began.
type EpochEntry struct {
	Epoch       int32
	StartOffset int64
}

// ReadEpochs reads a leader-epoch-checkpoint in the order of the file, which for a file
// of Kafka's is ascending. A missing file has no entries. With an error after which Whole is true come all entries.
func ReadEpochs(fsys vfs.FS, path string) ([]EpochEntry, error) {
	var entries []EpochEntry
	err := readTable(fsys, path, 2, func(fields [][]byte) error {
		epoch, err := strconv.ParseInt(string(fields[0]), 10, 32)
		if err != nil {
			return err
		}
		start, err := strconv.ParseInt(string(fields[1]), 10, 64)
		entries = append(entries, EpochEntry{int32(epoch), start})
		return err
	})
	if !Whole(err) {
		return nil, err
	}
	return entries, err
}

// WriteEpochs replaces the file. The entries must ascend.
func WriteEpochs(fsys vfs.FS, path string, entries []EpochEntry) error {
	b := appendTableHeader(make([]byte, 0, 16+16*len(entries)), len(entries))
	for _, e := range entries {
		b = append(strconv.AppendInt(b, int64(e.Epoch), 10), ' ')
		b = append(strconv.AppendInt(b, e.StartOffset, 10), '\n')
	}
	return vfs.WriteFileAtomic(fsys, path, b)
}
