package metrics

import "time"

// A Stopwatch is the moment when something began. It reads one clock where time.Now reads two,
// which a request of a microsecond notices.
type Stopwatch time.Duration

var epoch = time.Now()

// StartStopwatch begins now.
func StartStopwatch() Stopwatch { return Stopwatch(time.Since(epoch)) }

// Elapsed returns the time since the beginning.
func (s Stopwatch) Elapsed() time.Duration { return time.Since(epoch) - time.Duration(s) }
