// Package gregortest runs a real Kafka broker inside a Go test: on a free port, with its
// data in the test's temporary directory, stopped and removed with the test.
//
//	func TestOrders(t *testing.T) {
//		b := gregortest.NewBroker(t)
//		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
//		...
//	}
package gregortest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor"
)

// closeTimeout bounds the stop at the end of a test.
const closeTimeout = 30 * time.Second

// An Option changes the broker of a test.
type Option func(*gregor.Options)

// Set sets a key of server.properties, as "key=value".
func Set(keyValue string) Option {
	return func(o *gregor.Options) { o.Set = append(o.Set, keyValue) }
}

// DataDir keeps the data in dir instead of a temporary directory, for tests that restart.
func DataDir(dir string) Option {
	return func(o *gregor.Options) { o.DataDir = dir }
}

// NewBroker starts a broker that lives as long as the test. Its warnings go to the test's
// log. Tests of groups want no waiting for more members: group.initial.rebalance.delay.ms
// is 0 here unless an option sets it.
func NewBroker(tb testing.TB, options ...Option) *gregor.Broker {
	tb.Helper()
	o := gregor.Options{
		DataDir: tb.TempDir(),
		Listen:  "127.0.0.1:0",
		Set:     []string{"group.initial.rebalance.delay.ms=0"},
		Logger:  slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, option := range options {
		option(&o)
	}
	b, err := gregor.Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return b
}
