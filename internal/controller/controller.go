package controller

import (
	"context"
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A Quorum commits records. *quorum.Quorum is one.
type Quorum interface {
	// Image returns the newest image. After a Propose it contains what was proposed.
	Image() *metadata.Image
	// Propose commits the records together and returns once they are applied.
	Propose(ctx context.Context, records []metadata.Record) (*metadata.Image, error)
	// NextOffset is the offset that the next proposed record gets, if nobody else proposes.
	NextOffset() int64
}

// Options are what a Controller is made of.
type Options struct {
	Quorum Quorum
	Rules  Rules
	Random io.Reader        // crypto/rand when nil; never fails
	Now    func() time.Time // time.Now when nil
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

// given is what a decision knows besides the Image and the request. It has nothing else of the
// world: the same of all three give the same records, byte for byte.
type given struct {
	Rules
	now        time.Time
	random     [32]byte // seed of all that is random in the decision
	nextOffset int64    // of the first record that it makes
}

// source returns the randomness of the decision, from its beginning.
func (g *given) source() *mathrand.ChaCha8 { return mathrand.NewChaCha8(g.random) }

// A Controller decides and commits, one request at a time. Its methods may be called
// concurrently. An error that is no *Error is the quorum's: the request may or may not have
// been committed.
type Controller struct {
	opts Options

	// mu is held from reading the Image until the records are applied: decisions build on
	// each other.
	mu sync.Mutex
}

// New returns a Controller.
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
		o.Random = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Controller{opts: o}
}

// give asks the world what the next decision is given.
func (c *Controller) give() given {
	g := given{Rules: c.opts.Rules, now: c.opts.Now(), nextOffset: c.opts.Quorum.NextOffset()}
	if _, err := io.ReadFull(c.opts.Random, g.random[:]); err != nil {
		panic("BUG: a source of randomness fails: " + err.Error())
	}
	return g
}

// A decision makes records and an answer of an image. It changes nothing, its request neither.
type decision[A any] func(*metadata.Image, given) ([]metadata.Record, A, error)

// decide commits what a decision makes of the newest image, unless it is only to be validated, and
// returns the answer.
func decide[A any](ctx context.Context, c *Controller, validateOnly bool, d decision[A]) (A, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	records, answer, err := d(c.opts.Quorum.Image(), c.give())
	if err != nil || validateOnly || len(records) == 0 {
		return answer, err
	}
	_, err = c.opts.Quorum.Propose(ctx, records)
	return answer, err
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
