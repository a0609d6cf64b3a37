package controller

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/random"
)

// A Quorum commits records. *quorum.Quorum is one.
type Quorum interface {
	// Tail returns the metadata with all that was proposed, committed or not.
	Tail() quorum.Tail
	// Propose proposes records that were decided on a Tail; wait returns when they are committed
	// and published, or, without records, when what the Tail holds is. ErrStale says that the Tail
	// is not the newest any more.
	Propose(ctx context.Context, t quorum.Tail, records []metadata.Record) (wait func(context.Context) error, err error)
}

// Options are what a Controller is made of.
type Options struct {
	Quorum Quorum
	Rules  Rules
	Random io.Reader        // nil is the host's; never fails
	Now    func() time.Time // time.Now when nil

	// Leads reports whether this controller is the active one; nil: it always is.
	Leads func() bool

	// SessionTimeout is how long a broker that is not heard of stays in service (broker.session.timeout.ms). 0
	// is for the only node of a cluster: its broker is in service from its registration on.
	SessionTimeout time.Duration
}

// Rules are the configuration's part in decisions. The functions must not call the Controller.
type Rules struct {
	// TopicDefaults returns the partition count and replication factor of topics that leave
	// them open (num.partitions, default.replication.factor).
	TopicDefaults func() (partitions int32, replicationFactor int16)

	// ValidateConfigs checks the whole set of configurations that a resource would have. Its
	// error is the client's message, its kind InvalidConfig unless it is an *Error. nil
	// accepts everything.
	ValidateConfigs func(r metadata.ConfigResource, configs map[string]string) error

	// ListConfig reports whether a key has list type, and its value where none is set. nil
	// says that no key has.
	ListConfig func(r metadata.ConfigResource, key string) (value string, isList bool)
}

// given is all that a decision knows of the world besides the Image and the request: if all three are
// the same, so are the records, byte for byte.
type given struct {
	Rules
	now        time.Time
	random     *seed // of all that is random in the decision
	nextOffset int64 // of the first record that it makes
	epoch      int32 // of this node's leadership
}

// source returns the randomness of the decision, from its beginning.
func (g *given) source() *rand.ChaCha8 { return rand.NewChaCha8(g.random.get()) }

// A seed is drawn when it is needed for the first time, so that decisions without randomness take none
// away from others.
type seed struct {
	stream io.Reader // nil: it was drawn
	bytes  [32]byte
}

func (s *seed) get() [32]byte {
	if s.stream != nil {
		random.Fill(s.stream, s.bytes[:])
		s.stream = nil
	}
	return s.bytes
}

// A Controller takes one decision after the other, on a goroutine of its own, each on the metadata
// with all that was proposed before: it does not wait for their commit. An answer leaves when its
// records are committed and published. The methods may be called concurrently. An error that is not
// an *Error, or that is a NotController, is the quorum's: the request may or may not have been committed.
type Controller struct {
	opts     Options
	events   chan func() // decisions to take
	sessions *sessions   // of the goroutine that decides

	stop  context.Context // over after Close
	close context.CancelFunc
	ended chan struct{} // closed when the goroutine has gone
}

// New returns a Controller that works until Close.
func New(o Options) *Controller {
	if o.Rules.TopicDefaults == nil {
		o.Rules.TopicDefaults = func() (int32, int16) { return 1, 1 }
	}
	if o.Rules.ValidateConfigs == nil {
		o.Rules.ValidateConfigs = func(metadata.ConfigResource, map[string]string) error { return nil }
	}
	if o.Rules.ListConfig == nil {
		o.Rules.ListConfig = func(metadata.ConfigResource, string) (string, bool) { return "", false }
	}
	if o.Random == nil {
		o.Random = random.Host("decisions")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	c := &Controller{opts: o, events: make(chan func()), ended: make(chan struct{}), sessions: newSessions(o.SessionTimeout)}
	c.stop, c.close = context.WithCancel(context.Background())
	go c.run()
	return c
}

// run takes the decisions in the order in which they come, and looks for brokers that are not heard of.
func (c *Controller) run() {
	defer close(c.ended)
	var look <-chan time.Time
	if c.sessions != nil {
		ticker := time.NewTicker(c.opts.SessionTimeout / looksPerSession)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case take := <-c.events:
			take()
		case <-look:
			if c.opts.Leads() {
				c.fenceSilent()
			}
		case <-c.stop.Done():
			return
		}
	}
}

// Close refuses requests from now on. Those that were decided are answered when they are committed.
func (c *Controller) Close() {
	c.close()
	<-c.ended
}

// give asks the world what the next decision is given.
func (c *Controller) give(t quorum.Tail) given {
	return given{Rules: c.opts.Rules, now: c.opts.Now(), nextOffset: t.NextOffset, epoch: t.Epoch, random: &seed{stream: c.opts.Random}}
}

// A decision makes records and an answer of an image. It changes nothing, not even its request: it is
// taken again when what it was built on comes to nothing.
type decision[A any] func(*metadata.Image, given) ([]metadata.Record, A, error)

// A verdict is a decision that was taken and proposed. Its answer counts when wait says so.
type verdict[A any] struct {
	answer  A
	refused error
	wait    func(context.Context) error
	err     error // it could not be proposed
}

// decide queues a decision and returns its answer when its records are committed, unless it is only
// to be validated.
func decide[A any](ctx context.Context, c *Controller, validateOnly bool, d decision[A]) (answer A, err error) {
	taken := make(chan verdict[A], 1)
	select {
	case c.events <- func() { taken <- take(ctx, c, validateOnly, d) }:
	case <-ctx.Done():
		return answer, ctx.Err()
	case <-c.stop.Done():
		return answer, notController(quorum.ErrClosed)
	}
	v := <-taken
	if err := v.err; err != nil {
		return answer, notController(err)
	}
	if err := v.wait(ctx); err != nil {
		return answer, notController(err)
	}
	return v.answer, v.refused
}

// take takes a decision on the newest metadata. A refusal is because of that metadata, so it waits for
// its commit, too.
func take[A any](ctx context.Context, c *Controller, validateOnly bool, d decision[A]) (v verdict[A]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)()
	for {
		if v.err = ctx.Err(); v.err != nil {
			return v
		}
		var records []metadata.Record
		tail := c.opts.Quorum.Tail()
		records, v.answer, v.refused = d(tail.Image, c.give(tail))
		if validateOnly || v.refused != nil {
			records = nil
		}
		if v.wait, v.err = c.opts.Quorum.Propose(ctx, tail, records); !errors.Is(v.err, quorum.ErrStale) {
			return v
		}
	}
}

// notController makes a refusal of the errors that mean that another node decides, or nobody here.
func notController(err error) error {
	if errors.Is(err, quorum.ErrNotLeader) || errors.Is(err, quorum.ErrClosed) {
		return refuse(NotController, "%v", err)
	}
	return err
}

// change is decide without an answer.
func (c *Controller) change(ctx context.Context, d func(*metadata.Image) ([]metadata.Record, error)) error {
	_, err := decide(ctx, c, false, func(img *metadata.Image, _ given) ([]metadata.Record, struct{}, error) {
		records, err := d(img)
		return records, struct{}{}, err
	})
	return err
}

// recordsMax bounds what one request may change, as Kafka does (MAX_PARTITIONS_PER_BATCH,
// MAX_RECORDS_PER_USER_OP).
const recordsMax = 10000

func tooMany() error {
	return refuse(PolicyViolation, "one request would write more than %d metadata records: ask for less at a time", recordsMax)
}
