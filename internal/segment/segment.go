package segment

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/vfs"
)

// A Config has the settings of a segment.
type Config struct {
	// IndexIntervalBytes is index.interval.bytes: an index entry is made for the first batch
	// after more than so many bytes since the last one. Kafka's default is 4096; negative
	// counts as 0.
	IndexIntervalBytes int

	// MaxIndexSize is segment.index.bytes, the limit for each index file; 0 means 10 MiB.
	MaxIndexSize int

	// Preallocate is the length in bytes that a new .log file is given at once, or 0.
	Preallocate int64

	// Suffix is behind the name of every file, such as CleanedSuffix.
	Suffix string

	// ReadOnly opens files for reading. Nothing that would change them is allowed then.
	ReadOnly bool

	Files   *FileCache  // nil means one shared by the process
	Indexes *IndexCache // nil means one shared by the process
}

func (c Config) withDefaults() Config {
	c.IndexIntervalBytes = max(c.IndexIntervalBytes, 0)
	if c.MaxIndexSize <= 0 {
		c.MaxIndexSize = 10 << 20
	}
	if c.Files == nil {
		c.Files = defaultCaches.Files
	}
	if c.Indexes == nil {
		c.Indexes = defaultCaches.Indexes
	}
	return c
}

func (c *Config) maxOffsetEntries() int { return c.MaxIndexSize / offsetEntrySize }
func (c *Config) maxTimeEntries() int   { return c.MaxIndexSize / timeEntrySize }

// A Segment is one stretch of a log and its indexes. There is one writer at a time, for
// Append, AppendAborted, TruncateTo, Recover, Seal, SetIndexLimits and Close. Everything else
// may run beside it, and any number of times at once.
type Segment struct {
	base    int64
	cfg     Config // IndexIntervalBytes and MaxIndexSize belong to the writer
	files   fileSet
	log     cachedFile
	size    atomic.Int64 // of the batches in .log; stored after they are written
	created atomic.Int64 // UnixNano
	dirty   atomic.Bool  // .log has changed since its last sync

	idx  atomic.Pointer[indexes]           // nil: not in memory
	txns atomic.Pointer[table[AbortedTxn]] // nil: not in memory
	// txnsProven says that txns needs no ProveTxns: this process made them of batches.
	txnsProven atomic.Bool
	// txnsComplete says that no aborted transaction is missing in it.
	txnsComplete atomic.Bool

	// index guards loading, replacing and storing of indexes, and adding to them. It is not
	// held across a sync. Lock order: index, then path.
	index struct {
		sync.Mutex
		stored      storedEntries
		owned       bool // there is a writer, so that the memory is ahead of the files
		noFiles     bool // .index and .timeindex are not made yet; what has their names is old
		dirty       bool // the files differ from what is in memory up to stored
		unsynced    bool // .index and .timeindex need a sync
		storedTxns  int  // entries of .txnindex, once it has been read
		txnUnsynced bool // .txnindex needs a sync
		txnHeld     bool // .txnindex is left alone while a new one is made
		noTxnFile   bool // there is no .txnindex
	}

	// flushing is held by Flush. Lock order: flushing, then index.
	flushing sync.Mutex

	health health // of .log. Lock order: index, then that of health, then that of files.

	// bytes counts since the last index entry, as indexBuilder does. It belongs to the writer.
	bytes int64

	stamps timestamps
}

// storedEntries says how many entries the index files have.
type storedEntries struct{ offsets, times int }

func newSegment(fsys vfs.FS, dir string, base int64, cfg Config) *Segment {
	s := &Segment{base: base, cfg: cfg.withDefaults()}
	s.files.fs, s.files.base = fsys, base
	s.files.path.dir, s.files.path.suffix = filepath.Clean(dir), s.cfg.Suffix
	s.log.cache, s.log.opener = s.cfg.Files, s.openLog
	return s
}

// Create makes the .log file of an empty segment and refuses to overwrite one. The index files
// follow with MakeIndexFiles, or else with the first entries that are stored: whoever waits for
// Create, as the producers of a log that rolls, need not wait for them. The names are durable
// after the first Flush. After an error no files are left, if they can be removed.
func Create(fsys vfs.FS, dir string, base int64, cfg Config, now time.Time) (*Segment, error) {
	s := newSegment(fsys, dir, base, cfg)
	f, err := s.files.open(LogFile, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if s.cfg.Preallocate > 0 {
		err = f.Truncate(s.cfg.Preallocate)
	}
	f.Close()
	if err == nil {
		err = s.files.remove(TxnIndexFile)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	s.begin(now)
	return s, nil
}

// begin makes the caller of Create the writer of a segment that nothing is known of but that it
// is empty.
func (s *Segment) begin(now time.Time) {
	s.created.Store(now.UnixNano())
	s.idx.Store(newIndexes(nil, nil))
	s.idx.Load().built = true
	s.txns.Store(newTable[AbortedTxn](nil))
	s.txnsProven.Store(true)
	s.txnsComplete.Store(true)
	s.index.owned, s.index.noFiles, s.index.noTxnFile = true, true, true
	s.stamps.begin(s.base)
	s.health.mu.proven = true
	s.dirty.Store(true)
	s.files.renamed.Store(true)
}

// MakeIndexFiles makes the .index and .timeindex files that Create has left out. Index files
// that are there, of a segment that is no more, are emptied.
func (s *Segment) MakeIndexFiles() error {
	s.index.Lock()
	defer s.index.Unlock()
	return s.makeIndexFilesLocked()
}

func (s *Segment) makeIndexFilesLocked() error {
	if !s.index.noFiles {
		return nil
	}
	for _, kind := range []Kind{IndexFile, TimeIndexFile} {
		f, err := s.files.open(kind, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if errors.Is(err, fs.ErrExist) {
			f, err = s.files.open(kind, os.O_RDWR|os.O_TRUNC)
			s.index.unsynced = true
		}
		if err != nil {
			return err
		}
		f.Close()
	}
	s.index.noFiles = false
	s.files.renamed.Store(true)
	return nil
}

// Open takes over the files of a segment as they are: after a clean stop they are right, else
// the next call is Recover. Nothing is read yet; indexes that turn out wrong or missing are
// made from the log.
func Open(fsys vfs.FS, dir string, base int64, cfg Config) (*Segment, error) {
	path := filepath.Join(dir, Name(base, LogFile, cfg.Suffix))
	info, err := fsys.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	return OpenInfo(fsys, dir, base, cfg, info), nil
}

// OpenInfo is Open for a caller that has the FileInfo of the .log file already.
func OpenInfo(fsys vfs.FS, dir string, base int64, cfg Config, log fs.FileInfo) *Segment {
	s := newSegment(fsys, dir, base, cfg)
	s.size.Store(log.Size())
	s.created.Store(log.ModTime().UnixNano())
	return s
}

// BaseOffset returns the offset that names the files; no record has a smaller one.
func (s *Segment) BaseOffset() int64 { return s.base }

// Size returns how many bytes of batches there are. Whoever loads it may read all of them.
func (s *Segment) Size() int64 { return s.size.Load() }

// Created returns when Create was called. For a segment that was opened it is the time of the
// last change before.
func (s *Segment) Created() time.Time { return time.Unix(0, s.created.Load()) }

// ModTime returns the modification time of the .log file.
func (s *Segment) ModTime() (time.Time, error) {
	info, err := s.files.stat(LogFile)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// SetModTime stamps the .log and index files, as compaction does with its output.
func (s *Segment) SetModTime(t time.Time) error {
	if err := s.MakeIndexFiles(); err != nil {
		return err
	}
	for _, kind := range []Kind{LogFile, IndexFile, TimeIndexFile} {
		if err := s.files.fs.SetModTime(s.Path(kind), t); err != nil {
			return err
		}
	}
	return nil
}

// SetIndexLimits changes index.interval.bytes and segment.index.bytes, with the meaning they
// have in Config. It is for the writer.
func (s *Segment) SetIndexLimits(intervalBytes, maxIndexSize int) {
	cfg := Config{IndexIntervalBytes: intervalBytes, MaxIndexSize: maxIndexSize}.withDefaults()
	s.index.Lock()
	defer s.index.Unlock()
	s.cfg.IndexIntervalBytes, s.cfg.MaxIndexSize = cfg.IndexIntervalBytes, cfg.MaxIndexSize
}

// IndexFull reports whether an index has no room for another entry, so that the log must roll.
// It is for the writer. Indexes that cannot be read are not full; Append meets the error.
func (s *Segment) IndexFull() bool {
	idx, err := s.indexes()
	if err != nil {
		return false
	}
	return len(idx.offsets.Load().view()) >= s.cfg.maxOffsetEntries() ||
		len(idx.times.Load().view()) >= s.cfg.maxTimeEntries()-1
}

// Path returns the path of a file, which may not exist.
func (s *Segment) Path(kind Kind) string { return s.files.name(kind) }

func (s *Segment) openLog() (vfs.File, error) {
	if s.cfg.ReadOnly {
		return s.files.open(LogFile, os.O_RDONLY)
	}
	return s.files.open(LogFile, os.O_RDWR)
}

// becomeWriter makes the caller the writer: indexes are loaded and stay in memory, and what they say of
// the end of the log is checked before anything is added.
func (s *Segment) becomeWriter() error {
	if s.index.owned { // only the writer sets it
		return nil
	}
	if s.cfg.ReadOnly {
		return ErrReadOnly
	}
	idx, err := s.uncacheIndexes()
	if err != nil {
		return err
	}
	if !s.endsRight(idx) {
		s.distrust(idx)
	}
	if _, err := s.loadMax(); err != nil {
		return err
	}
	s.index.Lock()
	defer s.index.Unlock()
	s.index.owned = true
	s.bytes = 0
	return nil
}

// uncacheIndexes loads the indexes and takes them out of the cache.
func (s *Segment) uncacheIndexes() (*indexes, error) {
	s.index.Lock()
	defer s.index.Unlock()
	idx, err := s.loadLocked()
	if err != nil {
		return nil, err
	}
	s.cfg.Indexes.cache.remove(&idx.slot)
	s.idx.Store(idx) // it may just have been dropped
	return idx, nil
}

// endsRight reports whether the last entry of the offset index leads to its batch and is not
// for an offset that is still to come.
func (s *Segment) endsRight(idx *indexes) bool {
	e := idx.lastOffset()
	if e == beforeOffsets || idx.built {
		return true
	}
	f, err := s.log.acquire()
	if err != nil {
		return false
	}
	defer f.release()
	sc := s.scanner(f)
	defer sc.release()
	fr, err := s.entryFrame(&sc, e)
	if err != nil {
		return false
	}
	next, _, err := s.walkToEnd(&sc, fr)
	return err == nil && s.base+int64(e.offset) < next
}

// fitsBase checks that offset can be in the indexes of a segment.
func fitsBase(offset, base int64) error {
	if offset < base || offset-base > math.MaxInt32 {
		return ErrOffsetOverflow
	}
	return nil
}
