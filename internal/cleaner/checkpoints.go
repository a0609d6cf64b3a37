package cleaner

import (
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// checkpoints holds the file cleaner-offset-checkpoint of each log directory: up to where each
// log was cleaned. It is safe for concurrent use.
type checkpoints struct {
	fs     vfs.FS
	logger *slog.Logger

	mu struct {
		sync.Mutex
		dirs map[string]*dirCheckpoint
	}
}

// A dirCheckpoint is the file of one directory. It is read when it is asked for the first time, and
// written whole with each change. What makes no sense counts as empty, and the logs are cleaned from
// their start. The mutex is held across the writing of the file: nobody but cleanings of that
// directory waits for its disk.
type dirCheckpoint struct {
	mu      sync.Mutex
	entries map[topic.Partition]int64 // nil: not read yet
	offline bool                      // nothing is read or written there any more
}

func newCheckpoints(fsys vfs.FS, logger *slog.Logger) *checkpoints {
	c := &checkpoints{fs: fsys, logger: logger}
	c.mu.dirs = make(map[string]*dirCheckpoint)
	return c
}

// lock returns a directory's checkpoint, whose mutex the caller gives up.
func (c *checkpoints) lock(dir string) *dirCheckpoint {
	c.mu.Lock()
	d := c.mu.dirs[dir]
	if d == nil {
		d = new(dirCheckpoint)
		c.mu.dirs[dir] = d
	}
	c.mu.Unlock()
	d.mu.Lock()
	return d
}

// get returns where the last cleaning of a log ended, or noCheckpoint.
func (c *checkpoints) get(dir string, p topic.Partition) int64 {
	d := c.lock(dir)
	defer d.mu.Unlock()
	if offset, ok := c.loadLocked(d, dir)[p]; ok {
		return offset
	}
	return noCheckpoint
}

// set notes where cleanings ended.
func (c *checkpoints) set(dir string, offsets map[topic.Partition]int64) error {
	return c.change(dir, func(entries map[topic.Partition]int64) { maps.Copy(entries, offsets) })
}

// lower notes that a log ends at offset.
func (c *checkpoints) lower(dir string, p topic.Partition, offset int64) error {
	return c.change(dir, func(entries map[topic.Partition]int64) {
		if old, ok := entries[p]; ok {
			entries[p] = min(old, offset)
		}
	})
}

// forget drops logs: one created under the same name must not inherit their offsets.
func (c *checkpoints) forget(dir string, partitions ...topic.Partition) error {
	if !c.hasAny(dir, partitions) {
		return nil // thousands of partitions may be created at once
	}
	return c.change(dir, func(entries map[topic.Partition]int64) {
		for _, p := range partitions {
			delete(entries, p)
		}
	})
}

func (c *checkpoints) hasAny(dir string, partitions []topic.Partition) bool {
	d := c.lock(dir)
	defer d.mu.Unlock()
	entries := c.loadLocked(d, dir)
	return slices.ContainsFunc(partitions, func(p topic.Partition) bool {
		_, ok := entries[p]
		return ok
	})
}

// retain drops what is not kept, in memory only: the next write tells the file.
func (c *checkpoints) retain(dir string, keep func(topic.Partition) bool) {
	d := c.lock(dir)
	defer d.mu.Unlock()
	maps.DeleteFunc(c.loadLocked(d, dir), func(p topic.Partition, _ int64) bool { return !keep(p) })
}

// carry copies a log's entry to another directory.
func (c *checkpoints) carry(p topic.Partition, from, to string) error {
	offset := c.get(from, p)
	if offset == noCheckpoint {
		return c.forget(to, p)
	}
	return c.set(to, map[topic.Partition]int64{p: offset})
}

// dropDir forgets a directory that is offline.
func (c *checkpoints) dropDir(dir string) {
	d := c.lock(dir)
	defer d.mu.Unlock()
	d.entries, d.offline = nil, true
}

// change changes the entries of a directory and writes the file, if it made a difference.
func (c *checkpoints) change(dir string, change func(map[topic.Partition]int64)) error {
	d := c.lock(dir)
	defer d.mu.Unlock()
	if d.offline {
		return nil
	}
	entries := c.loadLocked(d, dir)
	next := maps.Clone(entries)
	change(next)
	if maps.Equal(entries, next) {
		return nil
	}
	if err := checkpoint.WriteOffsets(c.fs, c.path(dir), next); err != nil {
		return err
	}
	d.entries = next
	return nil
}

func (c *checkpoints) loadLocked(d *dirCheckpoint, dir string) map[topic.Partition]int64 {
	if d.entries != nil || d.offline {
		return d.entries
	}
	entries, err := checkpoint.ReadOffsets(c.fs, c.path(dir))
	if err != nil {
		c.logger.Error("checkpoint is damaged, logs whose offset cannot be read are cleaned from their start", "file", c.path(dir), "read", len(entries), "err", err)
	}
	d.entries = entries
	return entries
}

func (c *checkpoints) path(dir string) string { return filepath.Join(dir, checkpoint.CleanerOffsets) }
