package group

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// From when an offset of ms 5 ages, by what the group is.
func TestExpiryBase(t *testing.T) {
	f := func(state State, since int64, protocolType string, modern bool, want int64) {
		t.Helper()
		g := newGroup("g")
		g.state, g.since, g.protocolType = state, since, protocolType
		if modern {
			g.modernKeys = map[string]bool{"key": true}
		}
		got := int64(-1)
		if age, may := g.expiryBase(); may {
			got = age(&offset{committedMs: 5, expiresMs: noExpiry}).sinceMs
		}
		if got != want {
			t.Errorf("%v since %d, protocol type %q: got %d, want %d", state, since, protocolType, got, want)
		}
	}
	f(Empty, -1, "", false, 5)
	f(Empty, 9, "", false, 5)
	f(Empty, 9, consumerType, false, 9)
	f(Empty, 0, consumerType, false, 0)
	f(Empty, -1, consumerType, false, 5)
	f(Stable, 9, consumerType, false, 5)
	f(Stable, 9, "connect", false, -1)
	f(PreparingRebalance, 9, consumerType, false, -1)
	f(CompletingRebalance, 9, consumerType, false, -1)
	f(Empty, 9, consumerType, true, -1)
}

// A line of the log for what has expired, and none for every group that has not.
func TestExpiryIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := replayed()
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	now := time.UnixMilli(1000).Add(s.cfg.OffsetsRetention)
	s.groupFor("old").offsets.put("t", 0, &offset{committedMs: 1000, expiresMs: noExpiry})
	s.groupFor("new").offsets.put("t", 0, &offset{committedMs: 1001, expiresMs: noExpiry})
	s.expire(&coordinator.Turn{Now: now})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "group=old count=1") {
		t.Errorf("got %s", got)
	}
}
