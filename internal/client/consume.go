package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// endIdleMax is how long a consumer on its way to the end waits for the next record.
const endIdleMax = 3 * time.Second

// endFetchMax is how long the broker may hold an answer back meanwhile.
const endFetchMax = 500 * time.Millisecond

// A partition that cannot be read for the moment is asked again after retryPause; on the way to the
// end, or if the topic may be gone, retriesMax times.
const (
	retryPause = 250 * time.Millisecond
	retriesMax = int(endIdleMax / retryPause)
)

// ConsumeOptions say what is read and how it is written.
type ConsumeOptions struct {
	Brokers       []string
	Topic         string
	Partition     int32 // -1: all
	From          Start
	ToEnd         bool   // stop where the log ended when the command started
	Count         int64  // stop after so many records; 0: no limit
	Group         string // join this consumer group and commit what was written
	ReadCommitted bool
	Format        *Format // nil: one line of JSON each
	Progress      io.Writer
	Warnings      io.Writer // gets a line for all damage that is passed by
}

// Consume writes records to out until a limit of the options is reached or ctx ends,
// which is no error, and returns how many it wrote. Offsets that the broker finds damaged are passed
// by and named; the error then matches ErrDamaged.
func Consume(ctx context.Context, o ConsumeOptions, out io.Writer) (int64, error) {
	c := consumer{o: o, out: bufio.NewWriterSize(out, 64<<10), next: map[int32]int64{}}
	if err := c.open(ctx); err != nil {
		return 0, err
	}
	defer c.client.Close()
	c.progress = StartProgress("consumed", o.Progress)
	defer c.progress.Stop()
	err := c.run(ctx)
	if err == nil && c.damaged {
		err = ErrDamaged
	}
	return c.progress.Records(), err
}

// open makes a client that stands at the asked positions.
func (c *consumer) open(ctx context.Context) (err error) {
	o := c.o
	// A damaged offset is an error that clients repeat for ever, unless they get to see those.
	opts := []kgo.Opt{kgo.KeepControlRecords(), kgo.KeepRetryableFetchErrors()}
	if o.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.ToEnd { // a fetch may be under way, and wait, for the partitions that the client knew first
		opts = append(opts, kgo.FetchMaxWait(endFetchMax))
	}
	if o.Group != "" {
		opts = append(opts, kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(o.From.reset()))
	}
	if c.client, err = connect(ctx, o.Brokers, opts...); err != nil || o.Group != "" {
		return err
	}
	starts, ends, err := o.positions(ctx, kadm.NewClient(c.client))
	if err != nil {
		c.client.Close()
		return err
	}
	for p, start := range starts {
		c.next[p] = start.EpochOffset().Offset
	}
	c.ends = ends
	c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: starts})
	return nil
}

// positions asks the broker where to start, and where to stop if that was asked for: the log end of
// each partition with something to read, or nil.
func (o ConsumeOptions) positions(ctx context.Context, admin *kadm.Client) (map[int32]kgo.Offset, map[int32]int64, error) {
	earliest, err := o.listed(admin.ListStartOffsets(ctx, o.Topic))
	if err != nil {
		return nil, nil, err
	}
	latest, err := o.listed(o.listEnds(ctx, admin))
	if err != nil {
		return nil, nil, err
	}
	at, err := o.listed(o.From.list(ctx, admin, o.Topic))
	if err != nil {
		return nil, nil, err
	}
	starts, ends := map[int32]kgo.Offset{}, map[int32]int64{}
	for p := range earliest {
		start := o.From.in(earliest[p], latest[p], at[p])
		starts[p] = kgo.NewOffset().At(start)
		if start < latest[p] {
			ends[p] = latest[p]
		}
	}
	if !o.ToEnd {
		ends = nil
	}
	return starts, ends, nil
}

func (o ConsumeOptions) listEnds(ctx context.Context, admin *kadm.Client) (kadm.ListedOffsets, error) {
	if o.ReadCommitted {
		return admin.ListCommittedOffsets(ctx, o.Topic)
	}
	return admin.ListEndOffsets(ctx, o.Topic)
}

// listed reduces an answer to the partitions that are asked for.
func (o ConsumeOptions) listed(l kadm.ListedOffsets, err error) (map[int32]int64, error) {
	if err == nil {
		err = l.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", o.Topic, err)
	}
	offsets := map[int32]int64{}
	for _, p := range l[o.Topic] {
		if o.Partition < 0 || p.Partition == o.Partition {
			offsets[p.Partition] = p.Offset
		}
	}
	if len(offsets) == 0 && l != nil {
		return nil, fmt.Errorf("topic %s has no partition %d", o.Topic, o.Partition)
	}
	return offsets, nil
}

type consumer struct {
	o        ConsumeOptions
	client   *kgo.Client
	ends     map[int32]int64 // where to stop, nil if the end does not matter
	next     map[int32]int64 // offset behind the last record of each partition
	damaged  bool            // something was passed by
	retries  int             // since the last record
	out      *bufio.Writer
	progress *Progress
}

func (c *consumer) run(ctx context.Context) error {
	for !c.finished() {
		fetches := c.poll(ctx)
		if ctx.Err() != nil || c.o.ToEnd && fetches.IsClientClosed() {
			return c.out.Flush()
		}
		written, err := c.writeAll(fetches)
		if err == nil {
			err = c.out.Flush()
		}
		if err == nil && c.o.Group != "" {
			err = c.client.CommitRecords(ctx, written...)
		}
		if err == nil && !c.finished() {
			err = c.failures(ctx, fetches.Errors())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// failures goes on behind damage, and tries again what can be over in a moment.
func (c *consumer) failures(ctx context.Context, list []kgo.FetchError) error {
	again := false
	for _, e := range list {
		err := e.Err
		switch {
		case errors.Is(err, kerr.CorruptMessage):
			err = c.passBy(ctx, e.Partition)
		case kerr.IsRetriable(err) && (c.retries < retriesMax || !c.o.ToEnd && !unknownTopic(err)):
			again, err = true, nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("topic %s partition %d: %w", e.Topic, e.Partition, err)
		}
	}
	if again {
		c.retries++
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	return nil
}

func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// poll waits for records. On the way to the end it gives up after a while without any:
// the last offsets of a compacted log may hold no record to wait for.
func (c *consumer) poll(ctx context.Context) kgo.Fetches {
	if !c.o.ToEnd {
		return c.client.PollFetches(ctx)
	}
	idle, cancel := context.WithTimeout(ctx, endIdleMax)
	defer cancel()
	fetches := c.client.PollFetches(idle)
	if idle.Err() != nil && fetches.NumRecords() == 0 {
		return kgo.NewErrFetch(kgo.ErrClientClosed)
	}
	return fetches
}

func (c *consumer) finished() bool {
	return c.o.Count > 0 && c.progress.Records() >= c.o.Count || c.o.ToEnd && c.o.Group == "" && len(c.ends) == 0
}

func (c *consumer) writeAll(fetches kgo.Fetches) ([]*kgo.Record, error) {
	var written []*kgo.Record
	for r := range fetches.RecordsAll() {
		c.retries = 0
		if c.o.Count > 0 && c.progress.Records() >= c.o.Count {
			break
		}
		if end, ok := c.ends[r.Partition]; c.o.ToEnd && (!ok || r.Offset >= end) {
			continue
		}
		if !r.Attrs.IsControl() {
			if err := c.write(r); err != nil {
				return nil, err
			}
		}
		written = append(written, r)
		c.next[r.Partition] = r.Offset + 1
		if r.Offset+1 >= c.ends[r.Partition] {
			delete(c.ends, r.Partition)
		}
	}
	return written, nil
}

func (c *consumer) write(r *kgo.Record) error {
	c.progress.Add(len(r.Key) + len(r.Value))
	if c.o.Format != nil {
		return c.o.Format.write(c.out, r)
	}
	line, err := json.Marshal(toJSON(r))
	if err != nil {
		return err
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}
