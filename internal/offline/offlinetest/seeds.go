package offlinetest

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/vfs"
)

// Seeds returns the contents of the files of a golden set whose kind is one of those given,
// the small ones.
func Seeds(f *testing.F, set string, kinds ...files.Kind) (list [][]byte) {
	f.Helper()
	_, mem := Unpack(f, set)
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := mem.ReadDir(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
				continue
			}
			kind, _ := files.Classify(path)
			for _, want := range kinds {
				if data, err := vfs.ReadFile(mem, path, 1<<12); kind == want && err == nil {
					list = append(list, data)
				}
			}
		}
	}
	walk("data")
	if len(list) == 0 {
		f.Fatal("no seed")
	}
	return list
}

// EncodeProducers is the inverse of files.DecodeProducers.
func EncodeProducers(list ...files.ProducerEntry) []byte {
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	for _, e := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(e.ID))
		b = binary.BigEndian.AppendUint16(b, uint16(e.Epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(e.LastSequence))
		b = binary.BigEndian.AppendUint64(b, uint64(e.LastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(e.OffsetDelta))
		b = binary.BigEndian.AppendUint64(b, uint64(e.Timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(e.CoordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.TxnFirstOffset))
	}
	binary.BigEndian.PutUint32(b[2:], crc32c.Checksum(b[6:]))
	return b
}
