package cleaner

import "time"

// Stats are what metrics are made of. Ratios are 0 to 1.
type Stats struct {
	Threads     []ThreadStats
	DeadThreads int // configured and not alive (DeadThreadCount)

	// Of the last cleaning of each thread, as in Kafka, and the last that somebody asked for.
	RecopyRatio    float64       // bytes written for each byte read (cleaner-recopy-percent)
	MaxCleanTime   time.Duration // max-clean-time-secs
	MaxUtilization float64       // of the offset map (max-buffer-utilization-percent)

	// Of the last look at all logs.
	MaxDirtyRatio      float64       // max-dirty-percent
	MaxCompactionDelay time.Duration // beyond max.compaction.lag.ms (max-compaction-delay-secs)
	Skipped            map[Skip]int  // compacted logs that were not due
	Next               *NextReport   // what was chosen; nil for nothing

	SinceLastChoice time.Duration // negative: there was none (time-since-last-run-ms)

	Uncleanable      map[string]int   // partitions, by directory (uncleanable-partitions-count)
	UncleanableBytes map[string]int64 // what is dirty in them

	Totals Totals
}

// ThreadStats describe one thread.
type ThreadStats struct {
	Alive     bool
	Partition string // "" while it waits
	Progress  ProgressReport
}

// Stats returns a snapshot. It may read timestamps of segments of uncleanable logs.
func (m *Manager) Stats() Stats {
	now := m.now()
	m.mu.Lock()
	s := Stats{
		Totals: m.mu.totals, MaxDirtyRatio: m.mu.lastChoice.dirtiest, MaxCompactionDelay: m.mu.lastChoice.overdue,
		Skipped: m.mu.lastChoice.skipped, SinceLastChoice: -1, Uncleanable: make(map[string]int), UncleanableBytes: make(map[string]int64),
	}
	if best := m.mu.lastChoice.best; best != nil {
		s.Next = &NextReport{best.partition().String(), best.ratio, best.must}
	}
	if at := m.mu.lastChoice.at; !at.IsZero() {
		s.SinceLastChoice = now.Sub(at)
	}
	for dir, partitions := range m.mu.uncleanable {
		s.Uncleanable[dir] = len(partitions)
	}
	pool, last := m.mu.pool, []*Outcome{m.mu.lastForced}
	m.mu.Unlock()
	if pool != nil {
		s.addThreads(pool, now)
		for _, t := range pool.threads {
			last = append(last, t.last.Load())
		}
	}
	s.addOutcomes(last)
	m.addUncleanable(&s, now)
	return s
}

func (s *Stats) addThreads(p *pool, now time.Time) {
	for _, t := range p.threads {
		stats := ThreadStats{Alive: t.alive.Load()}
		if c := t.atWork.Load(); c != nil {
			stats.Partition, stats.Progress = c.log.Partition().String(), c.report(now)
		}
		if !stats.Alive {
			s.DeadThreads++
		}
		s.Threads = append(s.Threads, stats)
	}
}

// addOutcomes adds the last cleanings; nil stands for none.
func (s *Stats) addOutcomes(last []*Outcome) {
	var read, written int64
	for _, out := range last {
		if out != nil {
			read += out.BytesRead
			written += out.BytesWritten
			s.MaxCleanTime = max(s.MaxCleanTime, time.Duration(out.TookMs)*time.Millisecond)
			s.MaxUtilization = max(s.MaxUtilization, out.MapUtilization)
		}
	}
	if read > 0 {
		s.RecopyRatio = float64(written) / float64(read)
	}
}

func (m *Manager) addUncleanable(s *Stats, now time.Time) {
	if len(s.Uncleanable) == 0 {
		return
	}
	for l, dir := range m.logs.Placed() {
		p := l.Partition()
		if m.uncleanable(dir, p) == nil {
			continue
		}
		config := l.Config()
		if a, err := assess(shapeOf(l), m.checkpoints.get(dir, p), &config, now); err == nil {
			s.UncleanableBytes[dir] += a.cleanableBytes
		}
	}
}
