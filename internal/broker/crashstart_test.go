package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/ownership"
	"github.com/gregor-kafka/gregor/vfs"
)

// inMemory starts a broker on a file system in memory.
func inMemory(ctx context.Context, fsys vfs.FS, dirs string) (*Broker, error) {
	c, _, err := config.Parse(nil, "", append([]string{"log.dirs=" + dirs, "listeners=PLAINTEXT://127.0.0.1:0"}, asFound...))
	if err != nil {
		return nil, err
	}
	return Start(ctx, Options{Config: c, Logger: slog.New(slog.DiscardHandler), World: World{FS: fsys}})
}

// crashAfter makes a file system fail after n changes. left is what a crash leaves then.
func crashAfter(fsys *vfs.Mem, rng *rand.Rand, n int) (left func() *vfs.Mem) {
	var mu sync.Mutex
	var crashed *vfs.Mem
	fsys.SetHook(func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() && crashed == nil {
			if n--; n < 0 {
				crashed = fsys.CrashClone(rng)
			}
		}
		if crashed != nil {
			return errors.New("the machine is off")
		}
		return nil
	})
	return func() *vfs.Mem {
		mu.Lock()
		defer mu.Unlock()
		return crashed
	}
}

// Whatever a crash leaves, of a first start, of topics that come and go, or of the first start on a
// directory of a broker with ZooKeeper, the next start is not refused.
func TestCrashIsNoReasonToRefuse(t *testing.T) {
	points := 60
	if testing.Short() {
		points = 10
	}
	f := func(name, dirs string, fill func(fsys *vfs.Mem)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for point := range points {
				rng := rand.New(rand.NewPCG(uint64(point), 9))
				fsys := vfs.NewMem()
				fill(fsys)
				crashed := crashAfter(fsys, rng, point)
				if b, err := inMemory(t.Context(), fsys, dirs); err == nil {
					churn(b, func() bool { return crashed() != nil })
					_ = b.Close(context.Background())
				}
				left := crashed()
				if left == nil {
					left = fsys.CrashClone(rng)
				}
				b, err := inMemory(t.Context(), left, dirs)
				if err != nil {
					t.Fatalf("crash after %d changes: %v (refused: %v)", point, err, errors.Is(err, ownership.ErrRefused))
				}
				if err := b.Close(context.Background()); err != nil {
					t.Errorf("crash after %d changes: %v", point, err)
				}
			}
		})
	}
	f("new", "/a", func(*vfs.Mem) {})
	f("two directories", "/a,/b", func(*vfs.Mem) {})
	for _, set := range []string{"kafka-0.8.2.2", "kafka-1.1.1-mixed"} {
		f(set, "/data", func(fsys *vfs.Mem) {
			few := map[string]bool{}
			golden.UnpackIf(t, fsys, "/", set, func(name string) bool { // three partitions do
				parts := strings.Split(strings.TrimSuffix(name, "/"), "/")
				if len(parts) == 3 && len(few) < 3 {
					few[parts[1]] = true
				}
				return len(parts) < 3 && !strings.HasSuffix(name, "/") || len(parts) == 3 && few[parts[1]]
			})
		})
	}
}

// churn makes and deletes topics until the crash.
func churn(b *Broker, crashed func() bool) {
	for n := 0; n < 10 && !crashed(); n++ {
		name := fmt.Sprintf("topic-%d", n%3)
		_, _ = b.controller.CreateTopics(context.Background(), []controller.NewTopic{{Name: name, Partitions: 2, ReplicationFactor: 1}}, false)
		if n%3 == 2 {
			_, _ = b.controller.DeleteTopics(context.Background(), []controller.TopicRef{{Name: name}})
		}
	}
}
