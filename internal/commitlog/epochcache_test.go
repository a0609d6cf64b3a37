package commitlog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

func epochsOf(t *testing.T, pairs ...int64) *EpochCache {
	t.Helper()
	c := newEpochCache(vfs.NewMem(), "leader-epoch-checkpoint")
	for i := 0; i < len(pairs); i += 2 {
		c.assign(int32(pairs[i]), pairs[i+1])
	}
	return c
}

func wantEpochs(t *testing.T, c *EpochCache, pairs ...int64) {
	t.Helper()
	var want []checkpoint.EpochEntry
	for i := 0; i < len(pairs); i += 2 {
		want = append(want, checkpoint.EpochEntry{Epoch: int32(pairs[i]), StartOffset: pairs[i+1]})
	}
	if diff := cmp.Diff(want, append([]checkpoint.EpochEntry(nil), c.list()...)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
	if err := c.check(1 << 62); err != nil {
		t.Error(err)
	}
}

func TestEpochCacheAssign(t *testing.T) {
	c := epochsOf(t, 0, 0, 1, 10)
	c.assign(1, 15) // known
	wantEpochs(t, c, 0, 0, 1, 10)
	c.assign(1, 5) // earlier start: replaced
	wantEpochs(t, c, 0, 0, 1, 5)
	c.assign(4, 20)
	c.assign(2, 30) // drops the later epoch 4
	wantEpochs(t, c, 0, 0, 1, 5, 2, 30)
	c.assign(5, 5) // drops by start offset
	wantEpochs(t, c, 0, 0, 5, 5)
	c.assign(-1, 9)
	c.assign(9, -1)
	wantEpochs(t, c, 0, 0, 5, 5)
}

func TestEpochCacheEndOffset(t *testing.T) {
	c := epochsOf(t, 2, 10, 4, 20, 7, 30)
	f := func(epoch, wantEpoch int32, wantOffset int64) {
		t.Helper()
		if e, o := c.endOffset(epoch, 100); e != wantEpoch || o != wantOffset {
			t.Errorf("endOffset(%d) = %d, %d, want %d, %d", epoch, e, o, wantEpoch, wantOffset)
		}
	}
	f(-1, -1, -1)
	f(0, 0, 10) // below all: the first start
	f(2, 2, 20)
	f(3, 2, 20)
	f(4, 4, 30)
	f(6, 4, 30)
	f(7, 7, 100)
	f(8, -1, -1)
	if e, o := epochsOf(t).endOffset(0, 100); e != -1 || o != -1 {
		t.Errorf("empty: got %d, %d", e, o)
	}
}

func TestEpochCacheEpochFor(t *testing.T) {
	c := epochsOf(t, 2, 10, 4, 20)
	for offset, want := range map[int64]int32{9: -1, 10: 2, 19: 2, 20: 4, 99: 4} {
		if got, _ := c.epochFor(offset, 100); got != want {
			t.Errorf("epochFor(%d) = %d, want %d", offset, got, want)
		}
	}
}

// The leader's epoch begins at the log end until something is written in it.
func TestEpochCacheEnter(t *testing.T) {
	f := func(c *EpochCache, epoch, wantEpoch int32, wantOffset int64) {
		t.Helper()
		if e, o := c.endOffset(epoch, 30); e != wantEpoch || o != wantOffset {
			t.Errorf("endOffset(%d) = %d, %d, want %d, %d", epoch, e, o, wantEpoch, wantOffset)
		}
	}
	c := epochsOf(t, 2, 10, 4, 20)
	c.enter(7, 30)
	wantEpochs(t, c, 2, 10, 4, 20)
	f(c, 1, 1, 10)
	f(c, 3, 2, 20)
	f(c, 4, 4, 30)
	f(c, 6, 4, 30)
	f(c, 7, 7, 30)
	f(c, 8, -1, -1)
	for offset, want := range map[int64]int32{9: -1, 29: 4, 30: 7, 31: 7} {
		if got, _ := c.epochFor(offset, 30); got != want {
			t.Errorf("epochFor(%d) = %d, want %d", offset, got, want)
		}
	}
	c.truncateFromStart(30) // takes the place of what begins at the end
	f(c, 4, 4, 30)
	if got, _ := c.epochFor(30, 30); got != 7 || c.latestEpoch() != 7 {
		t.Errorf("epochFor(30) = %d, latest %d, want 7", got, c.latestEpoch())
	}
	c.assign(7, 30) // the first batch
	wantEpochs(t, c, 7, 30)

	c = epochsOf(t)
	c.enter(3, 0)
	f(c, 0, 0, 30)
	f(c, 3, 3, 30)

	c = epochsOf(t, 2, 10, 9, 20)
	c.enter(7, 30) // nobody led in 9
	wantEpochs(t, c, 2, 10, 7, 30)
	c.assign(5, 30) // as a follower, of a leader that never heard of 7
	if c.latestEpoch() != 5 {
		t.Errorf("latest %d, want 5", c.latestEpoch())
	}
}

func TestEpochCacheTruncate(t *testing.T) {
	c := epochsOf(t, 2, 10, 4, 20, 7, 30)
	c.truncateFromEnd(30)
	wantEpochs(t, c, 2, 10, 4, 20)
	c.truncateFromEnd(25)
	wantEpochs(t, c, 2, 10, 4, 20)
	c.truncateFromStart(10)
	wantEpochs(t, c, 2, 10, 4, 20)
	c.truncateFromStart(15)
	wantEpochs(t, c, 2, 15, 4, 20)
	c.truncateFromStart(20)
	wantEpochs(t, c, 4, 20)
	c.truncateFromStart(50)
	wantEpochs(t, c, 4, 50)
	c.truncateFromEnd(0)
	wantEpochs(t, c)
}

func TestEpochCacheFile(t *testing.T) {
	fs := vfs.NewMem()
	const path = "leader-epoch-checkpoint"
	c := newEpochCache(fs, path)
	c.assign(1, 0)
	c.assign(3, 7)
	if err := c.sync(); err != nil {
		t.Fatal(err)
	}
	c.assign(4, 9) // not synced
	again, err := openEpochCache(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	wantEpochs(t, again, 1, 0, 3, 7)
}

// One byte of the header costs no epoch, and the file is written anew.
func TestEpochCacheFileWithAnotherHeader(t *testing.T) {
	fs := vfs.NewMem()
	const path, text = "leader-epoch-checkpoint", "0\n2\n1 0\n3 7\n"
	for i := range len("0\n2\n") {
		damaged := []byte(text)
		damaged[i] ^= 0x10
		if err := vfs.WriteFileAtomic(fs, path, damaged); err != nil {
			t.Fatal(err)
		}
		c, err := openEpochCache(fs, path)
		if !errors.Is(err, checkpoint.ErrCorrupt) || c == nil {
			t.Fatalf("%q: got %v, %v", damaged, c, err)
		}
		wantEpochs(t, c, 1, 0, 3, 7)
		if err := c.sync(); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadFile(fs, path, 100); err != nil || string(got) != text {
			t.Errorf("%q: now %q, %v", damaged, got, err)
		}
	}
}
