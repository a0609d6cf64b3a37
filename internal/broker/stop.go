package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A part is what has started, and how it stops.
type part struct {
	name string
	stop func(context.Context) error
	logs bool // the log directories, which get all the time that is left
}

// stopTimeout bounds the stop of a broker that did not get to run.
const stopTimeout = 10 * time.Second

// onStop adds the way to stop a part that has just started.
func (b *Broker) onStop(name string, stop func(context.Context) error) {
	b.started = append(b.started, part{name: name, stop: stop})
}

// stop stops every part, the last one first. When ctx has a deadline each gets a share of the time, and
// one that hangs, as on a disk that does not answer, is left behind: what the logs have not
// written by the end the next start recovers.
func (b *Broker) stop(ctx context.Context) error {
	if b.logs != nil {
		b.logs.Halt() // so that nobody who is stopped before them has thousands to create
	}
	var errs []error
	for len(b.started) > 0 {
		last := len(b.started) - 1
		errs = append(errs, b.started[last].stopWithin(ctx))
		b.started = b.started[:last]
	}
	return errors.Join(errs...)
}

// stopWithin stops a part and waits for it, but not for ever.
func (p *part) stopWithin(ctx context.Context) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return p.stop(ctx)
	}
	soft, hard := p.share(time.Until(deadline))
	within, cancel := context.WithTimeout(ctx, soft)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.stop(within) }()
	select {
	case err := <-done:
		return err
	case <-time.After(hard):
		return fmt.Errorf("%w: %s did not stop", context.DeadlineExceeded, p.name)
	}
}

// share is how much of the time that is left a part gets until it is told to end, and until it is left
// behind.
func (p *part) share(left time.Duration) (soft, hard time.Duration) {
	left = max(left, 0)
	if p.logs {
		return left * 4 / 5, left * 19 / 20
	}
	return left / 5, left / 4
}
