package controller

import (
	"context"
	"sync"

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

// Options are what decisions need to know besides the Image. The functions are called with
// the Controller's lock held and must not call it.
type Options struct {
	Quorum Quorum

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
	if o.TopicDefaults == nil {
		o.TopicDefaults = func() (int32, int16) { return 1, 1 }
	}
	if o.ValidateConfigs == nil {
		o.ValidateConfigs = func(metadata.ConfigResource, map[string]string) error { return nil }
	}
	if o.ListConfig == nil {
		o.ListConfig = func(metadata.ConfigResource, string) (string, bool) { return "", false }
	}
	return &Controller{opts: o}
}

// commitLocked proposes records unless there are none.
func (c *Controller) commitLocked(ctx context.Context, records []metadata.Record) error {
	if len(records) == 0 {
		return nil
	}
	_, err := c.opts.Quorum.Propose(ctx, records)
	return err
}

// commitDecision proposes what decide makes of the image as it is now.
func (c *Controller) commitDecision(ctx context.Context, decide func(*metadata.Image) ([]metadata.Record, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	records, err := decide(c.opts.Quorum.Image())
	if err != nil {
		return err
	}
	return c.commitLocked(ctx, records)
}

// recordsMax bounds what one request may change, as Kafka does (MAX_PARTITIONS_PER_BATCH,
// MAX_RECORDS_PER_USER_OP).
const recordsMax = 10000

func tooMany() error {
	return refuse(PolicyViolation, "one request would write more than %d metadata records: ask for less at a time", recordsMax)
}
