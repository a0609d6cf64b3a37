package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/human"
)

// WriteText explains a report to a person, as of now.
func (r *Report) WriteText(w io.Writer, now time.Time) error {
	var b strings.Builder
	for i := range r.Partitions {
		r.Partitions[i].text(&b, r.Topic, now)
	}
	r.Cleaner.text(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Partition) text(b *strings.Builder, topicName string, now time.Time) {
	fmt.Fprintf(b, "%s-%d  %s in %d segments, in %s\n", topicName, p.Partition, human.Bytes(p.Bytes), p.Segments, p.Directory)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	for _, u := range p.Undecided {
		line("undecided", "the end of a transaction of producer %d, offsets %d to %d, is lost in damage; its records are CORRUPT_MESSAGE to readers of committed records", u.ProducerID, u.FirstOffset, u.EndOffset)
		line("", "gregor topics decide %s-%d --producer %d --first %d {--commit|--abort}", topicName, p.Partition, u.ProducerID, u.FirstOffset)
	}
	if !p.Compacted {
		line("policy", "not compacted: cleanup.policy does not have compact")
		return
	}
	line("clean", "%s, offsets %d to %d", human.Bytes(p.CleanBytes), p.LogStart, p.FirstDirty)
	line("dirty", "%s that a cleaning may go through, offsets %d to %d", human.Bytes(p.CleanableBytes), p.FirstDirty, max(p.FirstDirty, p.FirstUncleanable))
	line("held back", "%s from offset %d on: %s", human.Bytes(p.HeldBytes), p.FirstUncleanable, p.limitText(now))
	line("ratio", "%s", p.ratioText())
	line("next", "%s", p.nextText(now))
	if p.Deleted {
		line("retention", "cleanup.policy has delete too: old segments go as a whole, by retention.ms and retention.bytes")
	}
	if p.Progress != nil {
		line("running", "%s", p.Progress.Text())
	}
	if p.Last != nil {
		for i, s := range p.Last.lines() {
			line([]string{"last", "", ""}[min(i, 2)], "%s", s)
		}
	}
}

// limitText says who holds back what is held back.
func (p *Partition) limitText(now time.Time) string {
	switch {
	case p.Transaction != nil:
		t := p.Transaction
		return fmt.Sprintf("last stable offset %d, by a transaction of producer %d (epoch %d) open since %s (%s)",
			p.LastStable, t.ProducerID, t.ProducerEpoch, t.Since.UTC().Format(time.RFC3339), human.Ago(now.Sub(t.Since)))
	case p.YoungUntil != nil:
		return fmt.Sprintf("%s, over in %s", p.Limit, human.Duration(p.YoungUntil.Sub(now)))
	case p.Limit == cleaner.LimitTransaction:
		return fmt.Sprintf("last stable offset %d, by a transaction that is not replicated yet", p.LastStable)
	case p.Limit == cleaner.LimitHighWatermark:
		return fmt.Sprintf("high watermark %d, replicas are behind", p.HighWatermark)
	}
	return "the active segment, which is never cleaned"
}

func (p *Partition) ratioText() string {
	s := fmt.Sprintf("%.2f dirty, limit %.2f (min.cleanable.dirty.ratio)", p.DirtyRatio, p.MinDirtyRatio)
	switch {
	case p.MissingBytes == 1: // nothing is clean, or the limit is 0
		s += ": the next segment that is not held back is enough"
	case p.MissingBytes > 1:
		s += fmt.Sprintf(": %s more to go", human.Bytes(p.MissingBytes))
	}
	return s
}

func (p *Partition) nextText(now time.Time) string {
	switch {
	case p.Uncleanable != "":
		return "uncleanable until the next start or a forced clean: " + p.Uncleanable
	case p.State == "paused":
		return "paused: the log is being moved, truncated or deleted"
	case p.State != "idle":
		return p.State
	case p.Due:
		return "due, cleaned as soon as a thread is free"
	case p.OverdueAt != nil && p.CleanableBytes > 0:
		return fmt.Sprintf("not due: %s; due anyway in %s (max.compaction.lag.ms)", p.Skip, human.Duration(p.OverdueAt.Sub(now)))
	}
	return "not due: " + string(p.Skip)
}

func (o *Overview) text(b *strings.Builder) {
	switch {
	case !o.Enabled:
		b.WriteString("cleaner  off (log.cleaner.enable=false): nothing is compacted, and compacted topics have no retention\n")
		return
	case o.Threads == 0:
		b.WriteString("cleaner  off (log.cleaner.threads=0): nothing is compacted, and compacted topics have no retention\n")
		return
	}
	fmt.Fprintf(b, "cleaner  %d threads, %d at work", o.Threads, len(o.Running))
	if o.Next != nil {
		fmt.Fprintf(b, ", next is %s (ratio %.2f)\n", o.Next.Partition, o.Next.DirtyRatio)
	} else {
		fmt.Fprintf(b, ", nothing else is due (next look within %s)\n", human.Duration(time.Duration(o.BackoffMs)*time.Millisecond))
	}
	for _, r := range o.Running {
		fmt.Fprintf(b, "  %s  %s\n", r.Partition, r.Progress.Text())
	}
	for _, skip := range slices.Sorted(maps.Keys(o.Skipped)) {
		fmt.Fprintf(b, "  %d not due: %s\n", o.Skipped[skip], skip)
	}
}

// Text tells a person how far a cleaning is.
func (r *Progress) Text() string {
	s := fmt.Sprintf("%s, %.0f%% after %s, %s/s", r.Phase, 100*(*cleaner.ProgressReport)(r).Done(), human.Duration(time.Duration(r.ElapsedMs)*time.Millisecond), human.Bytes(int64(r.BytesPerSecond)))
	if r.RemainingMs >= 0 {
		s += ", " + human.Duration(time.Duration(r.RemainingMs)*time.Millisecond) + " left"
	}
	if r.Forced {
		s += " (asked for)"
	}
	return s
}

// WriteText tells a person how a cleaning ended.
func (o *Outcome) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s  %s\n", o.Partition, strings.Join(o.lines(), "\n"+strings.Repeat(" ", len(o.Partition)+2)))
	return err
}

func (o *Outcome) lines() []string {
	took := human.Duration(time.Duration(o.TookMs) * time.Millisecond)
	if o.Error != "" {
		return []string{fmt.Sprintf("%s: ended after %s: %s", o.Started.UTC().Format(time.RFC3339), took, o.Error)}
	}
	lines := []string{
		fmt.Sprintf("%s: offsets %d to %d cleaned in %s, %s to %s, %s/s", o.Started.UTC().Format(time.RFC3339), o.FirstDirty, o.EndOffset,
			took, human.Bytes(o.BytesBefore), human.Bytes(o.BytesAfter), human.Bytes(int64(o.Rate))),
		fmt.Sprintf("%d records kept; removed: %s", o.RecordsKept, o.Removed.text()),
	}
	if o.Damaged > 0 {
		lines = append(lines, fmt.Sprintf("%d segments have damage and were left as they are", o.Damaged))
	}
	return lines
}

func (r *Removed) text() string {
	var parts []string
	add := func(count int64, reason string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, reason))
		}
	}
	add(r.Superseded, "superseded by later ones")
	add(r.Tombstones, "tombstones older than delete.retention.ms")
	add(r.Aborted, "of aborted transactions")
	add(r.Keyless, "without key")
	add(r.Markers, "transaction markers")
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
