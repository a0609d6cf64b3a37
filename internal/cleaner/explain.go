package cleaner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Report explains the cleaning of a topic: why records are kept and what will go.
type Report struct {
	Topic      string
	Partitions []PartitionReport
	Cleaner    Overview
}

// An Overview is what all topics share.
type Overview struct {
	Enabled bool
	Threads int
	// Running are the cleanings under way, forced ones included.
	Running []RunningReport
	// Next is what a free thread would clean now; nil for nothing.
	Next      *NextReport
	BackoffMs int64
	Skipped   map[Skip]int // compacted logs that are not due
}

// A RunningReport is a cleaning under way.
type RunningReport struct {
	Partition string
	Progress  ProgressReport
}

// A NextReport is the log that is cleaned next.
type NextReport struct {
	Partition  string
	DirtyRatio float64
	Overdue    bool // max.compaction.lag.ms is exceeded
}

// A PartitionReport explains one partition. Sizes are of .log files.
type PartitionReport struct {
	Partition int32
	Directory string
	Compacted bool
	Deleted   bool   // cleanup.policy has delete
	State     string // idle, cleaning, deleting, aborted or paused

	Segments       int
	Bytes          int64
	CleanBytes     int64 // below the first dirty offset
	CleanableBytes int64 // dirty, and a cleaning would go through it
	HeldBytes      int64 // dirty, and may not be touched yet

	DirtyRatio    float64
	MinDirtyRatio float64
	MissingBytes  int64 // to become cleanable before the ratio is reached
	Due           bool
	Skip          Skip // why it is not due
	Uncleanable   string

	// OverdueAt is when max.compaction.lag.ms makes the log due, whatever its ratio.
	OverdueAt *time.Time

	LogStart         int64
	FirstDirty       int64
	FirstUncleanable int64
	LastStable       int64
	HighWatermark    int64
	End              int64

	// Limit is what keeps cleaning from going beyond FirstUncleanable.
	Limit       Limit
	Transaction *OpenTransaction
	// YoungUntil is when min.compaction.lag.ms lets go of the segment at FirstUncleanable.
	YoungUntil *time.Time

	// Undecided are transactions whose end is lost in damage.
	Undecided []UndecidedTxn

	Progress *ProgressReport
	Last     *Outcome // since the broker started
}

// An UndecidedTxn is a transaction that may have been committed or aborted.
type UndecidedTxn struct {
	ProducerID  int64
	FirstOffset int64
	EndOffset   int64 // behind its last record
}

// An OpenTransaction holds back the last stable offset.
type OpenTransaction struct {
	ProducerID    int64
	ProducerEpoch int16
	FirstOffset   int64
	Since         time.Time // of its first batch, by the producer's clock
	LastWrite     time.Time // of its last batch
}

// Explain reports on the partitions of a topic that are here.
func (m *Manager) Explain(topicName string) (*Report, error) {
	r := &Report{Topic: topicName, Cleaner: m.overview()}
	now := m.now()
	for l, dir := range m.logs.Placed() {
		if l.Partition().Topic != topicName {
			continue
		}
		p, err := m.explain(l, dir, now)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", l.Partition(), err)
		}
		r.Partitions = append(r.Partitions, *p)
	}
	if len(r.Partitions) == 0 {
		return nil, fmt.Errorf("%s: %w", topicName, ErrUnknownPartition)
	}
	slices.SortFunc(r.Partitions, func(a, b PartitionReport) int { return int(a.Partition) - int(b.Partition) })
	return r, nil
}

func (m *Manager) overview() Overview {
	cfg := m.config()
	o := Overview{Enabled: cfg.Enabled, Threads: cfg.threads(), BackoffMs: cfg.Backoff.Milliseconds()}
	now := m.now()
	for l := range m.logs.Placed() {
		if t, _ := m.states.running(l.Partition()); t != nil && t.cleaning != nil {
			o.Running = append(o.Running, RunningReport{l.Partition().String(), t.cleaning.report(now)})
		}
	}
	found := m.choose(now)
	o.Skipped = found.skipped
	if best := found.best; best != nil {
		o.Next = &NextReport{best.partition().String(), best.ratio, best.must}
	}
	return o
}

func (c *cleaning) report(now time.Time) ProgressReport {
	r := reportProgress(&c.progress, &c.plan, now.Sub(c.started))
	r.Forced = c.forced
	return r
}

func (m *Manager) explain(l *commitlog.Log, dir string, now time.Time) (*PartitionReport, error) {
	p, config, s := l.Partition(), l.Config(), shapeOf(l)
	a, err := assess(s, m.checkpoints.get(dir, p), &config, now)
	if err != nil {
		return nil, err
	}
	r := &PartitionReport{
		Partition: p.Partition, Directory: dir, Compacted: config.Compact, Deleted: config.Delete, State: m.states.name(p),
		Segments: len(s.segments), Bytes: l.Size(),
		LogStart: s.logStart, LastStable: s.lastStable, HighWatermark: s.highWatermark, End: s.end,
	}
	if err := r.explainUndecided(l); err != nil || !config.Compact {
		return r, err
	}
	r.CleanBytes, r.CleanableBytes, r.HeldBytes = a.cleanBytes, a.cleanableBytes, a.heldBytes
	r.DirtyRatio, r.MinDirtyRatio, r.MissingBytes = a.ratio, config.MinCleanableRatio, a.missingBytes(config.MinCleanableRatio)
	r.FirstDirty, r.FirstUncleanable, r.Limit = a.firstDirty, a.firstUncleanable, a.limit
	r.Due, r.Skip = a.eligible, a.skip(s)
	if !a.mustFrom.IsZero() {
		r.OverdueAt = &a.mustFrom
	}
	if err := r.explainLimit(l, s, &a, &config); err != nil {
		return nil, err
	}
	m.explainState(r, p, dir, now)
	return r, nil
}

func (r *PartitionReport) explainUndecided(l *commitlog.Log) error {
	list, err := l.UndecidedTxns()
	for _, u := range list {
		r.Undecided = append(r.Undecided, UndecidedTxn(u))
	}
	return err
}

// explainState adds what the Manager knows of a log.
func (m *Manager) explainState(r *PartitionReport, p topic.Partition, dir string, now time.Time) {
	if t, paused := m.states.running(p); t != nil || paused {
		r.Due, r.Skip = false, SkipBusy
		if t != nil && t.cleaning != nil {
			progress := t.cleaning.report(now)
			r.Progress = &progress
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if reason := m.mu.uncleanable[dir][p]; reason != nil {
		r.Due, r.Skip, r.Uncleanable = false, SkipUncleanable, reason.Error()
	}
	r.Last = m.mu.history[p]
}

// explainLimit says who holds back the first uncleanable offset.
func (r *PartitionReport) explainLimit(l *commitlog.Log, s *shape, a *assessment, c *commitlog.Config) error {
	switch a.limit {
	case LimitTransaction:
		for _, p := range l.Producers() {
			if p.TxnStartOffset != s.lastStable {
				continue
			}
			r.Transaction = &OpenTransaction{ProducerID: p.ProducerID, ProducerEpoch: p.ProducerEpoch,
				FirstOffset: p.TxnStartOffset, LastWrite: time.UnixMilli(p.LastTimestamp)}
			since, err := timeAt(l, p.TxnStartOffset)
			r.Transaction.Since = since
			return err
		}
	case LimitMinLag:
		for _, seg := range s.sealed() {
			if seg.base == a.firstUncleanable {
				largest, err := seg.largest()
				until := time.UnixMilli(largest + c.MinCompactionLagMs)
				r.YoungUntil = &until
				return err
			}
		}
	}
	return nil
}

// timeAt returns the time of the batch that holds an offset; the zero time if it has gone.
func timeAt(l *commitlog.Log, offset int64) (time.Time, error) {
	read, err := l.Read(offset, 1, commitlog.ReadLogEnd, segment.WholeFirst)
	if errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		return time.Time{}, nil
	}
	defer read.Slice.Release()
	header := make(record.Batch, record.HeaderSize)
	if err != nil || read.Slice.Size() < len(header) {
		return time.Time{}, err
	}
	if _, err := read.Slice.ReadAt(header, 0); err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(header.BaseTimestamp()), nil
}
