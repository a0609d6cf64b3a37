package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/vfs"
)

// A producer snapshot is the file OFFSET.snapshot, where OFFSET is the first offset that
// it does not cover (doc/format.md 6.4). Integers are big-endian.
//
//	0         2        6       10
//	+---------+--------+-------+--------------------
//	| version | CRC32C | count | count entries of 46 bytes
//	+---------+--------+-------+--------------------
//
// The CRC covers everything behind it. Of each producer only the last batch is kept.
const (
	snapshotVersion    = 1
	snapshotHeaderSize = 10
	snapshotEntrySize  = 46
	snapshotSizeMax    = 1 << 30
)

// encode returns the contents of a snapshot of s, by producer id: the same state is the same file.
func (s *ProducerState) encode() []byte {
	b := make([]byte, snapshotHeaderSize, snapshotHeaderSize+len(s.producers)*snapshotEntrySize)
	binary.BigEndian.PutUint16(b, snapshotVersion)
	binary.BigEndian.PutUint32(b[6:], uint32(len(s.producers)))
	for _, id := range slices.Sorted(maps.Keys(s.producers)) {
		b = s.producers[id].encode(b)
	}
	binary.BigEndian.PutUint32(b[2:], crc32c.Checksum(b[6:]))
	return b
}

func (p *producer) encode(b []byte) []byte {
	last := producerBatch{lastSequence: -1, lastOffset: -1}
	timestamp := p.lastTimestamp
	if p.count > 0 {
		last = p.batches[p.newest]
	}
	b = binary.BigEndian.AppendUint64(b, uint64(p.id))
	b = binary.BigEndian.AppendUint16(b, uint16(p.epoch))
	b = binary.BigEndian.AppendUint32(b, uint32(last.lastSequence))
	b = binary.BigEndian.AppendUint64(b, uint64(last.lastOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(last.offsetDelta))
	b = binary.BigEndian.AppendUint64(b, uint64(timestamp))
	b = binary.BigEndian.AppendUint32(b, uint32(p.coordinatorEpoch))
	return binary.BigEndian.AppendUint64(b, uint64(p.txn.offset))
}

// decodeSnapshot is the inverse of encode; the state ends at the given offset.
func decodeSnapshot(b []byte, end int64) (*ProducerState, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("%d bytes are no producer snapshot", len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("unknown snapshot version %d", v)
	}
	if got, want := crc32c.Checksum(b[6:]), binary.BigEndian.Uint32(b[2:]); got != want {
		return nil, fmt.Errorf("crc %08x, want %08x", got, want)
	}
	n := int64(int32(binary.BigEndian.Uint32(b[6:])))
	if entries := b[snapshotHeaderSize:]; n < 0 || n*snapshotEntrySize > int64(len(entries)) {
		return nil, fmt.Errorf("%d entries do not fit in %d bytes", n, len(entries))
	}
	s := newProducerState(end)
	for i := range n {
		p := decodeProducer(b[snapshotHeaderSize+i*snapshotEntrySize:])
		if s.producers[p.id] != nil {
			return nil, fmt.Errorf("producer %d is listed twice", p.id)
		}
		if last := max(p.lastOffset(), p.txn.offset); last >= end {
			return nil, fmt.Errorf("producer %d wrote at %d, but the snapshot ends at %d", p.id, last, end)
		}
		s.put(p)
		if p.txn.offset >= 0 {
			s.insertOpen(p)
		}
	}
	return s, nil
}

func decodeProducer(b []byte) *producer {
	p := &producer{
		id:               int64(binary.BigEndian.Uint64(b)),
		epoch:            int16(binary.BigEndian.Uint16(b[8:])),
		lastTimestamp:    int64(binary.BigEndian.Uint64(b[26:])),
		coordinatorEpoch: int32(binary.BigEndian.Uint32(b[34:])),
		txn:              position{offset: max(-1, int64(binary.BigEndian.Uint64(b[38:])))},
	}
	last := producerBatch{
		lastSequence: int32(binary.BigEndian.Uint32(b[10:])),
		lastOffset:   int64(binary.BigEndian.Uint64(b[14:])),
		offsetDelta:  int32(binary.BigEndian.Uint32(b[22:])),
		timestamp:    p.lastTimestamp,
	}
	if last.lastOffset >= 0 {
		p.add(last)
	}
	return p
}

// snapshots are the snapshot files of a partition directory. The Log's mutex guards it.
type snapshots struct {
	fs       vfs.FS
	dir      string
	offsets  []int64 // ascending
	unsynced []int64 // written, not known to be on disk
	doubted  []int64 // files from before a crash that are not among offsets, see doubtFrom
}

func (s *snapshots) path(offset int64) string {
	return s.dir + "/" + snapshotName(offset)
}

// latest returns the offset of the newest snapshot, or -1.
func (s *snapshots) latest() int64 {
	if len(s.offsets) == 0 {
		return -1
	}
	return s.offsets[len(s.offsets)-1]
}

// discard removes a file that may be there.
func (s *snapshots) discard(offset int64) error {
	err := s.fs.Remove(s.path(offset))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write stores a snapshot of state at its end, unless the newest covers it already. It
// does not sync: sync does, before the recovery point passes it.
func (s *snapshots) write(state *ProducerState) error {
	if state.end <= s.latest() {
		return nil
	}
	data := state.encode()
	if !s.isDoubted(state.end, data) {
		if err := writeFile(s.fs, s.path(state.end), data); err != nil {
			return err
		}
	}
	s.offsets = append(s.offsets, state.end)
	s.unsynced = append(s.unsynced, state.end)
	return nil
}

// load returns the state of the newest usable snapshot with logStart <= offset <= end, and
// an empty state at logStart if there is none. Damaged files are removed. (Kafka leaves out one at
// the log start, and so forgets its producers when all records were deleted.)
func (s *snapshots) load(logStart, end int64, now time.Time, expiration time.Duration) (*ProducerState, error) {
	for i := len(s.offsets) - 1; i >= 0; i-- {
		offset := s.offsets[i]
		if offset > end || offset < logStart {
			continue
		}
		data, err := vfs.ReadFile(s.fs, s.path(offset), snapshotSizeMax)
		if err == nil {
			if state, err := decodeSnapshot(data, offset); err == nil {
				state.expire(now, expiration)
				return state, nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := s.remove(offset); err != nil {
			return nil, err
		}
	}
	return newProducerState(logStart), nil
}

// doubtFrom takes the snapshots from offset on for gone: a crash may have lost what they are
// about. Their files stay until dropDoubted, for write to find that one of them says what it
// was about to write.
func (s *snapshots) doubtFrom(offset int64) {
	i, _ := slices.BinarySearch(s.offsets, offset)
	s.doubted = append(s.doubted, s.offsets[i:]...)
	s.offsets = s.offsets[:i]
	s.unsynced = slices.DeleteFunc(s.unsynced, func(o int64) bool { return o >= offset })
}

// isDoubted reports whether there is a file from before the crash that has this content, and
// ends the doubt.
func (s *snapshots) isDoubted(offset int64, data []byte) bool {
	i := slices.Index(s.doubted, offset)
	if i < 0 {
		return false
	}
	s.doubted = slices.Delete(s.doubted, i, i+1)
	had, err := vfs.ReadFile(s.fs, s.path(offset), int64(len(data)))
	return err == nil && bytes.Equal(had, data)
}

// restore returns the state of a file in doubt, or nil if there is none, or it is damaged.
func (s *snapshots) restore(offset int64) (*ProducerState, error) {
	if !slices.Contains(s.doubted, offset) {
		return nil, nil
	}
	return s.read(offset)
}

// witness asks the snapshots from an offset on, which is behind damage, which transactions that are in
// doubt go on there. Those from before a crash know it too: who made them had the damaged bytes, and
// what is in front of these is as it was.
func (s *snapshots) witness(from int64, state *ProducerState) error {
	for _, offset := range slices.Sorted(slices.Values(slices.Concat(s.offsets, s.doubted))) {
		if !slices.ContainsFunc(state.doubts, doubt.isPending) {
			return nil
		}
		if offset < from {
			continue
		}
		snapshot, err := s.read(offset)
		if err != nil {
			return err
		}
		if snapshot != nil {
			state.goesOn(snapshot.beginsOpen)
		}
	}
	return nil
}

// read returns the state of a file, or nil if there is none, or it is damaged.
func (s *snapshots) read(offset int64) (*ProducerState, error) {
	data, err := vfs.ReadFile(s.fs, s.path(offset), snapshotSizeMax)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	state, _ := decodeSnapshot(data, offset)
	return state, nil
}

// dropDoubted removes the files that are still in doubt, for good: they say how far a log had come
// that has not.
func (s *snapshots) dropDoubted() error {
	if len(s.doubted) == 0 {
		return nil
	}
	for _, offset := range s.doubted {
		if err := s.discard(offset); err != nil {
			return err
		}
	}
	s.doubted = nil
	return s.fs.SyncDir(s.dir)
}

// remove deletes the snapshot at offset if there is one.
func (s *snapshots) remove(offset int64) error {
	i, found := slices.BinarySearch(s.offsets, offset)
	if !found {
		return nil
	}
	s.offsets = slices.Delete(s.offsets, i, i+1)
	s.unsynced = slices.DeleteFunc(s.unsynced, func(o int64) bool { return o == offset })
	if err := s.fs.Remove(s.path(offset)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeIf deletes the snapshots for which drop says so.
func (s *snapshots) removeIf(drop func(offset int64) bool) error {
	for _, offset := range slices.Clone(s.offsets) {
		if drop(offset) {
			if err := s.remove(offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeUnsynced hands over the snapshots up to offset that must be synced before the
// recovery point may reach it.
func (s *snapshots) takeUnsynced(offset int64) (taken []int64) {
	s.unsynced = slices.DeleteFunc(s.unsynced, func(o int64) bool {
		if o <= offset {
			taken = append(taken, o)
			return true
		}
		return false
	})
	return taken
}

// giveBack takes back what takeUnsynced handed over and was not synced.
func (s *snapshots) giveBack(offsets []int64) {
	for _, offset := range offsets {
		if slices.Contains(s.offsets, offset) && !slices.Contains(s.unsynced, offset) {
			s.unsynced = append(s.unsynced, offset)
		}
	}
}

// syncFile makes a file durable that may be gone by now.
func syncFile(fsys vfs.FS, path string) error {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func writeFile(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// unlimited is a producer expiration that never comes.
const unlimited = time.Duration(math.MaxInt64)
