package broker

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A lifecycle is this broker as the controller of several sees it: its heartbeats keep it in service, ask to be put
// into service, and to stop. (Kafka class BrokerLifecycleManager.)
type lifecycle struct {
	heartbeat func(context.Context, controller.Heartbeat) (controller.HeartbeatAnswer, error)
	image     func() *metadata.Image
	broker    int32
	epoch     int64
	interval  time.Duration // broker.heartbeat.interval.ms
	timeout   time.Duration // of one heartbeat
	logger    *slog.Logger

	turn   chan struct{} // holds one: heartbeats go one at a time
	wake   chan struct{} // holds one: do not wait for the interval
	cancel context.CancelFunc
	ended  sync.WaitGroup

	// mu guards what the next heartbeat says and what the last one was answered.
	mu struct {
		sync.Mutex
		ready    bool // to serve
		stopping bool
		offline  []uuid.UUID // all so far
		cordoned []uuid.UUID // nil: nobody has said
		answer   controller.HeartbeatAnswer
		failing  bool // the last one had no answer
	}
	changed chan struct{} // holds one: there is an answer
}

// start begins to send heartbeats, until close. The broker is not ready yet.
func (l *lifecycle) start() {
	l.turn, l.wake, l.changed = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	l.turn <- struct{}{}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.ended.Go(func() { l.run(ctx) })
}

func (l *lifecycle) close(context.Context) error {
	l.cancel()
	l.ended.Wait()
	return nil
}

func (l *lifecycle) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.wake:
		}
		if err := l.beat(ctx); ctx.Err() == nil {
			l.note(err)
		}
		timer.Reset(l.interval)
	}
}

// note logs when heartbeats begin or cease to be answered.
func (l *lifecycle) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failing := err != nil; failing != l.mu.failing {
		l.mu.failing = failing
		if failing {
			l.logger.Warn("the controller does not answer heartbeats", "err", err)
		} else {
			l.logger.Info("the controller answers heartbeats again")
		}
	}
}

// beat sends a heartbeat.
func (l *lifecycle) beat(ctx context.Context) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.turn <- struct{}{} }()
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	a, err := l.heartbeat(ctx, l.next())
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.mu.answer = a
	l.mu.Unlock()
	signal(l.changed)
	return nil
}

// next is what there is to say.
func (l *lifecycle) next() controller.Heartbeat {
	img := l.image()
	l.mu.Lock()
	defer l.mu.Unlock()
	h := controller.Heartbeat{
		Broker: l.broker, BrokerEpoch: l.epoch, MetadataOffset: img.Offset, WantFence: !l.mu.ready, WantShutdown: l.mu.stopping,
		OfflineDirs: slices.Clone(l.mu.offline),
	}
	if metadata.TellsCordoned(img.Feature(metadata.MetadataVersion)) {
		h.CordonedDirs = slices.Clone(l.mu.cordoned)
	}
	return h
}

// signal fills a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// serve asks for service and waits until the controller has given it.
func (l *lifecycle) serve(ctx context.Context) error {
	l.mu.Lock()
	l.mu.ready = true
	l.mu.Unlock()
	return l.await(ctx, math.MaxInt64, func(a controller.HeartbeatAnswer) bool { return !a.Fenced })
}

// shutDown asks to stop and waits until the controller says so: then others lead what this broker led. Where nobody
// answers, as when a whole cluster stops, it does not wait for long.
func (l *lifecycle) shutDown(ctx context.Context) error {
	l.mu.Lock()
	l.mu.stopping = true
	l.mu.Unlock()
	return l.await(ctx, unansweredMax, func(a controller.HeartbeatAnswer) bool { return a.Shutdown })
}

const (
	// askPause is waited for between heartbeats while the broker waits for an answer to act on.
	askPause = 20 * time.Millisecond
	// unansweredMax is how long a broker that stops waits for the controller to say anything.
	unansweredMax = 3 * time.Second
)

var errUnanswered = errors.New("the controller does not answer")

// await waits for an answer, and each time for no longer than silence.
func (l *lifecycle) await(ctx context.Context, silence time.Duration, done func(controller.HeartbeatAnswer) bool) error {
	for {
		signal(l.wake)
		select {
		case <-l.changed:
		case <-time.After(silence):
			return errUnanswered
		case <-ctx.Done():
			return ctx.Err()
		}
		l.mu.Lock()
		a := l.mu.answer
		l.mu.Unlock()
		if done(a) {
			return nil
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// directoriesOffline tells the controller of failed log directories.
func (l *lifecycle) directoriesOffline(ctx context.Context, dirs []uuid.UUID) error {
	l.mu.Lock()
	for _, dir := range dirs {
		if !slices.Contains(l.mu.offline, dir) {
			l.mu.offline = append(l.mu.offline, dir)
		}
	}
	l.mu.Unlock()
	return l.beat(ctx)
}

// cordonDirectories tells the controller which log directories take no new replicas.
func (l *lifecycle) cordonDirectories(ctx context.Context, dirs []uuid.UUID) error {
	l.mu.Lock()
	l.mu.cordoned = append([]uuid.UUID{}, dirs...)
	l.mu.Unlock()
	return l.beat(ctx)
}
