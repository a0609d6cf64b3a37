package check

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

const metadataDir = topic.ClusterMetadata + "-0"

// topics are what the metadata log says about them.
type topics struct {
	ids     map[string]uuid.UUID
	compact map[string]bool
	image   *metadata.Image // at its end; nil if the log makes none
}

// readTopics collects what the metadata log says about topics, snapshots first. Damage in it
// is for its own check to report.
func (c *checkRun) readTopics(ctx context.Context, dir string, t *topics) error {
	entries, err := c.o.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	t.ids, t.compact = map[string]uuid.UUID{}, map[string]bool{}
	names := map[uuid.UUID]string{}
	b := imageBuilder{image: metadata.NewImage("")}
	for _, want := range []files.Kind{files.KRaftSnapshot, files.LogFile} {
		for _, e := range files.Sorted(entries) {
			kind, base := files.Classify(e.Name())
			if kind != want || e.IsDir() {
				continue
			}
			if kind == files.KRaftSnapshot {
				b.begin(base)
			}
			err := c.eachBatch(ctx, filepath.Join(dir, e.Name()), func(batch record.Batch, records []metadata.Record) {
				for _, r := range records {
					t.apply(r, names)
				}
				b.add(kind, batch, records)
			})
			if err != nil {
				return err
			}
		}
	}
	t.image = b.end()
	return nil
}

func (t *topics) apply(r metadata.Record, names map[uuid.UUID]string) {
	switch r := r.(type) {
	case *metadata.TopicRecord:
		t.ids[r.Name], names[r.TopicID] = r.TopicID, r.Name
	case *metadata.RemoveTopicRecord:
		delete(t.ids, names[r.TopicID])
	case *metadata.ConfigRecord:
		if r.ResourceType == topicResource && r.Name == "cleanup.policy" && r.Value != nil && strings.Contains(*r.Value, "compact") {
			t.compact[r.ResourceName] = true // for good: what was compacted once has holes
		}
	}
}

// leaderEpoch returns the last one of a partition, or unknown.
func (t *topics) leaderEpoch(p topic.Partition) int32 {
	if t.image != nil {
		if mp := t.image.Partition(p); mp != nil {
			return mp.LeaderEpoch
		}
	}
	return unknown
}

// topicResource is the resource type of topics.
const topicResource = 2

// An imageBuilder follows the newest snapshot and what the log has behind it.
type imageBuilder struct {
	image        *metadata.Image
	transactions metadata.Transactions
	from         int64 // offset behind the snapshot
	next         int64 // of the log
	broken       bool
}

// begin begins a snapshot, newer than those before.
func (b *imageBuilder) begin(end int64) {
	*b = imageBuilder{image: metadata.NewImage(""), from: end, next: end}
}

func (b *imageBuilder) add(kind files.Kind, batch record.Batch, records []metadata.Record) {
	switch {
	case b.broken || kind == files.KRaftSnapshot && b.from == 0: // what is in a bootstrap snapshot is in the log again
		return
	case kind == files.LogFile && batch.NextOffset() <= b.from:
		return
	case kind == files.LogFile && batch.BaseOffset() != b.next:
		b.broken = true
		return
	}
	offset := b.from - 1
	if kind == files.LogFile {
		b.next, offset = batch.NextOffset(), batch.LastOffset()
	}
	ready, err := b.transactions.Next(records)
	if err == nil {
		b.image, _, err = b.image.Apply(ready, offset, batch.LeaderEpoch())
	}
	b.broken = err != nil
}

func (b *imageBuilder) end() *metadata.Image {
	if b.broken || b.next == 0 {
		return nil
	}
	return b.image
}

// eachBatch visits the good batches of a file with their metadata records, none of a control batch.
func (c *checkRun) eachBatch(ctx context.Context, path string, visit func(record.Batch, []metadata.Record)) (err error) {
	scan, err := files.OpenScanner(c.o.FS, path, 0)
	if errors.Is(err, fs.ErrNotExist) { // replaced by a newer snapshot since
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scan.Close()) }()
	for {
		sp, err := scan.Next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if sp.Err == nil {
			visit(sp.Batch, metadataRecords(sp.Batch))
		}
	}
}

func metadataRecords(b record.Batch) (list []metadata.Record) {
	if b.IsControl() {
		return nil
	}
	for r, err := range b.Records() {
		if err != nil {
			break
		}
		if m, err := metadata.Decode(r.Value); err == nil {
			list = append(list, m)
		}
	}
	return list
}
