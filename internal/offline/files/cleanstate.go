package files

import (
	"encoding/binary"
	"time"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// RightCleanState reports whether the checksum of gregor-clean-state is right: it has "GCS1", then the
// CRC-32C of what follows.
func RightCleanState(data []byte) bool {
	return len(data) >= 8 && string(data[:4]) == "GCS1" && crc32c.Checksum(data[8:]) == binary.BigEndian.Uint32(data[4:])
}

// LogSizes returns the sizes that the .log files of each partition had at a clean stop, by base offset, of a
// gregor-clean-state with a right checksum. It is nil if that was another stop than the one whose marker was
// written at stopped, and has what could be read of a file that is not as it should be.
func LogSizes(data []byte, stopped time.Time) map[topic.Partition]map[int64]int64 {
	if len(data) < 16 || int64(binary.BigEndian.Uint64(data[8:])) != stopped.UnixNano() {
		return nil
	}
	d := stateDecoder{data[16:]}
	sizes := map[topic.Partition]map[int64]int64{}
	for range d.count() {
		name := string(d.take(d.count()))
		p := topic.Partition{Topic: name, Partition: int32(d.uvarint())}
		logs := d.logs()
		if d.b == nil {
			return sizes
		}
		sizes[p] = logs
	}
	return sizes
}

// A stateDecoder takes values from b, which is nil once there is no more.
type stateDecoder struct{ b []byte }

// logs takes the state of a partition: 16 bytes of topic id, the end, whether there are producers, a time, the
// files, of which those of kind 0 are .log files, and the leader epochs.
func (d *stateDecoder) logs() map[int64]int64 {
	logs := map[int64]int64{}
	d.take(16)
	d.varint()
	d.take(1)
	d.varint()
	for range d.count() {
		kind, base, size := d.take(1), d.varint(), d.varint()
		d.varint() // modified
		if len(kind) == 1 && kind[0] == 0 {
			logs[base] = size
		}
	}
	for range 2 * d.count() {
		d.varint()
	}
	return logs
}

func (d *stateDecoder) take(n int) []byte {
	if n > len(d.b) {
		d.b = nil
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *stateDecoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *stateDecoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count takes how many things follow, of a byte or more each.
func (d *stateDecoder) count() int {
	v := d.uvarint()
	if v > uint64(len(d.b)) {
		d.b = nil
		return 0
	}
	return int(v)
}
