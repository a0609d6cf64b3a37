package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// With next to no memory many old clients at once get the same records, one after the other, and
// give back what they held.
func TestConversionsShareMemory(t *testing.T) {
	n := oldLog(t, 2)
	n.conversions = &conversions{turns: make(chan struct{}, 1), ready: wire.NewBudget(1000), sending: wire.NewBudget(100)}
	producer := n.client()
	var want []string
	for i := range 30 {
		codec := oldCodecs[i%len(oldCodecs)]
		var of []string
		for j := range 50 {
			of = append(of, fmt.Sprintf("%d-%d:%s", i, j, strings.Repeat("x", i*10)))
		}
		producer.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{Codec: codec}, of...))
		want = append(want, of...)
	}
	var clients sync.WaitGroup
	for i := range 20 {
		c := n.client()
		maxBytes := []int32{20 << 10, 50 << 20}[i%2]
		clients.Go(func() {
			if got := c.consume(int16(i%4), 0, maxBytes); !slices.Equal(got, want) {
				t.Errorf("client %d: got %d records, want %d", i, len(got), len(want))
			}
		})
	}
	clients.Wait()
	for used := int64(1); used > 0; used, _ = n.ConversionBytes() { // until the last answer has let go of its
	}
}

// Who takes nothing of an answer gives up his share when others wait for it, and not before.
func TestSlowClientGivesUpItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := wire.NewBudget(100)
		slow := share{budget: budget}
		if err := slow.acquire(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		broker, client := net.Pipe()
		defer client.Close()
		written := make(chan error)
		go func() {
			defer broker.Close()
			_, err := slow.write(broker, make([]byte, 1000))
			slow.release()
			written <- err
		}()
		time.Sleep(10 * sendingMax)
		synctest.Wait()
		if budget.InUse() != 60 {
			t.Fatal("the share was given up though nobody waited")
		}
		waiting := share{budget: budget}
		began := time.Now()
		if err := waiting.acquire(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		if err := <-written; !errors.Is(err, errSlowClient) {
			t.Errorf("the slow one got %v", err)
		}
		if waited := time.Since(began); waited > 2*sendingLook {
			t.Errorf("the other one waited for %v", waited)
		}
		waiting.release()
		if budget.InUse() != 0 {
			t.Errorf("%d bytes are held", budget.InUse())
		}
	})
}

// A client that takes its answer in pieces is not slow.
func TestSteadyClientKeepsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := share{budget: wire.NewBudget(100)}
		if err := held.acquire(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		broker, client := net.Pipe()
		go func() {
			buf := make([]byte, 100)
			for range 10 {
				time.Sleep(sendingLook * 3)
				if _, err := io.ReadFull(client, buf); err != nil {
					t.Error(err)
				}
			}
		}()
		if n, err := held.write(broker, make([]byte, 1000)); n != 1000 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
	})
}

func TestTooLong(t *testing.T) {
	f := func(held time.Duration, contended, want bool) {
		t.Helper()
		if got := tooLong(held, contended); got != want {
			t.Errorf("held for %v, contended %v: got %v", held, contended, got)
		}
	}
	f(0, true, false)
	f(sendingMax-1, true, false)
	f(sendingMax, true, true)
	f(time.Hour, false, false)
}

// Who waits for its turn or its share goes when its connection ends.
func TestConversionsEndWithTheirConnection(t *testing.T) {
	c := newConversions()
	for range cap(c.turns) {
		c.turns <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.inTurn(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("turn: got %v", err)
	}
	all := share{budget: c.sending}
	if err := all.acquire(t.Context(), c.sending.Size()); err != nil {
		t.Fatal(err)
	}
	other := share{budget: c.sending}
	if err := other.acquire(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("share: got %v", err)
	}
	all.release()
	if c.sending.InUse() != 0 {
		t.Errorf("%d bytes are held", c.sending.InUse())
	}
}
