package check

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/vfs"
)

// Options say how to check.
type Options struct {
	FS      vfs.FS // nil is the host's
	Workers int    // partitions that are checked at the same time; 0 is one

	// Shallow takes a batch whose checksum is right for good, without a look at its records.
	Shallow bool

	// Wait is how long, in all, a check waits for somebody who is perhaps in the middle of
	// changing what it found damaged; see stableFiles.
	Wait time.Duration

	// Progress, if not nil, is called every now and then, from one goroutine at a time.
	Progress func(Progress)
}

// Progress says how far a check has come.
type Progress struct {
	Done, Total int64 // bytes of batches
	Partitions  int
	Elapsed     time.Duration
}

// Rate is bytes per second so far.
func (p Progress) Rate() float64 { return float64(p.Done) / max(p.Elapsed.Seconds(), 1e-9) }

// Left is the time that the rest takes at that rate.
func (p Progress) Left() time.Duration {
	if p.Done == 0 {
		return 0
	}
	return time.Duration(float64(p.Elapsed) * float64(p.Total-p.Done) / float64(p.Done))
}

// A Report is what a check found, sorted by directory.
type Report struct {
	Findings   []Finding
	Partitions int
	Bytes      int64 // of batches
	Elapsed    time.Duration
}

// Damaged counts the findings that are damage.
func (r *Report) Damaged() (n int) {
	for _, f := range r.Findings {
		if f.Severity == Damage {
			n++
		}
	}
	return n
}

// Dirs checks log directories and partition directories. An error means that something could
// not be read; the report has what was found up to then. What is wrong with the data is in
// the report and no error.
func Dirs(ctx context.Context, dirs []string, o Options) (*Report, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	c := &checkRun{o: o, began: time.Now(), total: map[string]int64{}}
	var all []*dirCheck
	for _, dir := range dirs {
		d, err := c.open(filepath.Clean(dir))
		if err != nil {
			return &Report{}, err
		}
		all = append(all, d)
	}
	if err := c.readAround(ctx, all); err != nil {
		return &Report{}, err
	}
	report := &Report{}
	var err error
	for _, d := range all {
		err = errors.Join(err, c.run(ctx, d))
		report.Findings = append(report.Findings, d.take(d.path)...)
		for _, p := range d.partitions {
			report.Findings = append(report.Findings, p.take(p.dir)...)
		}
		report.Partitions += len(d.partitions)
	}
	report.Bytes = c.done.Load()
	report.Elapsed = time.Since(c.began)
	return report, err
}

// A checkRun is one call of Dirs.
type checkRun struct {
	o     Options
	began time.Time
	total map[string]int64 // bytes of batches by partition directory
	sum   int64

	done     atomic.Int64
	finished atomic.Int64
	waited   atomic.Int64 // ns, see stableFiles
	progress sync.Mutex   // held while Progress runs
	reported atomic.Int64
}

// A dirCheck is one argument of Dirs: a log directory, or one partition of it.
type dirCheck struct {
	path string
	*collector
	partitions []*partition
	logDir     bool
	around     *logDir
}

func (c *checkRun) open(path string) (*dirCheck, error) {
	entries, err := c.o.FS.ReadDir(path)
	if err != nil {
		return nil, err
	}
	d := &dirCheck{path: path, collector: &collector{}}
	if files.IsPartitionDir(path, entries) {
		d.partitions = append(d.partitions, c.partition(path))
		return d, c.measure(path, entries)
	}
	d.logDir = true
	for _, e := range files.Sorted(entries) {
		sub := filepath.Join(path, e.Name())
		if !e.IsDir() {
			continue
		}
		inner, err := c.o.FS.ReadDir(sub)
		if errors.Is(err, fs.ErrNotExist) { // a broker has deleted it since
			continue
		}
		if err != nil {
			return nil, err
		}
		if files.IsPartitionDir(sub, inner) {
			d.partitions = append(d.partitions, c.partition(sub))
			if err := c.measure(sub, inner); err != nil {
				return nil, err
			}
		} else if e.Name() != remoteIndexDir {
			d.note(sub, -1, -1, "not the directory of a partition: Kafka does not start with it")
		}
	}
	return d, nil
}

func (c *checkRun) partition(path string) *partition {
	p := newPartition(c.o.FS, path, &collector{})
	p.shallow = c.o.Shallow
	p.read = c.count
	return p
}

// measure adds up what there is to read.
func (c *checkRun) measure(path string, entries []fs.DirEntry) error {
	for _, e := range entries {
		if kind, _ := files.Classify(e.Name()); kind != files.LogFile && kind != files.KRaftSnapshot {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c.total[path] += info.Size()
		c.sum += info.Size()
	}
	return nil
}

// progressStep is how many bytes lie between two calls of Progress.
const progressStep = 64 << 20

func (c *checkRun) count(n int64) {
	done := c.done.Add(n)
	before := c.reported.Load()
	if c.o.Progress == nil || done-before < progressStep || !c.reported.CompareAndSwap(before, done) {
		return
	}
	c.progress.Lock()
	defer c.progress.Unlock()
	c.o.Progress(Progress{min(c.done.Load(), c.sum), c.sum, int(c.finished.Load()), time.Since(c.began)})
}

// run checks what is in one argument, the largest partitions first, so that no worker is left
// alone with one at the end.
func (c *checkRun) run(ctx context.Context, d *dirCheck) error {
	queue := slices.SortedStableFunc(slices.Values(d.partitions), func(a, b *partition) int {
		return int(max(-1, min(1, c.total[b.dir]-c.total[a.dir])))
	})
	work := make(chan *partition)
	errs := make([]error, max(1, c.o.Workers))
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			for p := range work {
				if err := c.look(ctx, p); err != nil {
					errs[i] = errors.Join(errs[i], err)
				}
				c.finished.Add(1)
			}
		})
	}
	for _, p := range queue {
		work <- p
	}
	close(work)
	workers.Wait()
	return errors.Join(errs...)
}
