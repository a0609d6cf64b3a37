package quorum

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

var crashes = flag.Int("crashes", 150, "crash points per run of TestCrash")

// TestCrash stops the machine at a random operation, again and again: what was committed is
// there after the next start, the log has no gap and no batch twice, and of a change that was
// not acknowledged all or nothing is there.
func TestCrash(t *testing.T) {
	n := *crashes
	if testing.Short() {
		n = 30
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	fsys, dir := memDir(t)
	known := 0 // topics [0, known) are committed
	for i := range n {
		var err error
		if fsys, known, err = crashOnce(fsys, dir, rng, known); err != nil {
			t.Fatalf("crash %d with seed %d: %v", i, seed, err)
		}
	}
	t.Logf("%d topics after %d crashes", known, n)
}

// crashOnce opens the log, proposes topics until the crash and returns what is left.
func crashOnce(fsys *vfs.Mem, dir string, rng *rand.Rand, known int) (*vfs.Mem, int, error) {
	after := crashHook(fsys, rng, rng.IntN(60))
	o := options(fsys, dir)
	o.SnapshotBytes = 2 << 10
	q, err := Open(o)
	if err == nil {
		if err := checkTopicsUpTo(q.Image(), known); err != nil {
			return nil, 0, err
		}
		if q.Image().TopicByID(topicID(known)) != nil {
			known++ // written by the last crash's unacknowledged Propose
		}
		for after() == nil {
			if _, err := propose(context.Background(), q, topicRecords(known)); err == nil && after() == nil {
				known++
			}
		}
		q.Close()
	}
	clone := after()
	if clone == nil {
		return nil, 0, fmt.Errorf("no crash: %w", err)
	}
	return clone, known, checkFiles(clone, dir)
}

// crashHook makes the file system crash at its n-th operation from now. after returns what is
// left then, nil before.
func crashHook(fsys *vfs.Mem, rng *rand.Rand, n int) (after func() *vfs.Mem) {
	var mu sync.Mutex
	var clone *vfs.Mem
	fsys.SetHook(func(vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 && clone == nil {
			clone = fsys.CrashClone(rng)
		}
		if clone != nil {
			return fmt.Errorf("the machine is off")
		}
		return nil
	})
	return func() *vfs.Mem {
		mu.Lock()
		defer mu.Unlock()
		return clone
	}
}

// checkTopicsUpTo wants topics [0, known), and at most one more.
func checkTopicsUpTo(img *metadata.Image, known int) error {
	for n := range known {
		if img.TopicByID(topicID(n)) == nil {
			return fmt.Errorf("topic %d of %d was committed and is lost", n, known)
		}
	}
	if got := img.NumTopics(); got > known+1 {
		return fmt.Errorf("%d topics, want %d or one more", got, known)
	}
	return nil
}

// checkFiles walks the segments as Kafka's tools would: good batches, offsets without gaps or
// repetition; only the last file may have a torn end.
func checkFiles(fsys *vfs.Mem, dir string) error {
	list, err := fsys.ReadDir(logDir(dir))
	if err != nil {
		return nil // crashed before it was made
	}
	var segments []string
	for _, e := range list {
		if strings.HasSuffix(e.Name(), logSuffix) {
			segments = append(segments, e.Name())
		}
	}
	next := int64(-1)
	seen := map[string]bool{}
	for _, name := range segments {
		b, err := vfs.ReadFile(fsys, filepath.Join(logDir(dir), name), 1<<24)
		if err != nil {
			return err
		}
		base, _ := parseSegment(name)
		if next >= 0 && base != next {
			return fmt.Errorf("segment %s follows offset %d", name, next)
		}
		next = base
		for batch, err := range record.Batches(b) {
			if err != nil || batch.Verify() != nil || batch.BaseOffset() != next {
				if name != segments[len(segments)-1] {
					return fmt.Errorf("%s: bad batch at offset %d: %v", name, next, err)
				}
				break
			}
			next = batch.NextOffset()
			if err := checkDuplicates(batch, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDuplicates(batch record.Batch, seen map[string]bool) error {
	if batch.IsControl() {
		return nil
	}
	records, err := decodeData(batch)
	if err != nil {
		return err
	}
	if t, ok := records[0].(*metadata.TopicRecord); ok {
		if seen[t.Name] {
			return fmt.Errorf("topic %s is in the log twice", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

// A snapshot may be interrupted at any operation, and the log before it is removed only then.
func TestCrashDuringSnapshot(t *testing.T) {
	for point := range 25 {
		rng := rand.New(rand.NewPCG(uint64(point), 2))
		fsys, dir := memDir(t)
		q := mustOpen(t, options(fsys, dir))
		for n := range 30 {
			mustPropose(t, q, topicRecords(n)...)
		}
		state := stateOf(q.Image())
		after := crashHook(fsys, rng, point)
		q.maybeSnapshot()
		left := after()
		if left == nil {
			left = fsys.CrashClone(rng)
		}
		fsys.SetHook(nil)
		mustClose(t, q)
		q = mustOpen(t, options(left, dir))
		if !slices.Equal(stateOf(q.Image()), state) {
			t.Errorf("crash at operation %d of a snapshot: the image differs", point)
		}
		mustClose(t, q)
	}
}
