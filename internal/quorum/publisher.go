package quorum

import "github.com/gregor-kafka/gregor/internal/metadata"

// publisherQueue bounds what is committed and not yet published. raft applies no further when it is
// full.
const publisherQueue = 64

// A publisher works off what it is handed, one after the other, on a goroutine of its own: raft goes
// on while subscribers create logs.
type publisher struct {
	queue chan func()
	ended chan struct{} // closed when the goroutine has gone

	// Of the goroutine's own.
	subscribers []func(*metadata.Image, *metadata.Delta)
	over        bool
}

// A publication is a batch on its way to the subscribers.
type publication struct {
	done chan struct{} // closed when they have seen it, or never will
	err  error
}

func newPublisher() publisher {
	return publisher{queue: make(chan func(), publisherQueue), ended: make(chan struct{})}
}

// hand queues work. After close nothing comes of it.
func (p *publisher) hand(work func()) {
	select {
	case p.queue <- work:
	case <-p.ended:
	}
}

// flush waits until all is done that was handed before.
func (p *publisher) flush() {
	done := make(chan struct{})
	p.hand(func() { close(done) })
	select {
	case <-done:
	case <-p.ended:
	}
}

// run works until close.
func (p *publisher) run() {
	defer close(p.ended)
	for !p.over {
		work := <-p.queue
		work()
	}
}

// close waits until all is done that was handed before.
func (p *publisher) close() {
	p.hand(func() { p.over = true })
	<-p.ended
}

// tell calls the subscribers.
func (p *publisher) tell(img *metadata.Image, d *metadata.Delta) {
	for _, f := range p.subscribers {
		f(img, d)
	}
}
