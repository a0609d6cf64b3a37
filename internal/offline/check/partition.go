package check

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// unlimited is more than any size or offset.
const unlimited = math.MaxInt64

// unknown stands for an offset that no file tells.
const unknown = -1

// A partition is the check of one partition's directory.
type partition struct {
	fs   vfs.FS
	dir  string
	name topic.Partition
	known
	*collector
	shallow  bool                  // do not look inside batches
	batchMax int                   // largest batch in bytes that an index entry may lead to, 0 is any
	read     func(int64)           // told of bytes that were read
	kinds    map[string]files.Kind // of the files in dir

	logs      []int64 // base offsets, ascending
	offsets   offsetWalk
	epochs    epochWalk
	txns      txnWalk
	producers producerWalk
	losses    knownLosses
	records   recordVisitor // of the metadata log
	torn      bool          // the last segment ends in damage
	compacted bool          // holes between offsets mean nothing
	holed     bool          // a batch has fewer records than offsets
	padded    int           // index files that end in zeros

	snapshotTimes map[int64]int64 // time of the batch in front of the end of each KRaft snapshot
}

// What the log directory around a partition says about it; unknown where it says nothing.
type known struct {
	recoveryPoint, highWatermark, logStart, cleaned int64

	around    bool      // a log directory is around the partition
	clean     bool      // stopped cleanly
	listed    bool      // in one of the checkpoints that a clean stop writes for every partition
	topicID   uuid.UUID // of the metadata log, or zero
	kraft     bool      // every partition has to have a topic id
	compacted bool      // cleanup.policy has compact
	aside     bool      // no live partition: deleted, put aside or on its way

	sizes map[int64]int64 // in bytes, of .log files at the clean stop that gregor was stopped by, by base offset

	leaderEpoch int32 // in the metadata log
	spread      int32 // partitions of a coordinator's topic, 0 if it is none
	nodeID      int32 // of the broker
}

func unknownDir() known {
	return known{recoveryPoint: unknown, highWatermark: unknown, logStart: unknown, cleaned: unknown, leaderEpoch: unknown, nodeID: unknown}
}

func newPartition(fsys vfs.FS, dir string, c *collector) *partition {
	name, _, _ := files.ParseDir(dir)
	return &partition{
		fs: fsys, dir: dir, name: name, known: unknownDir(), collector: c,
		read: func(int64) {}, kinds: map[string]files.Kind{}, snapshotTimes: map[int64]int64{},
	}
}

func (p *partition) path(base int64, kind segment.Kind) string {
	return filepath.Join(p.dir, segment.Name(base, kind, ""))
}

// list reads the names in the directory and reports what does not belong there.
func (p *partition) list() error {
	entries, err := p.fs.ReadDir(p.dir)
	if err != nil {
		return err
	}
	left := map[string]int{}
	for _, e := range entries {
		kind, base := files.Classify(e.Name())
		switch {
		case e.IsDir():
			p.note(filepath.Join(p.dir, e.Name()), -1, -1, "a directory where none belongs")
			continue
		case kind == files.LogFile:
			p.logs = append(p.logs, base)
		case kind == files.KRaftSnapshot:
			p.snapshotTimes[base] = unknown
		case kind == files.Leftover:
			left[filepath.Ext(e.Name())]++
		}
		p.kinds[e.Name()] = kind
	}
	slices.Sort(p.logs)
	if _, ok := p.kinds[checkpoint.CopyMarker]; ok {
		p.note(filepath.Join(p.dir, checkpoint.CopyMarker), -1, -1, "the partition was moving here from another log directory; the next start of gregor ends that")
	}
	for suffix, count := range left {
		p.note(p.dir, -1, -1, "%d files end in %s: %s", count, suffix, files.LeftoverReason(suffix))
	}
	return nil
}

// check looks at everything in the directory. Errors are those of reading.
func (p *partition) check(ctx context.Context) error {
	if err := p.list(); err != nil {
		return err
	}
	p.compacted = p.known.compacted || p.cleaned != unknown || p.name.Topic == topic.ConsumerOffsets ||
		p.name.Topic == topic.TransactionState
	if err := p.loadEpochs(); err != nil {
		return err
	}
	if err := errors.Join(p.loadProducers(), p.loadLosses()); err != nil {
		return err
	}
	for i, base := range p.logs {
		if err := p.walkSegment(ctx, base, i == len(p.logs)-1); err != nil {
			return err
		}
	}
	if p.padded > 0 {
		p.note(p.dir, -1, -1, "%d index files end in zeros: an unclean stop leaves them at their largest size, and Kafka 4 those of its metadata log always", p.padded)
	}
	p.orphans()
	p.reportGaps()
	p.reportLosses()
	epochsErr := p.checkEpochs()
	p.producers.finish(p)
	p.checkStart()
	p.checkEnds()
	if err := errors.Join(epochsErr, p.checkSnapshots(ctx)); err != nil {
		return err
	}
	return p.checkIdentity()
}

// appeared reports whether a file is there that was not when the directory was listed.
func (p *partition) appeared(path string) bool {
	_, err := p.fs.Stat(path)
	return err == nil
}

// orphans are index files without a .log file.
func (p *partition) orphans() {
	for name, kind := range p.kinds {
		switch kind {
		case files.OffsetIndexFile, files.TimeIndexFile, files.TxnIndexFile:
			if _, base := files.Classify(name); !slices.Contains(p.logs, base) {
				p.damage(filepath.Join(p.dir, name), -1, base, "index of a segment whose .log file is missing")
			}
		}
	}
}

// end is the offset behind the last batch.
func (p *partition) end() int64 {
	if len(p.logs) == 0 {
		return max(0, p.logStart)
	}
	return p.offsets.expected
}

// checkStart holds the beginning of the log against the first leader epoch: that moves with it,
// so that of two which differ after a clean stop one is wrong. What is behind the log start and has
// an older epoch was reported.
func (p *partition) checkStart() {
	if !p.clean || len(p.epochs.entries) == 0 || len(p.logs) == 0 {
		return
	}
	start := max(p.logStart, p.logs[0])
	if first := p.epochs.entries[0]; first.StartOffset < start && start <= p.end() {
		p.damage(p.path(p.logs[0], segment.LogFile), -1, first.StartOffset, "the log begins at %d, the leader epochs at %d: what was between is missing, or %s is wrong",
			start, first.StartOffset, checkpoint.LeaderEpochs)
	}
}

// checkEnds holds the ends of the log against the checkpoints around it.
func (p *partition) checkEnds() {
	if p.offsets.odd { // which was reported
		return
	}
	end := p.end()
	parent := filepath.Dir(p.dir)
	file := func(name string) string { return filepath.Join(parent, name) }
	severity := Damage
	if p.torn { // the damage was reported, this follows from it
		severity = Note
	}
	if p.clean && p.recoveryPoint != unknown && p.recoveryPoint != end {
		p.add(Finding{file(checkpoint.RecoveryPoints), -1, end, severity, "the recovery point of " + p.name.String() +
			" after a clean stop is " + itoa(p.recoveryPoint) + ", its log ends at " + itoa(end)})
		if log, position := p.offsets.lastBatch(); log != "" {
			p.add(Finding{log, position, end, severity, "the log ends at " + itoa(end) +
				", the recovery point of a clean stop says " + itoa(p.recoveryPoint)})
		}
	} else if p.listed && p.recoveryPoint == unknown && end > 0 {
		p.note(file(checkpoint.RecoveryPoints), -1, end, "%v is missing, its log ends at %d", p.name, end)
	} else if p.recoveryPoint > end {
		p.add(Finding{file(checkpoint.RecoveryPoints), -1, end, severity, "the recovery point of " + p.name.String() + " is " +
			itoa(p.recoveryPoint) + ", its log ends at " + itoa(end) + ": flushed records are gone"})
	}
	if p.listed && p.highWatermark == unknown && end > 0 {
		p.note(file(checkpoint.HighWatermarks), -1, end, "%v is missing, its log ends at %d", p.name, end)
	}
	if p.highWatermark > end {
		if !p.clean {
			severity = Note
		}
		p.add(Finding{file(checkpoint.HighWatermarks), -1, end, severity, "the high watermark of " + p.name.String() + " is " +
			itoa(p.highWatermark) + ", its log ends at " + itoa(end)})
	}
	if p.logStart > end {
		p.add(Finding{file(checkpoint.LogStartOffsets), -1, end, severity, "the log start of " + p.name.String() + " is " +
			itoa(p.logStart) + ", its log ends at " + itoa(end)})
	}
	if p.cleaned > end {
		p.note(file(checkpoint.CleanerOffsets), -1, end, "the first dirty offset of %v is %d, its log ends at %d", p.name, p.cleaned, end)
	}
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// checkIdentity looks at partition.metadata.
func (p *partition) checkIdentity() error {
	path := filepath.Join(p.dir, checkpoint.PartitionMetadataFile)
	m, err := checkpoint.ReadPartitionMetadata(p.fs, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if p.kraft {
			p.damage(path, -1, -1, "missing; without a topic id the partition is a stray to a KRaft broker")
		}
		return nil
	case errors.Is(err, checkpoint.ErrCorrupt):
		p.damage(path, -1, -1, "%s", reason(err))
		return nil
	case err != nil:
		return err
	}
	if !p.topicID.IsZero() && m.TopicID != p.topicID {
		p.damage(path, -1, -1, "topic id %v, but the metadata log has %v for topic %s", m.TopicID, p.topicID, p.name.Topic)
	}
	if m.Version != 0 {
		p.damage(path, -1, -1, "version %d, want 0", m.Version)
	}
	return nil
}

// reason is what a checkpoint's error says besides the path.
func reason(err error) string {
	var e *checkpoint.CorruptError
	if errors.As(err, &e) {
		return strings.TrimPrefix(e.Error(), e.Path+": ")
	}
	return err.Error()
}
