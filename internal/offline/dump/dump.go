package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// ErrDamaged says that Files met bytes that it could not show.
var ErrDamaged = errors.New("there is damage")

// Options are the options of kafka-dump-log.
type Options struct {
	FS vfs.FS // nil is the host's

	JSON               bool // one object a record, or an entry of another file
	PrintDataLog       bool // keys and values; implies DeepIteration
	DeepIteration      bool // a line for each record
	SkipRecordMetadata bool // of a record only key and value
	Decoder            schema.Decoder
	KeyClass           schema.Class // of keys that the decoder leaves alone, in text
	ValueClass         schema.Class // of such values
	IndexSanityCheck   bool         // of indexes only whether they make sense by themselves
	VerifyIndexOnly    bool         // of indexes only the entries that the log contradicts
	MaxMessageSize     int          // of an index, largest batch in bytes that an entry may lead to; 0 is no limit
	MaxBytes           int64        // of a segment, only so many bytes; 0 is no limit

	Warnings io.Writer // gets what cannot be shown as JSON; nil drops it
}

// Files writes what is in files and directories: log directories, partitions, or single files
// of them. It goes on behind damage, which then makes the error match ErrDamaged.
func Files(ctx context.Context, w io.Writer, paths []string, o Options) error {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	d := &dumper{ctx: ctx, o: o, out: &output{w: w}}
	for _, path := range paths {
		if err := d.path(filepath.Clean(path)); err != nil {
			return errors.Join(d.out.flush(), err)
		}
	}
	if err := d.out.flush(); err != nil {
		return err
	}
	if d.damaged > 0 {
		return fmt.Errorf("%w: %d places", ErrDamaged, d.damaged)
	}
	return nil
}

// A dumper is one call of Dump.
type dumper struct {
	ctx     context.Context
	o       Options
	out     *output
	damaged int
}

// An output gathers text and writes it in large pieces.
type output struct {
	w io.Writer
	b []byte
}

// outputSize is how much is gathered before it is written.
const outputSize = 128 << 10

func (o *output) flush() error {
	_, err := o.w.Write(o.b)
	o.b = o.b[:0]
	return err
}

func (o *output) flushFull() error {
	if len(o.b) < outputSize {
		return nil
	}
	return o.flush()
}

func (o *output) printf(format string, args ...any) { o.b = fmt.Appendf(o.b, format, args...) }

func (d *dumper) path(path string) error {
	info, err := d.o.FS.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return d.file(path, "", 0)
	}
	entries, err := d.o.FS.ReadDir(path)
	if err != nil {
		return err
	}
	if files.IsPartitionDir(path, entries) {
		logStart, err := d.logStarts(filepath.Dir(path))
		if err != nil {
			return err
		}
		return d.partition(path, entries, logStart)
	}
	return d.logDir(path, entries)
}

// logStarts are those of the partitions in a log directory, for JSON.
func (d *dumper) logStarts(dir string) (map[topic.Partition]int64, error) {
	if !d.o.JSON {
		return nil, nil
	}
	m, err := checkpoint.ReadOffsets(d.o.FS, filepath.Join(dir, checkpoint.LogStartOffsets))
	if errors.Is(err, checkpoint.ErrCorrupt) {
		d.warn(err)
		err = nil
	}
	return m, err
}

func (d *dumper) logDir(path string, entries []fs.DirEntry) error {
	logStart, err := d.logStarts(path)
	if err != nil {
		return err
	}
	for _, e := range files.Sorted(entries) {
		sub := filepath.Join(path, e.Name())
		if !e.IsDir() {
			if !d.o.JSON {
				err = d.file(sub, "", 0)
			}
		} else if inner, readErr := d.o.FS.ReadDir(sub); readErr != nil {
			err = readErr
		} else if files.IsPartitionDir(sub, inner) {
			err = d.partition(sub, inner, logStart)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partition shows all files of a partition, in JSON those with records.
func (d *dumper) partition(path string, entries []fs.DirEntry, logStarts map[topic.Partition]int64) error {
	p, aside, _ := files.ParseDir(path)
	logStart := logStarts[p]
	if aside != "" {
		logStart = 0
	}
	for _, e := range entries {
		kind, _ := files.Classify(e.Name())
		if e.IsDir() || d.o.JSON && kind != files.LogFile {
			continue
		}
		if err := d.file(filepath.Join(path, e.Name()), path, logStart); err != nil {
			return err
		}
	}
	return nil
}

// file shows a file. dir is that of its partition, "" if the caller named the file itself.
func (d *dumper) file(path, dir string, logStart int64) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	kind, base := files.Classify(path)
	switch kind {
	case files.LogFile, files.KRaftSnapshot:
		return d.batches(path, kind, base, logStart)
	case files.OffsetIndexFile, files.TimeIndexFile, files.TxnIndexFile:
		return d.index(path, kind, base)
	case files.ProducerSnapshot:
		return d.producers(path)
	case files.OtherFile, files.Leftover, files.CleanShutdown, files.CleanState, files.LeftAlone, files.LossList, files.Running, files.MetaProperties, files.QuorumState, files.PartitionMetadata, files.OffsetCheckpoint, files.EpochCheckpoint:
		return d.text(path, kind, dir != "")
	}
	return nil
}

// heading is the line in front of a file.
func (d *dumper) heading(path string) {
	if !d.o.JSON {
		d.out.printf("Dumping %s\n", path)
	}
}

// warn is for damage: in text a line of it, in JSON a line beside it.
func (d *dumper) warn(err error) {
	d.damaged++
	if !d.o.JSON {
		d.out.printf("Damage: %v\n", err)
	} else if d.o.Warnings != nil {
		fmt.Fprintf(d.o.Warnings, "damage: %v\n", err)
	}
}

func (o *Options) maxBytes() int64 {
	if o.MaxBytes <= 0 {
		return math.MaxInt64
	}
	return o.MaxBytes
}
