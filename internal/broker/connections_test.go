package broker

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// A slowResolver answers when it is let.
type slowResolver struct {
	asked   []string
	answers chan netip.Addr
}

func (r *slowResolver) lookup(ctx context.Context, _, host string) ([]netip.Addr, error) {
	r.asked = append(r.asked, host)
	select {
	case addr, ok := <-r.answers:
		if !ok {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{addr}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func limitsConfig(t *testing.T, settings ...string) *config.Broker {
	t.Helper()
	c, _, err := config.Parse(nil, "", append([]string{"log.dirs=/data", "node.id=1"}, settings...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A change of the limits waits for no name server: addresses count at once, names when they are known,
// and what was looked up for a configuration of before counts no more.
func TestLimitsWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := &slowResolver{answers: make(chan netip.Addr)}
		var inForce atomic.Pointer[wire.ConnectionLimits]
		l := &connectionLimiter{
			limit: func(now wire.ConnectionLimits) { inForce.Store(&now) }, lookupNetIP: resolver.lookup,
			logger: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.ended.Go(func() { l.run(ctx) })
		defer l.ended.Wait()
		defer cancel()
		one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		f := func(what string, perIP, ofOne, ofTwo int) {
			t.Helper()
			synctest.Wait()
			if limits := inForce.Load(); limits.PerIP != perIP || limits.Of[one] != ofOne || limits.Of[two] != ofTwo {
				t.Errorf("%s: %+v, want %d of any address, %d and %d of the two", what, *limits, perIP, ofOne, ofTwo)
			}
		}
		l.set(limitsConfig(t, "max.connections.per.ip=9", "max.connections.per.ip.overrides=10.0.0.1:3,slow.example:4"))
		f("before the name is known", 9, 3, 0)
		l.set(limitsConfig(t, "max.connections.per.ip=8", "max.connections.per.ip.overrides=10.0.0.1:3,slow.example:5"))
		f("changed meanwhile", 8, 3, 0)
		resolver.answers <- two // to the first question
		f("an answer that comes too late", 8, 3, 0)
		resolver.answers <- two
		f("the name is known", 8, 3, 5)
		l.set(limitsConfig(t, "max.connections.per.ip=7", "max.connections.per.ip.overrides=slow.example:6"))
		f("known from before", 7, 0, 6)
		time.Sleep(lookupTimeout + time.Second)
		f("the name server does not answer", 7, 0, 0)
		if len(resolver.asked) != 3 {
			t.Errorf("asked for %v: an address needs no name server", resolver.asked)
		}
	})
}
