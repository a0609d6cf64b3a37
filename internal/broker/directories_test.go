package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// inDirectory waits until the metadata know where partition 0 of a topic is, and returns the path.
func inDirectory(t *testing.T, b *Broker, name string) string {
	t.Helper()
	var path string
	eventually(t, "the directory of "+name+" is known", func() bool {
		dir, _ := b.quorum.Image().Topic(name).Partitions[0].Directory(b.NodeID())
		for _, d := range b.logs.Dirs() {
			if d.ID == dir {
				path = d.Path
			}
		}
		return path != ""
	})
	return path
}

// A directory that fails takes its partitions with it: they have no leader, their replica is
// offline, and everything else goes on. They are back with the directory.
func TestDirectoryFailure(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	b := start(t, strings.Join(dirs, ","))
	a := admin(t, b)
	in := map[string]string{} // path to a topic there
	for n := 0; len(in) < 2; n++ {
		name := fmt.Sprint("orders", n)
		createTopic(t, a, name)
		in[inDirectory(t, b, name)] = name
	}
	good, lost := in[dirs[0]], in[dirs[1]]
	c := dial(t, b)
	for _, name := range []string{good, lost} {
		c.mustProduce(name, logtest.Values(t, record.BuilderOptions{}, "value"))
	}

	if err := b.logs.Fail(dirs[1], errors.New("it burns")); err != nil {
		t.Fatal(err)
	}
	wantOffline := func() {
		t.Helper()
		if code := c.produce(lost, logtest.Values(t, record.BuilderOptions{}, "value")).ErrorCode; code != kerr.KafkaStorageError.Code {
			t.Errorf("produce: got error %d, want %d", code, kerr.KafkaStorageError.Code)
		}
		if code := c.fetch(lost, 0).ErrorCode; code != kerr.KafkaStorageError.Code {
			t.Errorf("fetch: got error %d, want %d", code, kerr.KafkaStorageError.Code)
		}
	}
	wantOffline()
	eventually(t, "the partition has no leader", func() bool { return b.quorum.Image().Topic(lost).Partitions[0].Leader < 0 })
	wantOffline()
	c.mustProduce(good, logtest.Values(t, record.BuilderOptions{}, "value"))
	p := describe(t, a, lost)
	if !errors.Is(p.Err, kerr.LeaderNotAvailable) || p.Leader != -1 || !slices.Equal(p.OfflineReplicas, []int32{b.NodeID()}) || !slices.Equal(p.ISR, []int32{b.NodeID()}) {
		t.Errorf("lost partition: got %+v", p)
	}
	if p := describe(t, a, good); p.Err != nil || p.Leader != b.NodeID() || len(p.OfflineReplicas) > 0 {
		t.Errorf("good partition: got %+v", p)
	}
	if n := len(b.quorum.Image().Broker(b.NodeID()).LogDirs); n != 1 {
		t.Errorf("%d log directories are registered, want 1", n)
	}

	stop(t, b)
	b = start(t, strings.Join(dirs, ","))
	a = admin(t, b)
	for _, name := range []string{good, lost} {
		if p := describe(t, a, name); p.Err != nil || p.Leader != b.NodeID() || len(p.OfflineReplicas) > 0 {
			t.Errorf("%s after a restart: got %+v", name, p)
		}
		if end := endOffset(t, a, name); end < 1 {
			t.Errorf("%s ends at %d", name, end)
		}
	}
}

// A cordoned directory takes no new logs, whoever asks for it; with all of them cordoned no topic can
// be created. What is there already is served.
func TestCordonedDirectories(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	b := start(t, strings.Join(dirs, ","), "cordoned.log.dirs="+dirs[0])
	a := admin(t, b)
	for n := range 3 {
		name := fmt.Sprint("orders", n)
		createTopic(t, a, name)
		if dir := inDirectory(t, b, name); dir != dirs[1] {
			t.Errorf("%s is in %s, which is cordoned", name, dir)
		}
	}
	var req kadm.AlterReplicaLogDirsReq
	req.Add(dirs[0], kadm.TopicsSet{"orders0": {0: {}}})
	moved, err := a.AlterBrokerReplicaLogDirs(testContext(t), b.NodeID(), req)
	if err != nil || !errors.Is(moved["orders0"][0].Err, kerr.InvalidReplicaAssignment) {
		t.Errorf("move to a cordoned directory: got %v, %+v", err, moved)
	}

	cordon := func(value string) error {
		t.Helper()
		answers, err := a.AlterBrokerConfigs(testContext(t), []kadm.AlterConfig{{Name: "cordoned.log.dirs", Value: &value}}, b.NodeID())
		if err != nil {
			t.Fatal(err)
		}
		return answers[0].Err
	}
	if err := cordon("/elsewhere"); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("a directory of nobody: got %v, want %v", err, kerr.InvalidRequest)
	}
	create := func(name string) error {
		t.Helper()
		answer, err := a.CreateTopic(testContext(t), 1, 1, nil, name)
		if err == nil {
			err = answer.Err
		}
		return err
	}
	if err := cordon("*"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller knows that all is cordoned", func() bool { return b.quorum.Image().Broker(b.NodeID()).Cordoned() })
	if err := create("nowhere"); !errors.Is(err, kerr.InvalidReplicationFactor) {
		t.Errorf("all cordoned: got %v, want %v", err, kerr.InvalidReplicationFactor)
	}
	dial(t, b).mustProduce("orders0", logtest.Values(t, record.BuilderOptions{}, "value"))

	stop(t, b)
	b = start(t, strings.Join(dirs, ",")) // the dynamic value lasts
	a = admin(t, b)
	eventually(t, "all is cordoned after a restart", func() bool { return b.quorum.Image().Broker(b.NodeID()).Cordoned() })
	if err := cordon(dirs[1]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one directory is open", func() bool { return !b.quorum.Image().Broker(b.NodeID()).Cordoned() })
	if err := create("orders9"); err != nil {
		t.Fatal(err)
	}
	if dir := inDirectory(t, b, "orders9"); dir != dirs[0] {
		t.Errorf("in %s, want %s", dir, dirs[0])
	}
}

func describe(t *testing.T, a *kadm.Client, name string) kadm.PartitionDetail {
	t.Helper()
	m, err := a.Metadata(testContext(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return m.Topics[name].Partitions[0]
}

// A deaf controller commits nothing, until it hears.
type deafController struct {
	mu       sync.Mutex // guards the rest
	hears    bool
	assigned []controller.DirectoryAssignment
	offline  []uuid.UUID
	cordoned []uuid.UUID
	failed   error // what the broker was told to stop for
}

func (d *deafController) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err
}

func (d *deafController) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *deafController) hear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hears = true
}

var errDeaf = errors.New("no quorum")

func (d *deafController) AssignDirectories(_ context.Context, _ int32, list []controller.DirectoryAssignment) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hears {
		return errDeaf
	}
	d.assigned = append(d.assigned, list...)
	return nil
}

func (d *deafController) DirectoriesOffline(_ context.Context, _ int32, _ int64, dirs []uuid.UUID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hears {
		return errDeaf
	}
	d.offline = append(d.offline, dirs...)
	return nil
}

func (d *deafController) CordonDirectories(_ context.Context, _ int32, _ int64, dirs []uuid.UUID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hears {
		return errDeaf
	}
	d.cordoned = dirs
	return nil
}

// pass lets time go by, and what it brings about come to its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestDirectoryReports(t *testing.T) {
	f := func(name string, test func(t *testing.T, r *directoryReports, c *deafController)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &deafController{}
				r := &directoryReports{controller: c, broker: 1, epoch: 5, timeout: 30 * time.Second, logger: slog.New(slog.DiscardHandler),
					fail: c.fail}
				r.start()
				test(t, r, c)
				if err := r.close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
	p := topic.Partition{Topic: "orders"}
	topicID, dir, other := uuid.New(), uuid.New(), uuid.New()
	f("a failure in time", func(t *testing.T, r *directoryReports, c *deafController) {
		r.failed(dir)
		pass(29 * time.Second)
		c.hear()
		pass(time.Hour)
		if c.failure() != nil || !slices.Equal(c.offline, []uuid.UUID{dir}) {
			t.Errorf("got %v, told %v", c.failure(), c.offline)
		}
	})
	f("a failure too late", func(t *testing.T, r *directoryReports, c *deafController) {
		r.failed(dir)
		pass(20 * time.Second)
		r.failed(other)
		pass(9 * time.Second)
		if c.failure() != nil {
			t.Errorf("got %v before its time", c.failure())
		}
		pass(2 * time.Second)
		if !errors.Is(c.failure(), errDeaf) {
			t.Errorf("got %v, want %v", c.failure(), errDeaf)
		}
	})
	f("a cordon", func(t *testing.T, r *directoryReports, c *deafController) {
		r.cordon([]uuid.UUID{dir})
		pass(time.Hour)
		r.cordon([]uuid.UUID{dir, other})
		c.hear()
		pass(time.Minute)
		if c.failure() != nil || !slices.Equal(c.cordoned, []uuid.UUID{dir, other}) {
			t.Errorf("got %v, told %v", c.failure(), c.cordoned)
		}
		r.cordon(nil)
		pass(time.Minute)
		if len(c.cordoned) > 0 {
			t.Errorf("told %v, want none", c.cordoned)
		}
	})
	f("an assignment", func(t *testing.T, r *directoryReports, c *deafController) {
		r.assigned(p, topicID, dir)
		pass(time.Hour)
		r.assigned(p, topicID, other)
		c.hear()
		pass(time.Minute)
		want := []controller.DirectoryAssignment{{TopicID: topicID, Directory: other}}
		if c.failure() != nil || !slices.Equal(c.assigned, want) {
			t.Errorf("got %v, told %v, want %v", c.failure(), c.assigned, want)
		}
	})
}
