package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// ReadOffsets reads one offset checkpoint: recovery points, log start offsets, high
// watermarks or the cleaner's offsets. A missing file has no entries. Offsets are as
// they stand in the file and may be anything; the caller clamps them. With a *CorruptError come the
// entries of all lines that can be read, and the lower one of a partition that is listed twice.
func ReadOffsets(fsys vfs.FS, path string) (map[topic.Partition]int64, error) {
	offsets := make(map[topic.Partition]int64)
	err := readTable(fsys, path, 3, func(fields [][]byte) error {
		partition, err := strconv.ParseInt(string(fields[1]), 10, 32)
		if err != nil {
			return err
		}
		if partition < 0 {
			return fmt.Errorf("partition number %d", partition)
		}
		offset, err := strconv.ParseInt(string(fields[2]), 10, 64)
		if err != nil {
			return err
		}
		p := topic.Partition{Topic: string(fields[0]), Partition: int32(partition)}
		if had, ok := offsets[p]; ok {
			offsets[p] = min(had, offset) // which claims less, and hides nothing
			return fmt.Errorf("%v is listed twice, with %d and %d", p, had, offset)
		}
		offsets[p] = offset
		return nil
	})
	return offsets, err
}

// WriteOffsets replaces the file, in the order of the partitions.
func WriteOffsets(fsys vfs.FS, path string, offsets map[topic.Partition]int64) error {
	b := appendTableHeader(make([]byte, 0, 16+32*len(offsets)), len(offsets))
	for _, p := range slices.SortedFunc(maps.Keys(offsets), topic.Partition.Compare) {
		b = append(append(b, p.Topic...), ' ')
		b = append(strconv.AppendInt(b, int64(p.Partition), 10), ' ')
		b = append(strconv.AppendInt(b, offsets[p], 10), '\n')
	}
	return vfs.WriteFileAtomic(fsys, path, b)
}
