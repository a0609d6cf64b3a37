package client

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/gregor-kafka/gregor/internal/human"
)

// progressInterval is how often a terminal gets a new progress line.
const progressInterval = 500 * time.Millisecond

// A Progress counts records and bytes and, when it has somewhere to write, keeps one
// line there up to date. The zero value counts in silence. Add may be called from any
// goroutine.
type Progress struct {
	verb    string
	out     io.Writer
	started time.Time
	records atomic.Int64
	bytes   atomic.Int64
	stop    chan struct{}
	stopped chan struct{}
}

// StartProgress begins to report to out, which is nil for no report. The caller ends
// it with Stop.
func StartProgress(verb string, out io.Writer) *Progress {
	p := &Progress{verb: verb, out: out, started: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.run()
	return p
}

// Add counts one record of size bytes.
func (p *Progress) Add(size int) {
	p.records.Add(1)
	p.bytes.Add(int64(size))
}

// Records is the count so far.
func (p *Progress) Records() int64 { return p.records.Load() }

// Stop writes the last line and waits for the reporting goroutine.
func (p *Progress) Stop() {
	close(p.stop)
	<-p.stopped
	if p.out != nil {
		fmt.Fprintf(p.out, "\r%s\n", p.line(time.Since(p.started)))
	}
}

func (p *Progress) run() {
	defer close(p.stopped)
	if p.out == nil {
		return
	}
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			fmt.Fprintf(p.out, "\r%s", p.line(time.Since(p.started)))
		}
	}
}

func (p *Progress) line(elapsed time.Duration) string {
	records, bytes := p.records.Load(), p.bytes.Load()
	seconds := max(elapsed.Seconds(), 0.001)
	return fmt.Sprintf("%s %d records, %s, %.0f records/s, %s/s   ", p.verb, records, human.Bytes(bytes),
		float64(records)/seconds, human.Bytes(int64(float64(bytes)/seconds)))
}
