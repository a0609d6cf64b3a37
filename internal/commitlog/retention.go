package commitlog

import "time"

// A stretch is what retention must know about one segment.
type stretch struct {
	base, end int64 // offsets [base, end): end is the next segment's base, or the log end
	size      int64
	largest   int64 // largest timestamp, or the file's time if it has none, in ms
	last      bool  // the active segment
}

// expired returns how many of the oldest segments the log must give up, and the first
// rule that said so. Rules run in Kafka's order (doc/format.md 5.8) and each stops at
// the first segment that it keeps. No segment goes that reaches above the high watermark,
// nor an empty active one.
func expired(segments []stretch, c *Config, logStart, highWatermark int64, now time.Time) (count int, reason string) {
	deletable := func(s stretch) bool {
		return s.end <= highWatermark && !(s.last && s.size == 0)
	}
	for count < len(segments) && !segments[count].last && segments[count].end <= logStart && deletable(segments[count]) {
		count, reason = count+1, "log start offset"
	}
	if !c.Delete {
		return count, reason
	}
	if n := beyondSize(segments[count:], c.RetentionBytes, deletable); n > 0 {
		count, reason = count+n, "retention.bytes"
	}
	if n := beyondTime(segments[count:], c.RetentionMs, now, deletable); n > 0 {
		count, reason = count+n, "retention.ms"
	}
	return count, reason
}

// beyondSize counts segments so that what remains is still at least limit bytes.
func beyondSize(segments []stretch, limit int64, deletable func(stretch) bool) (count int) {
	if limit < 0 {
		return 0
	}
	surplus := -limit
	for _, s := range segments {
		surplus += s.size
	}
	if surplus < 0 {
		return 0
	}
	for _, s := range segments {
		if surplus -= s.size; surplus < 0 || !deletable(s) {
			break
		}
		count++
	}
	return count
}

// beyondTime counts segments whose newest record is too old. A timestamp in the future
// keeps its segment and all behind it.
func beyondTime(segments []stretch, retentionMs int64, now time.Time, deletable func(stretch) bool) (count int) {
	if retentionMs < 0 {
		return 0
	}
	for _, s := range segments {
		if now.UnixMilli()-s.largest <= retentionMs || !deletable(s) {
			break
		}
		count++
	}
	return count
}
