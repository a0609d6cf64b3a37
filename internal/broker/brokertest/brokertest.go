// Package brokertest starts brokers for the tests of packages that a broker is made of. Package broker
// imports those, so that only their external tests can import this one.
package brokertest

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/gregor-kafka/gregor/internal/broker"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/vfs"
)

// Start starts node 1 on a file system and a free port, with log directories below data. It lives as long as the
// test, unless stop is called, which returns what Close does.
func Start(tb testing.TB, fsys vfs.FS, settings ...string) (b *broker.Broker, stop func() error) {
	tb.Helper()
	c, warnings, err := config.Parse(nil, "", append([]string{"node.id=1", "log.dirs=data", "listeners=PLAINTEXT://127.0.0.1:0"}, settings...))
	if err != nil || len(warnings) > 0 {
		tb.Fatal(err, warnings)
	}
	b, err = broker.Start(tb.Context(), broker.Options{Config: c, Logger: slog.New(slog.DiscardHandler), World: broker.World{FS: fsys}})
	if err != nil {
		tb.Fatal(err)
	}
	stopped := false
	stop = func() error {
		stopped = true
		return b.Close(context.Background())
	}
	tb.Cleanup(func() {
		if stopped {
			return
		}
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return b, stop
}

// Commit commits records to the metadata, decided by nobody, and waits until the broker has applied them.
func Commit(tb testing.TB, b *broker.Broker, records ...metadata.Record) {
	tb.Helper()
	q, err := b.Quorum(), quorum.ErrStale
	for errors.Is(err, quorum.ErrStale) { // the broker changes the metadata, too
		var wait func(context.Context) error
		if wait, err = q.Propose(tb.Context(), q.Tail(), records); err == nil {
			err = wait(tb.Context())
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
}
