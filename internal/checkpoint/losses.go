package checkpoint

import (
	"fmt"
	"strconv"

	"github.com/gregor-kafka/gregor/vfs"
)

// A Loss is a stretch of offsets [First, End) whose records were there and are lost, bytes and
// all.
type Loss struct{ First, End int64 }

// ReadLosses reads a file of losses, which ascend and do not overlap. A missing file has none.
func ReadLosses(fsys vfs.FS, path string) ([]Loss, error) {
	var list []Loss
	err := readTable(fsys, path, 2, func(fields [][]byte) error {
		first, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return err
		}
		end, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			return err
		}
		if least := endOf(list); first < least || end <= first {
			return fmt.Errorf("offsets [%d,%d) behind %d", first, end, least)
		}
		list = append(list, Loss{first, end})
		return nil
	})
	if !Whole(err) {
		return nil, err
	}
	return list, err
}

func endOf(list []Loss) int64 {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].End
}

// WriteLosses replaces the file. The losses must ascend.
func WriteLosses(fsys vfs.FS, path string, list []Loss) error {
	b := appendTableHeader(make([]byte, 0, 16+32*len(list)), len(list))
	for _, l := range list {
		b = append(strconv.AppendInt(b, l.First, 10), ' ')
		b = append(strconv.AppendInt(b, l.End, 10), '\n')
	}
	return vfs.WriteFileAtomic(fsys, path, b)
}
