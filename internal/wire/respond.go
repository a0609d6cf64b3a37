package wire

// enqueue hands the current answer to the responder, because it waits for something or
// stands behind one that does.
func (c *Conn) enqueue() error {
	if err := c.out.Flush(); err != nil {
		return err
	}
	if c.out.deferred == nil {
		c.out.end()
	}
	w := c.out
	c.out = Response{flush: w.flush}
	w.flush = nil
	if c.queue == nil {
		c.queue, c.done = make(chan *Response, deferredMax), make(chan struct{})
		go (&responder{c: c}).run()
	}
	c.queued.Add(1)
	c.queue <- &w
	return nil
}

// A responder finishes and sends the answers of a connection's queue, in order. It ends
// when the queue is closed; Conn.serve waits for that.
type responder struct {
	c      *Conn
	held   *Response // finished, not sent yet
	merged int32     // how many answers are in held
}

func (r *responder) run() {
	defer close(r.c.done)
	for w := range r.c.queue {
		if err := r.respond(w); err != nil {
			r.fail()
			return
		}
	}
}

// respond finishes w and sends it unless the next one may come along.
func (r *responder) respond(w *Response) error {
	if w.deferred != nil {
		if r.held != nil {
			if err := r.send(); err != nil {
				w.release()
				return err
			}
		}
		if err := w.deferred.Finish(r.c.ctx, w); err != nil {
			w.release()
			return err
		}
		w.end()
	}
	r.hold(w)
	if len(r.c.queue) == 0 || len(r.held.Buf) >= flushSize {
		return r.send()
	}
	return nil
}

func (r *responder) hold(w *Response) {
	r.merged++
	if r.held == nil {
		r.held = w
		return
	}
	r.held.append(w)
}

func (r *responder) send() error {
	err := r.c.send(r.held, len(r.held.Buf))
	r.held.release()
	r.c.queued.Add(-r.merged)
	r.held, r.merged = nil, 0
	return err
}

// fail ends the connection: its reading goroutine finds it closed. What is still queued,
// and what that goroutine was about to queue, is dropped.
func (r *responder) fail() {
	r.c.cancel()
	r.c.nc.Close()
	if r.held != nil {
		r.held.release()
	}
	for w := range r.c.queue {
		w.release()
	}
}
