package logdir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// stuck makes every operation below a path wait until let is closed.
func stuck(fsys *vfs.Mem, path string) (let chan struct{}) {
	let = make(chan struct{})
	fsys.SetHook(func(op vfs.Op) error {
		if strings.HasPrefix(op.Name, path) {
			<-let
		}
		return nil
	})
	return let
}

// A disk that does not answer holds up what is in its directory, and nothing in the others: partitions are
// created there, deleted, and the directory goes offline when it fails.
func TestStuckDirectoryHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		m := mustLoad(t, testConfig(fsys, "/a", "/b", "/c"))
		ids := map[string]uuid.UUID{}
		for _, d := range m.Dirs() {
			ids[d.Path] = d.ID
		}
		create := func(i int, dir string) error {
			_, err := m.Create(topic.Partition{Topic: "orders", Partition: int32(i)}, ordersID, commitlog.DefaultConfig(), ids[dir], true)
			return err
		}
		must(t, create(0, "/b"))
		must(t, create(1, "/c"))
		let := stuck(fsys, "/a/")
		created, again := make(chan error, 1), make(chan error, 1)
		go func() { created <- create(2, "/a") }()
		synctest.Wait()
		go func() { again <- create(2, "/a") }()
		must(t, create(3, "/b"))
		must(t, m.Delete(orders0))
		must(t, create(0, "/b"))
		must(t, m.Fail("/c", errors.New("gone")))
		if m.Log(orders1) != nil {
			t.Error("a log of a failed directory is there")
		}
		synctest.Wait()
		if m.Log(orders2) != nil {
			t.Error("a log on a disk that does not answer is there")
		}
		close(let)
		must(t, errors.Join(<-created, <-again))
		if m.Log(orders2) == nil {
			t.Error("there is no log")
		}
		mustClose(t, m)
	})
}

// Close does not wait for a directory that does not answer before it closes the others.
func TestCloseWithAStuckDirectory(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b"))
	id := m.Dirs()[0].ID
	reached, let, marked := make(chan bool), make(chan bool), make(chan bool)
	fsys.SetHook(func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.OpMkdir && op.Name == "/a/orders-0":
			close(reached)
			<-let
		case op.Kind == vfs.OpRename && op.NewName == "/b/.kafka_cleanshutdown":
			close(marked)
		}
		return nil
	})
	created, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.Create(orders0, ordersID, commitlog.DefaultConfig(), id, true)
		created <- err
	}()
	<-reached
	go func() { closed <- m.Close(context.Background()) }()
	<-marked
	if exists(t, fsys, "/a/.kafka_cleanshutdown") {
		t.Error("a directory is marked as clean in which a partition is being created")
	}
	if _, err := m.Create(orders1, ordersID, commitlog.DefaultConfig(), uuid.Zero, true); !errors.Is(err, ErrClosed) {
		t.Errorf("Create after Close: %v", err)
	}
	close(let)
	must(t, errors.Join(<-created, <-closed))
	fsys.SetHook(nil)
	m = mustLoad(t, testConfig(fsys, "/a", "/b"))
	if m.Log(orders0) == nil {
		t.Error("what was created during the stop is not there")
	}
	mustClose(t, m)
}

// Partitions that are created, deleted and moved beside each other, while a directory fails: there is one
// log of each at the end, where its directory is, and another start finds the same.
func TestChangesBesideEachOther(t *testing.T) {
	fsys := vfs.NewMem()
	m := mustLoad(t, testConfig(fsys, "/a", "/b", "/c"))
	const partitions, workers = 12, 8
	var changers sync.WaitGroup
	for w := range workers {
		changers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 60 {
				change(t, m, rng, topic.Partition{Topic: "orders", Partition: rng.Int32N(partitions)})
			}
		})
	}
	changers.Go(func() { must(t, m.Fail("/c", errors.New("gone"))) })
	changers.Wait()
	for i := range int32(partitions) {
		p := topic.Partition{Topic: "orders", Partition: i}
		if _, err := m.Create(p, ordersID, commitlog.DefaultConfig(), uuid.Zero, true); err != nil {
			t.Fatal(err)
		}
	}
	counted := map[string]int{}
	for p, l := range m.Logs() {
		dir := strings.TrimSuffix(l.Dir(), "/"+p.String())
		counted[dir]++
		if !exists(t, fsys, l.Dir()) || dir == "/c" {
			t.Errorf("%v is in %s", p, l.Dir())
		}
	}
	for _, d := range m.dirs {
		if n := counted[d.path] + len(m.places.allFutures(d)); d.logCount != n {
			t.Errorf("%s has %d logs, and counts %d", d.path, n, d.logCount)
		}
	}
	mustClose(t, m)
	m = mustLoad(t, testConfig(fsys, "/a", "/b"))
	for i := range int32(partitions) {
		if m.Log(topic.Partition{Topic: "orders", Partition: i}) == nil {
			t.Errorf("orders-%d is not there at the next start", i)
		}
	}
	mustClose(t, m)
}

func change(t *testing.T, m *Manager, rng *rand.Rand, p topic.Partition) {
	var err error
	switch rng.IntN(4) {
	case 0, 1:
		_, err = m.Create(p, ordersID, commitlog.DefaultConfig(), uuid.Zero, true)
	case 2:
		err = m.Delete(p, topic.Partition{Topic: "orders", Partition: (p.Partition + 1) % 12})
	case 3:
		err = m.Move(p, []string{"/a", "/b", "/c"}[rng.IntN(3)])
	}
	for _, refusal := range []error{ErrUnknownPartition, ErrNoDirectory, ErrMayExist} {
		if errors.Is(err, refusal) {
			return
		}
	}
	if _, failed := errors.AsType[*DirError](err); err != nil && !failed {
		t.Error(err)
	}
}

// Many that are created at once are spread over the directories evenly.
func TestCreateSpreadsEvenly(t *testing.T) {
	m := mustLoad(t, testConfig(vfs.NewMem(), "/a", "/b", "/c", "/d"))
	var creators sync.WaitGroup
	for i := range int32(40) {
		creators.Go(func() {
			mustCreate(t, m, topic.Partition{Topic: "orders", Partition: i})
		})
	}
	creators.Wait()
	for _, d := range m.dirs {
		if d.logCount != 10 {
			t.Errorf("%s has %d logs, want 10", d.path, d.logCount)
		}
	}
	mustClose(t, m)
}

// Claims of the same partition follow each other; claims of several, in whatever order they are asked
// for, do not wait for each other for ever.
func TestClaims(t *testing.T) {
	var c claims
	var holders [4]int
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 2))
			for range 100 {
				a, b := rng.IntN(4), rng.IntN(4)
				release := c.take(numbered(a), numbered(b))
				if holders[a]++; a != b {
					holders[b]++
				}
				if holders[a] != 1 || holders[b] != 1 {
					t.Error(fmt.Sprint("claimed twice: ", holders))
				}
				holders[a], holders[b] = 0, 0
				release()
			}
		})
	}
	all.Wait()
	if len(c.held) > 0 {
		t.Errorf("%d are claimed still", len(c.held))
	}
}

func numbered(i int) topic.Partition { return topic.Partition{Topic: "t", Partition: int32(i)} }
