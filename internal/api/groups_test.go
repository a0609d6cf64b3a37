package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// offsetsLog is a __consumer_offsets that forgets, or refuses with err.
type offsetsLog struct {
	mu  sync.Mutex
	end int64
	err error
}

func (l *offsetsLog) Append(_ context.Context, _ topic.Partition, _ int32, batch []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.end
	l.end += int64(record.Batch(batch).Count())
	return first, l.err
}

func (l *offsetsLog) AwaitCommitted(context.Context, topic.Partition) error { return nil }

func (l *offsetsLog) Replay(context.Context, topic.Partition, func(record.Batch) error) error {
	return nil
}

// groupServer coordinates all groups of a cluster with the topics t (two partitions) and
// u (one).
func groupServer(t *testing.T) (*Server, *offsetsLog) {
	t.Helper()
	records := slices.Concat(
		testTopic("t", 2, testPartition(1, 1), testPartition(1, 1)),
		testTopic("u", 3, testPartition(1, 1)),
		testTopic(topic.ConsumerOffsets, 4, testPartition(1, 1), testPartition(2, 2), testPartition(1, 1)),
	)
	records = append(records, testBroker(1, false, testListener), testBroker(2, true, testListener))
	s := imageServer(t, "node.id=1", records...)
	log := new(offsetsLog)
	cfg := group.DefaultConfig()
	cfg.InitialRebalanceDelay = 0
	s.Groups = group.New(group.Options{Config: cfg, Log: log, Partitions: func() int32 { return 3 }})
	t.Cleanup(s.Groups.Close)
	for p := range int32(3) {
		s.Groups.Lead(p, 0)
	}
	return s, log
}

// newJoin is what a consumer sends first.
func newJoin(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, member, 10_000, 60_000
	req.ProtocolType = "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0}}}
	return req
}

// mustJoin makes a group of one member and returns its id and generation.
func mustJoin(t *testing.T, s *Server, version int16, group string) (string, int32) {
	t.Helper()
	resp := ask[kmsg.JoinGroupResponse](t, s, version, newJoin(group, ""))
	if version >= 4 {
		if resp.ErrorCode != kerr.MemberIDRequired.Code || resp.MemberID == "" {
			t.Fatalf("version %d: got %+v, want %v", version, resp, kerr.MemberIDRequired)
		}
		resp = ask[kmsg.JoinGroupResponse](t, s, version, newJoin(group, resp.MemberID))
	}
	if resp.ErrorCode != 0 || resp.LeaderID != resp.MemberID || len(resp.Members) != 1 || *resp.Protocol != "range" {
		t.Fatalf("version %d: got %+v", version, resp)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = group, resp.MemberID, resp.Generation
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: resp.MemberID, MemberAssignment: []byte("mine")}}
	synced := ask[kmsg.SyncGroupResponse](t, s, min(version, 5), sync)
	if synced.ErrorCode != 0 || string(synced.MemberAssignment) != "mine" {
		t.Fatalf("version %d: got %+v", version, synced)
	}
	return resp.MemberID, resp.Generation
}

// Every version of the calls that a member makes.
func TestGroupMemberVersions(t *testing.T) {
	s, _ := groupServer(t)
	for version := range int16(10) {
		id := fmt.Sprint("g", version)
		member, generation := mustJoin(t, s, version, id)
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.MemberID, beat.Generation = id, member, generation
		if resp := ask[kmsg.HeartbeatResponse](t, s, min(version, 4), beat); resp.ErrorCode != 0 {
			t.Errorf("heartbeat version %d: %v", version, kerr.ErrorForCode(resp.ErrorCode))
		}
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = id, member
		leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}, {MemberID: "stranger"}}
		resp := ask[kmsg.LeaveGroupResponse](t, s, min(version, 5), leave)
		if resp.ErrorCode != 0 {
			t.Errorf("leave version %d: %v", version, kerr.ErrorForCode(resp.ErrorCode))
		}
		if version >= 3 && (resp.Members[0].ErrorCode != 0 || resp.Members[1].ErrorCode != kerr.UnknownMemberID.Code) {
			t.Errorf("leave version %d: %+v", version, resp.Members)
		}
		if resp = ask[kmsg.LeaveGroupResponse](t, s, 1, leave); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("second leave: %v", kerr.ErrorForCode(resp.ErrorCode))
		}
	}
}

func TestGroupRefusals(t *testing.T) {
	s, _ := groupServer(t)
	join := ask[kmsg.JoinGroupResponse](t, s, 9, newJoin("", ""))
	if join.ErrorCode != kerr.InvalidGroupID.Code || join.Generation != -1 || join.Protocol != nil {
		t.Errorf("join without a name: got %+v", join)
	}
	if join = ask[kmsg.JoinGroupResponse](t, s, 6, newJoin("g", "stranger")); join.ErrorCode != kerr.UnknownMemberID.Code || join.Protocol == nil {
		t.Errorf("join of a stranger: got %+v", join)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group = "g"
	if resp := ask[kmsg.SyncGroupResponse](t, s, 5, sync); resp.ErrorCode != kerr.InconsistentGroupProtocol.Code {
		t.Errorf("sync 5 without a protocol: %v", kerr.ErrorForCode(resp.ErrorCode))
	}
	if resp := ask[kmsg.SyncGroupResponse](t, s, 4, sync); resp.ErrorCode != kerr.UnknownMemberID.Code {
		t.Errorf("sync 4 of a stranger: %v", kerr.ErrorForCode(resp.ErrorCode))
	}
	for version := range int16(3) {
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = "nobody", "m"
		if resp := ask[kmsg.LeaveGroupResponse](t, s, version, leave); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("leave %d of an unknown group: %v", version, kerr.ErrorForCode(resp.ErrorCode))
		}
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "nobody"
	for range 3 { // none, one, two members
		resp := ask[kmsg.LeaveGroupResponse](t, s, 5, leave)
		if resp.ErrorCode != 0 || len(resp.Members) != len(leave.Members) {
			t.Errorf("leave of an unknown group: %+v", resp)
		}
		for _, m := range resp.Members {
			if m.MemberID != "m" || m.ErrorCode != kerr.UnknownMemberID.Code {
				t.Errorf("leave of an unknown group: %+v", m)
			}
		}
		leave.Members = append(leave.Members, kmsg.LeaveGroupRequestMember{MemberID: "m"})
	}
	for group, want := range map[string]*kerr.Error{"": kerr.InvalidGroupID, "nobody": kerr.GroupIDNotFound} {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		if resp := ask[kmsg.OffsetDeleteResponse](t, s, 0, req); resp.ErrorCode != want.Code {
			t.Errorf("offset delete of group %q: %v, want %v", group, kerr.ErrorForCode(resp.ErrorCode), want)
		}
	}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"nobody", "x", "nobody"}
	if resp := ask[kmsg.DeleteGroupsResponse](t, s, 2, del); len(resp.Groups) != 2 || resp.Groups[0].Group != "nobody" || resp.Groups[1].Group != "x" {
		t.Errorf("delete of a group that is there twice: %+v", resp.Groups)
	}
}

// newCommit commits offset 5 for partitions that exist and for some that do not.
func newCommit(group string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	for id, name := range []string{2: "t", 3: "u", 99: "gone"} {
		if name == "" {
			continue
		}
		t := kmsg.OffsetCommitRequestTopic{Topic: name, TopicID: [16]byte{15: byte(id)}}
		for p := range int32(2) {
			t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{
				Partition: p, Offset: 5, LeaderEpoch: 3, Metadata: kmsg.StringPtr("note"),
			})
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

func TestOffsetVersions(t *testing.T) {
	for version := range int16(11) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			s, _ := groupServer(t)
			resp := ask[kmsg.OffsetCommitResponse](t, s, version, newCommit("g"))
			var codes []int16
			for _, topic := range resp.Topics {
				for _, p := range topic.Partitions {
					codes = append(codes, p.ErrorCode)
				}
			}
			gone := kerr.UnknownTopicOrPartition.Code
			if version >= 10 {
				gone = kerr.UnknownTopicID.Code
			}
			if diff := cmp.Diff([]int16{0, 0, 0, kerr.UnknownTopicOrPartition.Code, gone, gone}, codes); diff != "" {
				t.Errorf("commit (-want +got):\n%s", diff)
			}
			checkFetch(t, fetchByTopic(t, s, version, false), "t-0=5 t-1=5 u-0=5 u-1=-1 gone-0=-1")
			if version >= 2 {
				checkFetch(t, fetchByTopic(t, s, version, true), "t-0=5 t-1=5 u-0=5")
			}
		})
	}
}

// fetchByTopic reads offsets of some partitions, or all, of group g as topic-partition=offset.
func fetchByTopic(t *testing.T, s *Server, version int16, all bool) string {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "g"
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = "g"
	ids := map[[16]byte]string{{15: 2}: "t", {15: 3}: "u", {15: 99}: "gone"}
	add := func(name string, id byte, partitions ...int32) {
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: partitions})
		one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: name, TopicID: [16]byte{15: id}, Partitions: partitions})
	}
	if !all {
		add("t", 2, 0, 1)
		add("u", 3, 0, 1)
		add("gone", 99, 0)
	}
	req.Groups = []kmsg.OffsetFetchRequestGroup{one}
	resp := ask[kmsg.OffsetFetchResponse](t, s, version, req)
	var got []string
	note := func(name string, id [16]byte, partition int32, offset int64, code int16) {
		if name == "" {
			name = ids[id]
		}
		missing := version == 0 && offset < 0 || version >= 10 && name == "gone"
		if (code != 0) != missing {
			t.Errorf("%s-%d: %v", name, partition, kerr.ErrorForCode(code))
		}
		got = append(got, fmt.Sprintf("%s-%d=%d", name, partition, offset))
	}
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			note(topic.Topic, [16]byte{}, p.Partition, p.Offset, p.ErrorCode)
		}
	}
	for _, g := range resp.Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				note(topic.Topic, topic.TopicID, p.Partition, p.Offset, p.ErrorCode)
			}
		}
	}
	return strings.Join(got, " ")
}

func checkFetch(t *testing.T, got, want string) {
	t.Helper()
	sorted := func(s string) string {
		parts := strings.Fields(s)
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	if sorted(got) != sorted(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A group's error stands where each version has room for it.
func TestOffsetFetchErrors(t *testing.T) {
	s, _ := groupServer(t)
	s.Groups.Resign(0, 0)
	s.Groups.Resign(1, 0)
	s.Groups.Resign(2, 0)
	want := kerr.NotCoordinator.Code
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "g"
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g"}, {Group: "h"}}
	if resp := ask[kmsg.OffsetFetchResponse](t, s, 1, req); resp.Topics[0].Partitions[0].ErrorCode != want {
		t.Errorf("version 1: got %+v", resp)
	}
	if resp := ask[kmsg.OffsetFetchResponse](t, s, 7, req); resp.ErrorCode != want {
		t.Errorf("version 7: got %+v", resp)
	}
	if resp := ask[kmsg.OffsetFetchResponse](t, s, 9, req); resp.Groups[0].ErrorCode != want || resp.Groups[1].ErrorCode != want {
		t.Errorf("version 9: got %+v", resp)
	}
}

// What the log refuses is told as Kafka's coordinator tells it.
func TestGroupAppendErrors(t *testing.T) {
	f := func(err error, want *kerr.Error) {
		t.Helper()
		s, log := groupServer(t)
		log.err = err
		req := newCommit("g")
		req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic != "t" })
		resp := ask[kmsg.OffsetCommitResponse](t, s, 8, req)
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != want.Code {
			t.Errorf("%v: got %v, want %v", err, kerr.ErrorForCode(got), want)
		}
	}
	f(replica.ErrNotEnoughReplicas, kerr.CoordinatorNotAvailable)
	f(replica.ErrTimedOut, kerr.CoordinatorNotAvailable)
	f(replica.ErrUnknownTopicOrPartition, kerr.CoordinatorNotAvailable)
	f(fmt.Errorf("partition: %w", replica.ErrNotLeaderOrFollower), kerr.NotCoordinator)
	f(replica.ErrOffline, kerr.NotCoordinator)
	f(record.ErrTooLarge, kerr.UnknownServerError)
	f(&fs.PathError{Op: "write", Path: "x", Err: syscall.EIO}, kerr.NotCoordinator)
	f(errors.New("unheard of"), kerr.UnknownServerError)
}

func TestFindCoordinatorVersions(t *testing.T) {
	s, _ := groupServer(t)
	find := func(version int16, kind int8, keys ...string) []kmsg.FindCoordinatorResponseCoordinator {
		t.Helper()
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorType, req.CoordinatorKeys = keys[0], kind, keys
		resp := ask[kmsg.FindCoordinatorResponse](t, s, version, req)
		if version >= 4 {
			return resp.Coordinators
		}
		return []kmsg.FindCoordinatorResponseCoordinator{{
			Key: keys[0], NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port, ErrorCode: resp.ErrorCode,
		}}
	}
	for version := range int16(7) {
		got := find(version, 0, "", "a") // "" is in partition 0, "a" in partition 1, whose leader is fenced
		if c := got[0]; c.ErrorCode != 0 || c.NodeID != 1 || c.Host != "hostPLAINTEXT" || c.Port != 9001 {
			t.Errorf("version %d: got %+v", version, c)
		}
		if version >= 4 && (len(got) != 2 || got[1].Key != "a" || got[1].ErrorCode != kerr.CoordinatorNotAvailable.Code || got[1].NodeID != -1) {
			t.Errorf("version %d: got %+v", version, got)
		}
		for kind, want := range []*kerr.Error{1: kerr.TransactionalIDAuthorizationFailed, 2: kerr.InvalidRequest, 3: kerr.InvalidRequest} {
			if kind == 0 || version == 0 {
				continue
			}
			if c := find(version, int8(kind), "txn")[0]; c.ErrorCode != want.Code || c.NodeID != -1 {
				t.Errorf("version %d, type %d: got %+v, want %v", version, kind, c, want)
			}
		}
	}
}

func TestGroupAdminVersions(t *testing.T) {
	s, _ := groupServer(t)
	member, _ := mustJoin(t, s, 9, "busy")
	ask[kmsg.OffsetCommitResponse](t, s, 8, newCommit("stored"))
	for version := range int16(7) {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups, req.IncludeAuthorizedOperations = []string{"busy", "stored", "none"}, true
		got := ask[kmsg.DescribeGroupsResponse](t, s, version, req).Groups
		if g := got[0]; g.State != "Stable" || g.Protocol != "range" || len(g.Members) != 1 || g.Members[0].MemberID != member || string(g.Members[0].MemberAssignment) != "mine" {
			t.Errorf("version %d: got %+v", version, g)
		}
		if g := got[1]; g.State != "Empty" || g.ProtocolType != "" || g.ErrorCode != 0 {
			t.Errorf("version %d: got %+v", version, g)
		}
		if g := got[2]; g.State != "Dead" || (g.ErrorCode == kerr.GroupIDNotFound.Code) != (version >= 6) {
			t.Errorf("version %d: got %+v", version, g)
		}
	}
	list := func(version int16, states, types []string) string {
		t.Helper()
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter, req.TypesFilter = states, types
		var names []string
		for _, g := range ask[kmsg.ListGroupsResponse](t, s, version, req).Groups {
			names = append(names, g.Group)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for version := range int16(6) {
		if got := list(version, nil, nil); got != "busy stored" {
			t.Errorf("list version %d: got %q", version, got)
		}
	}
	if got := list(5, []string{"stable", "Dead"}, []string{"CLASSIC"}); got != "busy" {
		t.Errorf("filtered: got %q", got)
	}
	if got := list(5, nil, []string{"share"}); got != "" {
		t.Errorf("filtered: got %q", got)
	}
	for version := range int16(4) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"busy", "stored", "none"}
		var codes []int16
		for _, g := range ask[kmsg.DeleteGroupsResponse](t, s, version, req).Groups {
			codes = append(codes, g.ErrorCode)
		}
		stored := kerr.GroupIDNotFound.Code
		if version == 0 {
			stored = 0
		}
		if want := []int16{kerr.NonEmptyGroup.Code, stored, kerr.GroupIDNotFound.Code}; !slices.Equal(codes, want) {
			t.Errorf("delete version %d: got %v, want %v", version, codes, want)
		}
	}
}

func TestOffsetDelete(t *testing.T) {
	s, _ := groupServer(t)
	ask[kmsg.OffsetCommitResponse](t, s, 8, newCommit("g"))
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = "g"
	for _, name := range []string{"t", "gone"} {
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: name, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 7}}})
	}
	resp := ask[kmsg.OffsetDeleteResponse](t, s, 0, req)
	unknown := kerr.UnknownTopicOrPartition.Code
	var codes []int16
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	if want := []int16{0, unknown, unknown, unknown}; resp.ErrorCode != 0 || !slices.Equal(codes, want) {
		t.Errorf("got %d, %v, want %v", resp.ErrorCode, codes, want)
	}
	checkFetch(t, fetchByTopic(t, s, 8, true), "t-1=5 u-0=5")
	req.Group = "none"
	if resp = ask[kmsg.OffsetDeleteResponse](t, s, 0, req); resp.ErrorCode != kerr.GroupIDNotFound.Code {
		t.Errorf("unknown group: got %+v", resp)
	}
}

// A request that waits ends with its connection, and with the server.
func TestJoinEndsWithContext(t *testing.T) {
	s, _ := groupServer(t)
	mustJoin(t, s, 3, "g")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if got := s.Groups.Join(ctx, joinRequest(new(Request), newJoin("g", ""))); got.Err != coordinator.ErrClosed {
		t.Errorf("got %v, want %v", got.Err, coordinator.ErrClosed)
	}
}
