package logdir

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// The file gregor-clean-state says what each log of a directory knew of itself when it was
// closed, so that the next start need not open ten thousand directories to find out. Kafka
// ignores it. It counts only together with the marker of the clean shutdown that it was
// written for, which is recognised by its modification time: Kafka, or a gregor that does
// not know the file, takes the marker away and writes another. On top of that each log
// compares what is said of it with its files (commitlog.CleanState).
//
//	"GCS1" | CRC-32C of all that follows | modification time of the marker, i64 ns |
//	count, uvarint | count entries of: topic length, uvarint; topic; partition, uvarint; state
//
// It is not synced: the checksum tells when a crash tore it.
const (
	cleanStateMagic   = "GCS1"
	cleanStateHeader  = len(cleanStateMagic) + 4 + 8
	cleanStateSizeMax = 1 << 30
)

type cleanStates map[topic.Partition]*commitlog.CleanState

// writeCleanState leaves the file beside a marker that was just written. It is a hint, so
// that a failure is only worth a line in the log.
func (m *Manager) writeCleanState(d *dir, states cleanStates) {
	if len(states) == 0 {
		return
	}
	marker, err := m.cfg.FS.Stat(d.cleanShutdown())
	if err == nil {
		err = writeHint(m.cfg.FS, d.file(checkpoint.CleanState), encodeCleanStates(states, marker.ModTime().UnixNano()))
	}
	if err != nil {
		m.logger.Warn("the state of the logs was not noted, the next start will be slower", "file", d.file(checkpoint.CleanState), "err", err)
	}
}

func writeHint(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// readCleanState reads the file. What is not right, or not for the marker that is there, is as
// good as no file.
func (m *Manager) readCleanState(d *dir) cleanStates {
	path := d.file(checkpoint.CleanState)
	data, err := vfs.ReadFile(m.cfg.FS, path, cleanStateSizeMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	marker, statErr := m.cfg.FS.Stat(d.cleanShutdown())
	if errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	var states cleanStates
	if err = errors.Join(err, statErr); err == nil {
		states, err = decodeCleanStates(data, marker.ModTime().UnixNano())
	}
	if err != nil {
		m.logger.Warn("file ignored, loading takes longer", "file", path, "err", err)
		return nil
	}
	return states
}

// removeCleanState removes the file, before the marker is taken, and reports whether what it says
// may be used.
func (m *Manager) removeCleanState(d *dir) bool {
	err := m.cfg.FS.Remove(d.file(checkpoint.CleanState))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	m.logger.Warn("file ignored, loading takes longer", "file", d.file(checkpoint.CleanState), "err", err)
	return false
}

func encodeCleanStates(states cleanStates, markerTime int64) []byte {
	b := make([]byte, cleanStateHeader, cleanStateHeader+192*len(states))
	b = binary.AppendUvarint(b, uint64(len(states)))
	for p, s := range states {
		b = binary.AppendUvarint(b, uint64(len(p.Topic)))
		b = append(b, p.Topic...)
		b = binary.AppendUvarint(b, uint64(p.Partition))
		b = s.AppendTo(b)
	}
	seal(b, markerTime)
	return b
}

// seal fills in the header.
func seal(b []byte, markerTime int64) {
	copy(b, cleanStateMagic)
	binary.BigEndian.PutUint64(b[8:], uint64(markerTime))
	binary.BigEndian.PutUint32(b[4:], crc32c.Checksum(b[8:]))
}

var (
	errBadCleanState   = errors.New("damaged")
	errOtherCleanState = errors.New("written for another stop")
)

func decodeCleanStates(b []byte, markerTime int64) (cleanStates, error) {
	if len(b) < cleanStateHeader || string(b[:4]) != cleanStateMagic || crc32c.Checksum(b[8:]) != binary.BigEndian.Uint32(b[4:]) {
		return nil, errBadCleanState
	}
	if int64(binary.BigEndian.Uint64(b[8:])) != markerTime {
		return nil, errOtherCleanState
	}
	b = b[cleanStateHeader:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errBadCleanState
	}
	b = b[n:]
	states := make(cleanStates, count)
	var last string // partitions of a topic mostly follow each other: they share its name
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errBadCleanState
		}
		if name := b[n : n+int(size)]; string(name) != last {
			last = string(name)
		}
		b = b[n+int(size):]
		partition, n := binary.Uvarint(b)
		if n <= 0 || partition > 1<<31-1 {
			return nil, errBadCleanState
		}
		var s *commitlog.CleanState
		var err error
		if s, b, err = commitlog.ParseCleanState(b[n:]); err != nil {
			return nil, err
		}
		states[topic.Partition{Topic: last, Partition: int32(partition)}] = s
	}
	return states, nil
}
