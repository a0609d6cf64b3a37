package group

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// Keys of types to come are skipped, however short; what has no type is no key.
func TestReplayKeys(t *testing.T) {
	f := func(key []byte, ok bool) {
		t.Helper()
		err := replayed().Replay(coordinator.Replayed{Record: coordinator.Record{Key: key, Value: []byte{0, 0}}})
		if (err == nil) != ok {
			t.Errorf("key %x: got %v, want an error: %v", key, err, !ok)
		}
	}
	f(nil, false)
	f([]byte{0}, false)
	f([]byte{0, 99}, true)
	f([]byte{0, 99, 1}, true)
}

// Versions to come are refused as such: their fields may mean something else.
func TestReplayVersions(t *testing.T) {
	version := func(value []byte, v int16) []byte {
		value = append([]byte(nil), value...)
		binary.BigEndian.PutUint16(value, uint16(v))
		return value
	}
	offset := offsetRecord("g", "t", 0, &offset{offset: 1, expiresMs: noExpiry}).Value
	group := newGroup("g").record(nil).Value
	f := func(value []byte, want string) {
		t.Helper()
		_, asOffset := parseOffset(value)
		_, asGroup := parseGroup("g", value)
		for _, err := range []error{asOffset, asGroup} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("value %x: got %v, want %q", value, err, want)
			}
		}
	}
	f([]byte{0}, "value of 1 bytes")
	f([]byte{0, 5}, "version 5")
	f([]byte{0, 5, 0}, "version 5")
	for _, value := range [][]byte{offset, group} {
		f(version(value, 5), "version 5")
		f(version(value, -1), "version -1")
	}
}

// The leader is who led, if still a member; else the first.
func TestReplayLeader(t *testing.T) {
	f := func(leader *string, want string) {
		t.Helper()
		v := kmsg.NewGroupMetadataValue()
		v.Version, v.ProtocolType, v.Leader = groupVersion, consumerType, leader
		for _, id := range []string{"a", "b"} {
			v.Members = append(v.Members, kmsg.GroupMetadataValueMember{MemberID: id})
		}
		g, err := parseGroup("g", v.AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		if g.leader != want {
			t.Errorf("leader %s of a and b: got %s, want %s", orBlank(leader), g.leader, want)
		}
	}
	f(orNull("a"), "a")
	f(orNull("b"), "b")
	f(orNull("c"), "a")
	f(nil, "a")
}

// Members of version 0 have their session timeout for a rebalance; others what they asked for.
func TestReplayRebalanceTimeout(t *testing.T) {
	f := func(ms int32, want int64) {
		t.Helper()
		m := parseMember(&kmsg.GroupMetadataValueMember{SessionTimeoutMillis: 7, RebalanceTimeoutMillis: ms}, "range")
		if got := m.rebalanceTimeout.Milliseconds(); got != want {
			t.Errorf("%d ms: got %d, want %d", ms, got, want)
		}
	}
	f(-1, 7)
	f(0, 0)
	f(9, 9)
}

// A group goes with its last offset if nothing in the log says that there was a member.
func TestReplayUnwritten(t *testing.T) {
	f := func(since int64, protocolType string, members int, want bool) {
		t.Helper()
		g := newGroup("g")
		g.since, g.protocolType = since, protocolType
		for range members {
			g.add(&member{id: "m"})
		}
		if got := g.isUnwritten(); got != want {
			t.Errorf("since %d, protocol type %q, %d members: got %v", since, protocolType, members, got)
		}
	}
	f(-1, "", 0, true)
	f(0, "", 0, false)
	f(7, "", 0, false)
	f(-1, consumerType, 0, false) // the record of an old release
	f(-1, "", 1, false)           // no release writes it; its session must find a group
}
