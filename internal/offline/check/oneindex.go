package check

import (
	"context"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// IndexByItself returns the damage of an .index or .timeindex file that shows without its log.
func IndexByItself(fsys vfs.FS, path string) []Finding {
	p, base := indexPartition(fsys, path)
	p.loadIndexes(&segmentCheck{base: base, size: unlimited})
	return p.damageOf(path)
}

// IndexAgainstLog returns the damage of an .index or .timeindex file that its log shows. An entry that
// leads to a batch of more than batchMax bytes is damage; 0 is no limit.
func IndexAgainstLog(ctx context.Context, fsys vfs.FS, path string, batchMax int) ([]Finding, error) {
	p, base := indexPartition(fsys, path)
	p.batchMax = batchMax
	if _, err := fsys.Stat(p.path(base, segment.LogFile)); err != nil {
		return nil, err
	}
	if err := p.walkSegment(ctx, base, false); err != nil {
		return nil, err
	}
	return p.damageOf(path), nil
}

// indexPartition is a partition that has the segment of an index file only.
func indexPartition(fsys vfs.FS, path string) (p *partition, base int64) {
	_, base = files.Classify(path)
	p = newPartition(fsys, filepath.Dir(path), &collector{})
	p.logs = []int64{base}
	return p, base
}

func (c *collector) damageOf(path string) (list []Finding) {
	for _, f := range c.findings {
		if f.File == path && f.Severity == Damage {
			list = append(list, f)
		}
	}
	return list
}
