package cleaner

import (
	"time"

	"github.com/gregor-kafka/gregor/internal/compaction"
)

// A ProgressReport is a Progress at one moment, with what is to be expected.
type ProgressReport struct {
	Phase          string // map or rewrite
	MapBytes       int64
	MapTotal       int64
	ReadBytes      int64
	ReadTotal      int64
	WrittenBytes   int64
	Records        int64
	ElapsedMs      int64
	BytesPerSecond float64 // read, in both phases
	RemainingMs    int64   // -1: not known yet
	Forced         bool
}

// reportProgress is a function of the counts, the plan and the time. If the map runs full it promises
// more than this round will do.
func reportProgress(p *compaction.Progress, plan *compaction.Plan, elapsed time.Duration) ProgressReport {
	r := ProgressReport{
		Phase: "map", MapBytes: p.MapBytes.Load(), MapTotal: plan.DirtyBytes,
		ReadBytes: p.ReadBytes.Load(), ReadTotal: plan.CleanedBytes + plan.DirtyBytes,
		WrittenBytes: p.WrittenBytes.Load(), Records: p.Records.Load(), ElapsedMs: elapsed.Milliseconds(), RemainingMs: -1,
	}
	if r.ReadBytes > 0 {
		r.Phase, r.MapTotal = "rewrite", r.MapBytes
	}
	done, total := r.MapBytes+r.ReadBytes, r.MapTotal+r.ReadTotal
	if elapsed > 0 && done > 0 {
		r.BytesPerSecond = float64(done) / elapsed.Seconds()
		r.RemainingMs = int64(float64(max(total-done, 0)) / r.BytesPerSecond * 1000)
	}
	return r
}

// Done is the part that is done, 0 to 1.
func (r *ProgressReport) Done() float64 {
	total := r.MapTotal + r.ReadTotal
	if total == 0 {
		return 0
	}
	return min(float64(r.MapBytes+r.ReadBytes)/float64(total), 1)
}
