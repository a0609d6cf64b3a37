package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// connect makes a client of a cluster that answers: a client alone would wait for one for
// ever.
func connect(ctx context.Context, brokers []string, opts ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(brokers...))...)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("no broker answers at %s: %w", strings.Join(brokers, ", "), err)
	}
	return client, nil
}
