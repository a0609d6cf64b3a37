package check

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// looks is how often a partition is looked at before what was found counts for damage, if its
// files change meanwhile.
const looks = 4

// look checks a partition, and again if there is damage and somebody writes to the directory: a
// broker appends, rolls, deletes and compacts between one read and the next. Damage is what is
// found every time. A directory that goes away has none.
func (c *checkRun) look(ctx context.Context, p *partition) error {
	was, err := c.listing(p.dir)
	if err == nil {
		err = p.check(ctx)
	}
	for range looks - 1 {
		if err == nil && !p.damaged() && !p.torn || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		is, listErr := c.stableFiles(ctx, p.dir, was)
		if errors.Is(listErr, fs.ErrNotExist) {
			p.collector.reset()
			return nil
		}
		if listErr != nil || maps.Equal(was, is) {
			return errors.Join(err, listErr)
		}
		again := p.again()
		err = again.check(ctx)
		p.torn = again.torn
		p.keep(again.collector)
		was = is
	}
	return err
}

// lately is how old the last change of a directory may be that somebody writes to, perhaps.
const lately = 10 * time.Second

// stableFiles returns the files of a directory when they are not what they were, or it is certain that
// nobody is in the middle of changing them: a broker may wait for the disk between one file and the
// next. It waits for that once.
func (c *checkRun) stableFiles(ctx context.Context, dir string, was map[string]fileState) (map[string]fileState, error) {
	for {
		is, err := c.listing(dir)
		if err != nil || !maps.Equal(was, is) || c.waited.Load() >= int64(c.o.Wait) {
			return is, err
		}
		busy := false
		for _, f := range is {
			busy = busy || time.Since(f.modTime) < lately
		}
		if !busy {
			return is, nil
		}
		const step = 20 * time.Millisecond
		select {
		case <-ctx.Done():
			return is, ctx.Err()
		case <-time.After(step):
			c.waited.Add(int64(step))
		}
	}
}

// A fileState is what tells that a file has changed.
type fileState struct {
	size    int64
	modTime time.Time
}

// listing returns the files of a directory.
func (c *checkRun) listing(dir string) (map[string]fileState, error) {
	entries, err := c.o.FS.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	m := make(map[string]fileState, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m[e.Name()] = fileState{info.Size(), info.ModTime()}
	}
	return m, nil
}

// again is the same partition, not looked at yet.
func (p *partition) again() *partition {
	q := newPartition(p.fs, p.dir, &collector{})
	q.known, q.shallow, q.read, q.records = p.known, p.shallow, p.read, p.records
	return q
}

func (c *collector) damaged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Severity == Damage })
}

func (c *collector) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings, c.dropped = nil, 0
}

// keep takes over the notes of another look, and leaves the damage that both have found.
func (c *collector) keep(again *collector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[Finding]bool{}
	for _, f := range c.findings {
		before[f] = true
	}
	c.dropped = min(c.dropped, again.dropped)
	c.findings = slices.DeleteFunc(again.findings, func(f Finding) bool { return f.Severity == Damage && !before[f] })
}
