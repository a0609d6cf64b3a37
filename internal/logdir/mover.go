package logdir

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A mover lets future logs follow their live ones, num.replica.alter.log.dirs.threads at a
// time, each for a round of roundBytes.
type mover struct {
	keeper     keeper
	places     *places
	dirs       *directories
	fs         vfs.FS
	cleaner    Cleaner
	logger     *slog.Logger
	random     io.Reader
	replaceLog func(p topic.Partition, open func() (*commitlog.Log, error)) error // Config.ReplaceLog
	onMoved    func(p topic.Partition, topicID, dirID uuid.UUID)                  // Config.OnMoved, or nil

	pace  throttle.Throttler // of all copies together
	woken chan struct{}      // capacity 1: there may be something to copy

	// step is held for reading from the read of some records to their append, and for writing
	// while a log and its copy are truncated.
	step sync.RWMutex

	mu struct {
		sync.Mutex
		busy map[topic.Partition]bool
	}
}

const (
	roundBytes = 16 << 20
	readBytes  = 1 << 20
	// moverPause is how long the mover sleeps when there is nothing to copy, or a copy fails.
	moverPause = 100 * time.Millisecond
)

// A keeper is what a mover asks of the Manager.
type keeper interface {
	// change keeps others off a partition and its directories until leave is called.
	change(partitions ...topic.Partition) (leave func(), err error)
	// openCopy opens the log, empty or not, that is to follow another one.
	openCopy(d *dir, name string, live *commitlog.Log) (*commitlog.Log, error)
	// discard puts a log aside and queues its removal.
	discard(e entry) error
	writeCheckpoints(d *dir, kinds ...checkpointKind) error
	failed(d *dir, cause error)
	failSoon(d *dir, cause error)
}

func (v *mover) init(m *Manager) {
	v.keeper, v.places, v.dirs = m, &m.places, &m.dirs
	v.fs, v.cleaner, v.logger, v.replaceLog, v.onMoved = m.cfg.FS, m.cfg.Cleaner, m.logger, m.cfg.ReplaceLog, m.cfg.OnMoved
	v.random = m.cfg.Random
	v.woken = make(chan struct{}, 1)
	v.mu.busy = make(map[topic.Partition]bool)
}

func (v *mover) wake() {
	select {
	case v.woken <- struct{}{}:
	default:
	}
}

// claim takes a move that no other goroutine works at.
func (v *mover) claim(p topic.Partition) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mu.busy[p] {
		return false
	}
	v.mu.busy[p] = true
	return true
}

func (v *mover) release(p topic.Partition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.mu.busy, p)
}

// putFuture adds the copy of a move. Cleaning is paused while there is one: it follows the
// live log by its end.
func (v *mover) putFuture(p topic.Partition, e entry) error {
	v.cleaner.Pause(p)
	err := v.places.putFuture(p, e)
	if err != nil {
		v.cleaner.Resume(p)
	}
	return err
}

func (v *mover) takeFuture(p topic.Partition) (entry, bool) {
	e, ok := v.places.takeFuture(p)
	if ok {
		v.cleaner.Resume(p)
	}
	return e, ok
}

// run copies until ctx ends.
func (v *mover) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.woken:
		case <-timer.C:
		}
		futures := v.places.allFutures(nil)
		progress := false
		for _, e := range futures {
			p := e.log.Partition()
			if ctx.Err() == nil && v.claim(p) {
				progress = v.round(ctx, p) || progress
				v.release(p)
			}
		}
		switch {
		case progress:
			timer.Reset(0)
		case len(futures) > 0:
			timer.Reset(moverPause)
		}
	}
}

// round copies some of a partition and completes the move when nothing is left. It
// reports whether there is reason to go on at once.
func (v *mover) round(ctx context.Context, p topic.Partition) bool {
	future, moving := v.places.future(p)
	live, ok := v.places.entry(p)
	if !moving || !ok {
		return false
	}
	copied, err := copyLog(ctx, live.log, future.log, roundBytes, v.copyStep)
	if err == nil && future.log.Offsets().End == live.log.Offsets().End {
		err = v.complete(ctx, p)
	}
	if err != nil && ctx.Err() == nil && future.log.Failed() == nil {
		v.logger.Warn("move stands still", "partition", p, "to", future.dir.path, "offset", future.log.Offsets().End, "err", err)
		return false
	}
	return copied > 0
}

// complete promotes the copy, with appends held back by who owns the partition.
func (v *mover) complete(ctx context.Context, p topic.Partition) error {
	var l *commitlog.Log
	err := v.replaceLog(p, func() (*commitlog.Log, error) {
		var err error
		l, err = v.promote(p)
		return l, err
	})
	if err == nil && l != nil {
		v.moved(p, l)
	}
	return err
}

// A stepper runs one step of a copy, and waits as long as the number of bytes that it
// returns asks for.
type stepper func(ctx context.Context, step func() (int, error)) (int, error)

// copyStep is a stepper that keeps truncation out and the common pace.
func (v *mover) copyStep(ctx context.Context, step func() (int, error)) (int, error) {
	v.step.RLock()
	n, err := step()
	v.step.RUnlock()
	return n, errors.Join(err, v.pace.Use(ctx, n))
}

// copyLog makes to follow from, as a follower would its leader: its log start, its end if that
// moved back, and some more than limit bytes of records.
func copyLog(ctx context.Context, from, to *commitlog.Log, limit int, step stepper) (copied int, err error) {
	buf := make([]byte, 0, readBytes)
	for copied < limit && ctx.Err() == nil {
		n, err := step(ctx, func() (n int, err error) {
			if err := align(from, to); err != nil {
				return 0, err
			}
			n, buf, err = copySome(from, to, buf)
			return n, err
		})
		if n == 0 || err != nil {
			return copied, err
		}
		copied += n
	}
	return copied, nil
}

// copySome appends what follows the end of the copy, readBytes or a batch that is larger, or what is
// in quarantine there. It returns buf, grown if need be.
func copySome(from, to *commitlog.Log, buf []byte) (int, []byte, error) {
	r, err := from.Read(to.Offsets().End, min(readBytes, to.Config().SegmentBytes), commitlog.ReadLogEnd, segment.WholeFirst)
	defer r.Slice.Release()
	size := r.Slice.Size()
	if err == nil && size > 0 {
		if size > cap(buf) {
			buf = make([]byte, size)
		}
		buf = buf[:size]
		if _, err = r.Slice.ReadAt(buf, 0); err == nil {
			err = appendCopied(to, buf)
		}
	}
	if errors.Is(err, record.ErrCorrupt) {
		size, err = to.CopyDamage(from, err)
	}
	if err != nil {
		size = 0
	}
	return size, buf, err
}

func appendCopied(to *commitlog.Log, set []byte) error {
	_, err := to.AppendAsFollower(set, math.MaxInt32)
	o := to.Offsets()
	if below, ok := errors.AsType[*commitlog.UnexpectedOffsetError](err); ok && o.LogStart == o.End {
		// The log start is inside a batch: the copy begins with that.
		if err = to.TruncateFullyAndStartAt(below.FirstOffset); err == nil {
			_, err = to.AppendAsFollower(set, math.MaxInt32)
		}
	}
	return err
}

// align brings start, end and high watermark of a copy in line with the live log.
func align(from, to *commitlog.Log) error {
	live, copied := from.Offsets(), to.Offsets()
	switch {
	case copied.End < live.LogStart:
		return to.TruncateFullyAndStartAt(live.LogStart)
	case copied.End > live.End:
		return to.TruncateTo(live.End)
	}
	to.SetHighWatermark(live.HighWatermark)
	if start := min(live.LogStart, to.Offsets().HighWatermark); start > copied.LogStart {
		return to.IncrementLogStart(start)
	}
	return nil
}
