package commitlog

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A CleanState is what a log knew of itself when it was closed: what Open would otherwise
// find out by opening a dozen files. Open believes it only while the directory and the
// files whose content it stands for have the sizes and modification times that they had
// then, so that whoever changed anything meanwhile, Kafka or an operator, is noticed. (Of the
// producer snapshots only the newest is read.) It is a hint, never needed.
type CleanState struct {
	topicID     uuid.UUID
	end         int64
	producers   bool  // the newest snapshot lists some
	dirModified int64 // ns
	files       []fileState
	epochs      []checkpoint.EpochEntry
}

// A fileState is a file that Open would read or ask for its size.
type fileState struct {
	kind     fileKind
	offset   int64 // in the name
	size     int64
	modified int64 // ns
}

type fileKind uint8

const (
	logFile fileKind = iota
	snapshotFile
	epochsFile
	metadataFile
	fileKinds
)

func (f *fileState) name() string {
	switch f.kind {
	case logFile:
		return segment.Name(f.offset, segment.LogFile, "")
	case snapshotFile:
		return snapshotName(f.offset)
	case epochsFile:
		return checkpoint.LeaderEpochs
	}
	return checkpoint.PartitionMetadataFile
}

// fileStateOf recognises the files that count. ok is false for a name that says that
// something was under way, which Open must look at.
func fileStateOf(name string) (f fileState, counts, ok bool) {
	switch {
	case name == checkpoint.LeaderEpochs:
		return fileState{kind: epochsFile}, true, true
	case name == checkpoint.PartitionMetadataFile:
		return fileState{kind: metadataFile}, true, true
	case strings.HasSuffix(name, segment.DeletedSuffix), strings.HasSuffix(name, segment.CleanedSuffix),
		strings.HasSuffix(name, segment.SwapSuffix), name == checkpoint.Losses, name == checkpoint.TransactionsFile:
		return f, false, false
	}
	if base, kind, suffix, ok := segment.ParseName(name); ok {
		return fileState{kind: logFile, offset: base}, kind == segment.LogFile && suffix == "", true
	}
	offset, found := checkpoint.ParseProducersName(name)
	return fileState{kind: snapshotFile, offset: offset}, found, true
}

// CleanState describes a log that was closed without error. It returns nil if there is
// something in the directory that the next Open has to deal with.
func (l *Log) CleanState() (*CleanState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &CleanState{
		topicID:   l.TopicID(),
		end:       l.offsets.data,
		producers: len(l.mu.producers.producers) > 0,
		epochs:    l.epochs.list(),
	}
	info, err := l.fs.Stat(l.dirLocked())
	if err != nil {
		return nil, err
	}
	s.dirModified = info.ModTime().UnixNano()
	entries, err := l.fs.ReadDir(l.dirLocked())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f, counts, ok := fileStateOf(e.Name())
		if !ok {
			return nil, nil
		}
		if !counts {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		f.size, f.modified = info.Size(), info.ModTime().UnixNano()
		s.files = append(s.files, f)
	}
	if !s.describes(l.offsets.Load(), l.mu.snapshots.offsets) {
		return nil, nil
	}
	return s, nil
}

// describes reports whether the files are those that the log knows.
func (s *CleanState) describes(o *Offsets, snapshots []int64) bool {
	var segments, found []int64
	for _, f := range s.files {
		switch f.kind {
		case logFile:
			if i := len(segments); i >= len(o.segments) || f.size != o.segments[i].Size() {
				return false
			}
			segments = append(segments, f.offset)
		case snapshotFile:
			found = append(found, f.offset)
		}
	}
	return slices.EqualFunc(segments, o.segments, func(base int64, s *segment.Segment) bool { return base == s.BaseOffset() }) &&
		slices.Equal(found, snapshots)
}

// verify looks whether the directory is as it was, and returns the information about the
// .log files.
func (s *CleanState) verify(fsys vfs.FS, dir string) ([]fs.FileInfo, bool) {
	info, err := fsys.Stat(dir)
	if err != nil || info.ModTime().UnixNano() != s.dirModified {
		return nil, false
	}
	var logs []fs.FileInfo
	newest := int64(-1) // only that one is read, if it lists producers
	for _, f := range s.files {
		if f.kind == snapshotFile && s.producers {
			newest = max(newest, f.offset)
		}
	}
	for _, f := range s.files {
		if f.kind == snapshotFile && f.offset != newest {
			continue
		}
		info, err := fsys.Stat(filepath.Join(dir, f.name()))
		if err != nil || info.IsDir() || info.Size() != f.size || info.ModTime().UnixNano() != f.modified {
			return nil, false
		}
		if f.kind == logFile {
			logs = append(logs, info)
		}
	}
	return logs, len(logs) > 0
}

// loadClean opens the log as the clean state says. ok is false if it is of no use.
func (l *Log) loadClean(o *Options) (ok bool, err error) {
	s := o.CleanState
	if s == nil || !o.Clean || s.end < o.LogStartOffset || !o.TopicID.IsZero() && o.TopicID != s.topicID {
		return false, nil
	}
	logs, ok := s.verify(l.fs, o.Dir)
	if !ok {
		return false, nil
	}
	r := &recovery{log: l, clean: true, point: s.end, end: s.end, logStart: o.LogStartOffset, segments: make([]*segment.Segment, 0, len(logs))}
	c := l.config.Load().segment(l.disk.Caches)
	for _, f := range s.files {
		switch f.kind {
		case logFile:
			r.segments = append(r.segments, segment.OpenInfo(l.fs, o.Dir, f.offset, c, logs[len(r.segments)]))
		case snapshotFile:
			l.mu.snapshots.offsets = append(l.mu.snapshots.offsets, f.offset)
		}
	}
	r.watch()
	id, epochs := s.topicID, s.epochs // pointers into the state would keep all of it
	l.topicID.Store(&id)
	l.epochs = newEpochCache(l.fs, filepath.Join(o.Dir, checkpoint.LeaderEpochs))
	l.epochs.entries.Store(&epochs)
	l.epochs.dirty.Store(false)
	l.lost.Store(nothingLost) // the directory is as it was: the file would not have been forgotten
	r.producers = newProducerState(s.end)
	if s.producers {
		if r.producers, err = l.replayProducers(r.segments, max(o.LogStartOffset, r.segments[0].BaseOffset()), s.end); err != nil {
			return false, err
		}
	}
	return true, r.start()
}

// TopicID returns the id of the topic that the log had, or zero.
func (s *CleanState) TopicID() uuid.UUID { return s.topicID }

// AppendTo appends the state in a form that ParseCleanState reads.
func (s *CleanState) AppendTo(b []byte) []byte {
	b = append(b, s.topicID[:]...)
	b = binary.AppendVarint(b, s.end)
	b = append(b, boolByte(s.producers))
	b = binary.AppendVarint(b, s.dirModified)
	b = binary.AppendUvarint(b, uint64(len(s.files)))
	for _, f := range s.files {
		b = append(b, byte(f.kind))
		for _, v := range [...]int64{f.offset, f.size, f.modified} {
			b = binary.AppendVarint(b, v)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.epochs)))
	for _, e := range s.epochs {
		b = binary.AppendVarint(b, int64(e.Epoch))
		b = binary.AppendVarint(b, e.StartOffset)
	}
	return b
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// errBadCleanState: the bytes are none that AppendTo made.
var errBadCleanState = errors.New("not the state of a log")

// ParseCleanState reads a state from the beginning of b and returns what is behind it.
func ParseCleanState(b []byte) (*CleanState, []byte, error) {
	d := stateDecoder{b: b}
	s := &CleanState{}
	copy(s.topicID[:], d.take(len(s.topicID)))
	s.end = d.varint()
	s.producers = d.byte() != 0
	s.dirModified = d.varint()
	s.files = make([]fileState, 0, d.count(4))
	for range cap(s.files) {
		f := fileState{kind: fileKind(d.byte()), offset: d.varint(), size: d.varint(), modified: d.varint()}
		d.bad = d.bad || f.kind >= fileKinds || f.offset < 0
		s.files = append(s.files, f)
	}
	s.epochs = make([]checkpoint.EpochEntry, 0, d.count(2))
	for range cap(s.epochs) {
		s.epochs = append(s.epochs, checkpoint.EpochEntry{Epoch: int32(d.varint()), StartOffset: d.varint()})
	}
	if d.bad {
		return nil, nil, errBadCleanState
	}
	return s, d.b, nil
}

// A stateDecoder takes values from b; what it returns counts only while bad is not set.
type stateDecoder struct {
	b   []byte
	bad bool
}

func (d *stateDecoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad = true
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *stateDecoder) byte() byte {
	if b := d.take(1); !d.bad {
		return b[0]
	}
	return 0
}

func (d *stateDecoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each.
func (d *stateDecoder) count(size int) int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || d.bad || v > uint64(len(d.b)/size) {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}
