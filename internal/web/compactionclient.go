package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/web/explain"
)

// Explain asks why records of a topic are kept and what will go.
func (c *Client) Explain(ctx context.Context, topicName string) (*explain.Report, error) {
	var r explain.Report
	if err := c.Get(ctx, "/explain/"+url.PathEscape(topicName), &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// CleanTarget finds the partitions that a name means: all of the topic of that name, or the one
// partition topic-number.
func (c *Client) CleanTarget(ctx context.Context, name string) ([]topic.Partition, error) {
	r, err := c.Explain(ctx, name)
	if s, ok := errors.AsType[*StatusError](err); ok && s.Status == http.StatusNotFound {
		if p, parseErr := topic.ParsePartition(name); parseErr == nil {
			return []topic.Partition{p}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	var list []topic.Partition
	for _, p := range r.Partitions {
		list = append(list, topic.Partition{Topic: name, Partition: p.Partition})
	}
	return list, nil
}

// progressInterval is how often a forced clean is asked how far it is.
const progressInterval = 500 * time.Millisecond

// Clean has a partition cleaned now, the active segment too with roll, and returns when it is.
// progress, if not nil, is told now and then how far it is, from one goroutine.
func (c *Client) Clean(ctx context.Context, p topic.Partition, roll bool, progress func(explain.Progress)) (*explain.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if progress != nil {
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			c.watch(ctx, p, progress)
		}()
		defer func() { cancel(); <-watching }()
	}
	var out explain.Outcome
	if err := c.Post(ctx, "/clean", CleanRequest{p.String(), roll}, &out); err != nil {
		return nil, fmt.Errorf("%v: %w", p, err)
	}
	return &out, nil
}

// watch tells how far a cleaning is until ctx ends. What cannot be asked is not told.
func (c *Client) watch(ctx context.Context, p topic.Partition, progress func(explain.Progress)) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r, err := c.Explain(ctx, p.Topic)
		if err != nil {
			continue
		}
		for _, q := range r.Partitions {
			if q.Partition == p.Partition && q.Progress != nil {
				progress(*q.Progress)
			}
		}
	}
}
