package replica

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A fetch waits for MinBytes as long as it may, and not when there is nothing to wait for.
func TestFetchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		one := []int32{testNode}
		b.create("t", 1, testNode, one, one)
		b.create("u", 2, testNode, one, one)
		p := b.partition("t")
		mustAppend(t, p, "a")
		size := p.log.Load().Size()
		output := new(flushes)
		f := func(name string, req FetchRequest, parts []*FetchPartition, waits time.Duration) {
			t.Helper()
			req.MaxBytes, req.Output = 1000, output
			before := time.Now()
			*output = 0
			if err := b.Fetch(t.Context(), &req, parts); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(before); got != waits || (*output > 0) != (waits > 0) {
				t.Errorf("%s: waited for %v and flushed %d times, want %v", name, got, *output, waits)
			}
			Release(parts)
		}
		at := func(name string, offset int64) []*FetchPartition {
			return []*FetchPartition{{Name: []byte(name), Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1000}}
		}
		const second = time.Second
		f("enough", FetchRequest{MinBytes: int(size), MaxWait: second}, at("t", 0), 0)
		f("not enough", FetchRequest{MinBytes: int(size) + 1, MaxWait: second}, at("t", 0), second)
		f("nothing", FetchRequest{MinBytes: 1, MaxWait: second}, at("t", 1), second)
		f("nothing is enough", FetchRequest{MaxWait: second}, at("t", 1), 0)
		f("no time", FetchRequest{MinBytes: 1}, at("t", 1), 0)
		f("less than no time", FetchRequest{MinBytes: 1, MaxWait: -second}, at("t", 1), 0)
		f("no partition", FetchRequest{MinBytes: 1, MaxWait: second}, nil, 0)
		f("an error", FetchRequest{MinBytes: 1, MaxWait: second}, at("t", 9), 0)
		f("an error beside nothing", FetchRequest{MinBytes: 1, MaxWait: second}, append(at("u", 0), at("nobody", 0)...), 0)
	})
}

// flushes counts them.
type flushes int

func (n *flushes) Flush() error { *n++; return nil }

// A fetch that waits ends as soon as it has as much as it asked for, to the byte.
func TestFetchWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		one := []int32{testNode}
		b.create("t", 1, testNode, one, one)
		p := b.partition("t")
		mustAppend(t, p, "a")
		size := int(p.log.Load().Size())
		f := func(offset int64, minBytes int, ends bool) {
			t.Helper()
			part := &FetchPartition{Name: []byte("t"), Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 10 * size}
			before := time.Now()
			done := make(chan time.Duration)
			go func() {
				req := &FetchRequest{MinBytes: minBytes, MaxWait: time.Minute, MaxBytes: 10 * size}
				if err := b.Fetch(context.Background(), req, []*FetchPartition{part}); err != nil {
					t.Error(err)
				}
				done <- time.Since(before)
			}()
			time.Sleep(time.Second)
			mustAppend(t, p, "b")
			got := <-done
			if want := map[bool]time.Duration{true: time.Second, false: time.Minute}[ends]; got != want {
				t.Errorf("from %d, %d bytes: ended after %v, want %v", offset, minBytes, got, want)
			}
			part.Result.Read.Slice.Release()
		}
		f(1, size, true)
		f(2, size+1, false)
		f(2, 2*size, true)
	})
}

// The first partition with records gets a whole batch, however little is asked for; the others do not.
func TestFetchOneBatchAtLeast(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	var parts []*FetchPartition
	for i, name := range []string{"a", "b", "c"} {
		b.create(name, byte(i+1), testNode, one, one)
		parts = append(parts, &FetchPartition{Name: []byte(name), LeaderEpoch: NoEpoch, LastFetchedEpoch: -1, MaxBytes: 1})
	}
	mustAppend(t, b.partition("b"), "v")
	mustAppend(t, b.partition("c"), "v")
	size := int(b.partition("b").log.Load().Size())
	if err := b.Fetch(t.Context(), &FetchRequest{MaxBytes: 1}, parts); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, size, 0} {
		if got := parts[i].Result.Read.Slice.Size(); got != want {
			t.Errorf("partition %d: got %d bytes, want %d", i, got, want)
		}
	}
	Release(parts)
}

// What a request remembers of a topic does not hide that another partition of it is gone, or came.
func TestFetchResolvesAgain(t *testing.T) {
	b := newBench(t, nil)
	one := []int32{testNode}
	b.create("t", 1, testNode, one, one)
	req := &FetchRequest{MaxBytes: 1000}
	f := func(index int32, want error) {
		t.Helper()
		p := &FetchPartition{Name: []byte("t"), Index: index, LeaderEpoch: NoEpoch, LastFetchedEpoch: -1}
		req.Reset()
		if err := b.Fetch(t.Context(), req, []*FetchPartition{p}); err != nil {
			t.Fatal(err)
		}
		wantError(t, p.Result.Err, want)
		if looked := req.last; (looked != nil) != (want == nil) && index == 0 {
			t.Errorf("partition %d: remembered %v", index, looked)
		}
		p.Result.Read.Slice.Release()
	}
	f(0, nil)
	f(1, ErrUnknownTopicOrPartition)
	f(0, nil)
	gone := metadata.NewRemoveTopicRecord()
	gone.TopicID = topicID(1)
	b.apply(gone)
	b.create("t", 2, testNode, one, one)
	f(0, nil)
	if got := req.last.ID; got != topicID(2) {
		t.Errorf("the request remembers topic %v", got)
	}
}
