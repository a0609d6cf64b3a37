package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gregor-kafka/gregor/internal/api"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A metadataController decides changes of the metadata, here or on another node.
type metadataController interface {
	api.Controller
	api.BrokerController
	directoryController
}

// directoryController is what the controller is told about log directories.
type directoryController interface {
	AssignDirectories(ctx context.Context, broker int32, list []controller.DirectoryAssignment) error
	DirectoriesOffline(ctx context.Context, broker int32, brokerEpoch int64, dirs []uuid.UUID) error
	CordonDirectories(ctx context.Context, broker int32, brokerEpoch int64, dirs []uuid.UUID) error
}

const (
	// reportPause is waited for after a report that failed.
	reportPause = time.Second
	// assignmentsMax bounds one report, as Kafka does.
	assignmentsMax = 2250
)

// directoryReports tells the controller in which log directories this broker's replicas are, and
// which directories have failed or are cordoned, again and again until it knows. A failure that it
// cannot be told in time ends the broker: nobody else would lead. (Kafka classes AssignmentsManager
// and BrokerLifecycleManager.)
type directoryReports struct {
	controller directoryController
	broker     int32
	epoch      int64
	timeout    time.Duration // log.dir.failure.timeout.ms
	fail       func(error)
	logger     *slog.Logger

	wake   chan struct{} // holds one
	cancel context.CancelFunc
	ended  sync.WaitGroup

	// mu guards what the controller does not know yet: at most one entry for each partition and
	// each directory.
	mu      sync.Mutex
	assign  map[topic.Partition]controller.DirectoryAssignment
	offline map[uuid.UUID]time.Time // when to give up
	cordons *[]uuid.UUID            // the cordoned directories; nil: the controller knows
}

// start begins to report, until close.
func (r *directoryReports) start() {
	r.wake = make(chan struct{}, 1)
	r.assign = make(map[topic.Partition]controller.DirectoryAssignment)
	r.offline = make(map[uuid.UUID]time.Time)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.ended.Go(func() { r.run(ctx) })
}

func (r *directoryReports) close(context.Context) error {
	r.cancel()
	r.ended.Wait()
	return nil
}

// assigned notes where a replica is.
func (r *directoryReports) assigned(p topic.Partition, topicID, dir uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.assign[p] = controller.DirectoryAssignment{TopicID: topicID, Partition: p.Partition, Directory: dir}
	r.wakeUp()
}

// failed notes that a directory is offline.
func (r *directoryReports) failed(dir uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offline[dir] = time.Now().Add(r.timeout)
	r.wakeUp()
}

// cordon notes which directories take no new logs.
func (r *directoryReports) cordon(dirs []uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cordons = &dirs
	r.wakeUp()
}

func (r *directoryReports) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *directoryReports) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for !r.report(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(reportPause):
			}
		}
	}
}

// report tells the controller what it does not know, failures first, and returns whether it knows
// everything now.
func (r *directoryReports) report(ctx context.Context) bool {
	return r.reportOffline(ctx) && r.reportCordoned(ctx) && r.reportAssigned(ctx)
}

func (r *directoryReports) reportCordoned(ctx context.Context) bool {
	r.mu.Lock()
	dirs := r.cordons
	r.mu.Unlock()
	if dirs == nil {
		return true
	}
	if err := r.controller.CordonDirectories(ctx, r.broker, r.epoch, *dirs); err != nil {
		r.logger.Warn("the controller could not be told of cordoned log directories", "directories", *dirs, "err", err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cordons == dirs { // else they have changed
		r.cordons = nil
	}
	return true
}

func (r *directoryReports) reportOffline(ctx context.Context) bool {
	dirs, deadline := r.firstOffline()
	if len(dirs) == 0 {
		return true
	}
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := r.controller.DirectoriesOffline(bounded, r.broker, r.epoch, dirs)
	if err != nil {
		r.logger.Warn("the controller could not be told of failed log directories", "directories", dirs, "err", err)
		if ctx.Err() == nil && !time.Now().Before(deadline) {
			r.fail(fmt.Errorf("the controller could not be told of failed log directories for log.dir.failure.timeout.ms (%v): %w", r.timeout, err))
			return true
		}
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range dirs {
		delete(r.offline, dir)
	}
	return true
}

// firstOffline returns the directories whose failure is not known, and when to give up on the first.
func (r *directoryReports) firstOffline() (dirs []uuid.UUID, deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for dir, until := range r.offline {
		if dirs = append(dirs, dir); len(dirs) == 1 || until.Before(deadline) {
			deadline = until
		}
	}
	return dirs, deadline
}

func (r *directoryReports) reportAssigned(ctx context.Context) bool {
	for {
		partitions, list := r.nextAssigned()
		if len(list) == 0 {
			return true
		}
		if err := r.controller.AssignDirectories(ctx, r.broker, list); err != nil {
			r.logger.Warn("the controller could not be told where replicas are", "replicas", len(list), "err", err)
			return false
		}
		r.mu.Lock()
		for i, p := range partitions {
			if r.assign[p] == list[i] { // else it has moved on
				delete(r.assign, p)
			}
		}
		r.mu.Unlock()
	}
}

func (r *directoryReports) nextAssigned() (partitions []topic.Partition, list []controller.DirectoryAssignment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, a := range r.assign {
		if len(list) == assignmentsMax {
			break
		}
		partitions, list = append(partitions, p), append(list, a)
	}
	return partitions, list
}

// compareDirectories reports the replicas that are in another directory than a change of the
// metadata says.
func (b *Broker) compareDirectories(d *metadata.Delta) {
	for _, c := range d.ChangedTopics {
		for n, change := range c.Partitions() {
			if !slices.Contains(change.New.Replicas, b.logs.NodeID()) {
				continue
			}
			p := topic.Partition{Topic: c.New.Name, Partition: n}
			known, _ := change.New.Directory(b.logs.NodeID())
			if dir, ok := b.logs.DirectoryID(p); ok && dir != known {
				b.directories.assigned(p, c.New.ID, dir)
			}
		}
	}
}

// reconfigureLogs puts the settings of the log manager in force that may have changed.
func (b *Broker) reconfigureLogs() {
	b.logs.Reconfigure(logdir.BrokerConfig(b.settings.now()))
	b.directories.cordon(b.logs.CordonedIDs())
}

// dirFailed tells the controller of a failed directory, or ends the broker when none is left.
func (b *Broker) dirFailed(path string, id uuid.UUID, err error) {
	for _, d := range b.logs.Dirs() {
		if d.Online {
			b.directories.failed(id)
			return
		}
	}
	b.fail(fmt.Errorf("no log directory is left: %s: %w", path, err))
}
