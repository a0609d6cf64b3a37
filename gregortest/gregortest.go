// Package gregortest runs real Kafka brokers inside a Go test.
//
// NewBroker starts one on a free port, with its data in the test's temporary directory, stopped and
// removed with the test:
//
//	func TestOrders(t *testing.T) {
//		b := gregortest.NewBroker(t)
//		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
//		...
//	}
//
// NewCluster starts brokers on disks and a network in memory. They can be killed, their disks can
// crash, and in a bubble of testing/synctest all of it goes by the bubble's time: a test of a client
// that has to survive a night of failures takes milliseconds. Clients reach such brokers with
// kgo.Dialer(cluster.Dial).
//
// Two bubbles of a process may not run at the same time when brokers in them compress with zstd, whose coders are
// shared: tests of clusters in bubbles do not call t.Parallel then.
package gregortest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor"
	"github.com/gregor-kafka/gregor/internal/random"
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

// Seed makes all that is random in the brokers of a cluster come from a number: a test that does the
// same again in a bubble of testing/synctest meets the same ids and the same choices. Of several brokers it
// does not say which one is elected to decide.
func Seed(seed uint64) Option {
	source := random.NewSeeded(seed)
	return func(o *gregor.Options) { o.Random = source.Stream }
}

// NewBroker starts a broker that lives as long as the test. Its warnings go to the test's
// log. Tests of groups want no waiting for more members: group.initial.rebalance.delay.ms
// is 0 here unless an option sets it.
func NewBroker(tb testing.TB, options ...Option) *gregor.Broker {
	tb.Helper()
	o := defaults(tb)
	o.DataDir, o.Listen = tb.TempDir(), "127.0.0.1:0"
	for _, option := range options {
		option(&o)
	}
	b, err := gregor.Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := closeBroker(b); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// defaults are what all brokers of tests have.
func defaults(tb testing.TB) gregor.Options {
	return gregor.Options{
		Set:    []string{"group.initial.rebalance.delay.ms=0"},
		Logger: slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

func closeBroker(b *gregor.Broker) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return b.Close(ctx)
}
