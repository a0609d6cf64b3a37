package faultdir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/internal/broker"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/vfs"
)

// A server is a broker on a file system in memory.
type server struct {
	fs     *vfs.Mem
	dirs   []string
	broker *broker.Broker
	log    *warnings
}

// errHangs: the time for a step is over.
var errHangs = errors.New("hangs")

// settings keep a broker from changing on its own what is in a directory.
var settings = []string{
	"listeners=PLAINTEXT://127.0.0.1:0", "advertised.listeners=PLAINTEXT://127.0.0.1:9092", "log.retention.ms=-1", "log.cleaner.enable=false",
	"offsets.retention.minutes=2147483647", "producer.id.expiration.ms=2147483647", "group.initial.rebalance.delay.ms=0",
	"auto.create.topics.enable=false",
}

// start starts a broker. It returns errHangs with all stacks when that takes longer than limit.
func start(fs *vfs.Mem, dirs, set []string, limit time.Duration) (*server, error) {
	all := append([]string{"log.dirs=" + strings.Join(dirs, ",")}, settings...)
	c, _, err := config.Parse(nil, "", append(all, set...))
	if err != nil {
		return nil, err
	}
	s := &server{fs: fs, dirs: dirs, log: &warnings{}}
	err = within(limit, func(ctx context.Context) (err error) {
		s.broker, err = broker.Start(ctx, broker.Options{Config: c, Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn})), World: broker.World{FS: fs}})
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// within runs f, and gives up on it after limit.
func within(limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit + time.Second):
		stacks := make([]byte, 256<<10)
		return fmt.Errorf("%w: %s", errHangs, stacks[:runtime.Stack(stacks, true)])
	}
}

// stop stops the broker.
func (s *server) stop(limit time.Duration) error { return within(limit, s.broker.Close) }

// tree is what a kill at this moment would leave.
func (s *server) tree() (*Tree, error) { return ReadTree(s.fs, s.dirs...) }

// connect returns a client that has until limit.
func (s *server) connect(limit time.Duration) (*client, error) {
	return dial(s.broker.Addr(), time.Now().Add(limit))
}
