package explain

import "github.com/gregor-kafka/gregor/internal/cleaner"

// Of shows a report, nil as nil.
func Of(r *cleaner.Report) *Report {
	if r == nil {
		return nil
	}
	shown := &Report{Topic: r.Topic, Cleaner: overview(&r.Cleaner)}
	for i := range r.Partitions {
		shown.Partitions = append(shown.Partitions, partition(&r.Partitions[i]))
	}
	return shown
}

func overview(o *cleaner.Overview) Overview {
	shown := Overview{Enabled: o.Enabled, Threads: o.Threads, Next: (*Next)(o.Next), BackoffMs: o.BackoffMs, Skipped: o.Skipped}
	for _, r := range o.Running {
		shown.Running = append(shown.Running, Running{r.Partition, Progress(r.Progress)})
	}
	return shown
}

func partition(p *cleaner.PartitionReport) Partition {
	shown := Partition{
		Partition: p.Partition, Directory: p.Directory, Compacted: p.Compacted, Deleted: p.Deleted, State: p.State,
		Segments: p.Segments, Bytes: p.Bytes, CleanBytes: p.CleanBytes, CleanableBytes: p.CleanableBytes, HeldBytes: p.HeldBytes,
		DirtyRatio: p.DirtyRatio, MinDirtyRatio: p.MinDirtyRatio, MissingBytes: p.MissingBytes,
		Due: p.Due, Skip: p.Skip, Uncleanable: p.Uncleanable, OverdueAt: p.OverdueAt,
		LogStart: p.LogStart, FirstDirty: p.FirstDirty, FirstUncleanable: p.FirstUncleanable,
		LastStable: p.LastStable, HighWatermark: p.HighWatermark, End: p.End,
		Limit: p.Limit, Transaction: (*OpenTransaction)(p.Transaction), YoungUntil: p.YoungUntil,
		Progress: (*Progress)(p.Progress), Last: OutcomeOf(p.Last),
	}
	for _, u := range p.Undecided {
		shown.Undecided = append(shown.Undecided, UndecidedTxn(u))
	}
	return shown
}

// OutcomeOf shows how a cleaning ended, nil as nil.
func OutcomeOf(o *cleaner.Outcome) *Outcome {
	if o == nil {
		return nil
	}
	return &Outcome{
		Partition: o.Partition, Started: o.Started, TookMs: o.TookMs, Rounds: o.Rounds, Forced: o.Forced, Error: o.Error,
		FirstDirty: o.FirstDirty, EndOffset: o.EndOffset, BytesBefore: o.BytesBefore, BytesAfter: o.BytesAfter, Rate: o.Rate,
		BytesRead: o.BytesRead, BytesWritten: o.BytesWritten, RecordsRead: o.RecordsRead, RecordsKept: o.RecordsKept,
		MapKeys: o.MapKeys, MapUtilization: o.MapUtilization, Damaged: o.Damaged, Removed: Removed(o.Removed),
	}
}
