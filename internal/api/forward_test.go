package api

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// A way is the way to another node's controller, which answers on a Server of controller listeners.
type way struct {
	t     *testing.T
	leads atomic.Bool
	to    *Server // nil: nobody is known to lead
	asked int
	last  kmsg.Request
	then  func() // what happens behind each request, if it is not nil
}

func (w *way) Leads() bool { return w.leads.Load() }

func (w *way) Ask(ctx context.Context, req kmsg.Request, max int16) (kmsg.Response, error) {
	if w.to == nil {
		return nil, ErrNoController
	}
	w.asked++
	w.last = req
	defer func() {
		if w.then != nil {
			w.then()
		}
	}()
	a := w.to.find(req.Key())
	if a == nil {
		return nil, net.ErrClosed
	}
	req.SetVersion(min(a.max, max))
	r := &Request{Key: req.Key(), Version: req.GetVersion(), Listener: "CONTROLLER", Body: req.AppendTo(nil)}
	answer := new(wire.Response)
	if err := w.to.Handle(ctx, r, answer); err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(answer.Buf); err != nil {
		w.t.Errorf("answer of %s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

// notLeading is the way of a node whose controller is not the active one.
func notLeading() *way { return &way{} }

// controllersOf returns the Server of the controller listeners of a node, whose broker is s.
func controllersOf(s *Server, active ActiveController) *Server {
	d := s.Deps
	d.Active, d.Brokers, d.Partitions = active, s.Controller.(BrokerController), s.Controller.(PartitionController)
	return NewOfControllers(d)
}

// twoNodes are a broker whose controller is active, its controller listener, and another broker that knows it.
func twoNodes(t *testing.T) (leader, follower *Server, to *way) {
	leader = cluster(t)
	there := &way{}
	there.leads.Store(true)
	to = &way{t: t, to: controllersOf(leader, there)}
	d := leader.Deps
	d.Controller, d.Active = &elsewhere{}, to
	return leader, New(d), to
}

// What the controller decides it decides wherever a client asks, and the client gets its answer.
func TestForward(t *testing.T) {
	leader, follower, to := twoNodes(t)
	created := createTopic(t, follower, newTestTopic("orders", 3, "retention.ms", "1000"), 0)
	if created.NumPartitions != 3 || len(leader.Metadata().Topic("orders").Partitions) != 3 {
		t.Errorf("created %+v", created)
	}
	createTopic(t, follower, newTestTopic("orders", 3), kerr.TopicAlreadyExists.Code)
	if to.asked != 2 {
		t.Errorf("the controller was asked %d times, want 2", to.asked)
	}
	if e := to.last.(*kmsg.EnvelopeRequest); string(e.RequestPrincipal) != "\x00\x00\x05User\x0aANONYMOUS\x00\x00" {
		t.Errorf("the principal is %q", e.RequestPrincipal)
	}
	for version := range int16(8) { // with and without tags in the header
		if version < 2 {
			continue
		}
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Topics = []kmsg.CreateTopicsRequestTopic{newTestTopic("orders", 3)}
		if got := ask[kmsg.CreateTopicsResponse](t, follower, version, req).Topics[0].ErrorCode; got != kerr.TopicAlreadyExists.Code {
			t.Errorf("version %d: error %d", version, got)
		}
	}
	asked := to.asked
	ask[kmsg.MetadataResponse](t, follower, 12, kmsg.NewPtrMetadataRequest())
	if to.asked != asked {
		t.Error("Metadata was sent on")
	}
}

// A request is decided here when this node becomes the controller while it looks for one, and refused by this node when
// there is none until the client's time is up.
func TestForwardFindsNoController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := imageServer(t, "", configuredCluster()...)
		here := &elsewhere{}
		to := &way{t: t}
		d := s.Deps
		d.Controller, d.Active = here, to
		s = New(d)
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Topics = []kmsg.CreateTopicsRequestTopic{newTestTopic("new", 1)}
		began := time.Now()
		if got := ask[kmsg.CreateTopicsResponse](t, s, 7, req).Topics[0].ErrorCode; got != kerr.NotController.Code || here.asked != 1 {
			t.Errorf("error %d, and the controller here was asked %d times", got, here.asked)
		}
		if waited := time.Since(began); waited < forwardMax || waited > forwardMax+time.Second {
			t.Errorf("the controller was looked for for %v", waited)
		}
		go func() {
			time.Sleep(time.Second)
			to.leads.Store(true)
		}()
		began = time.Now()
		if ask[kmsg.CreateTopicsResponse](t, s, 7, req); here.asked != 2 || time.Since(began) > 2*time.Second {
			t.Errorf("after %v the controller here was asked %d times", time.Since(began), here.asked)
		}
	})
}

// A controller that is not the active one any more says so, and the one that is is looked for.
func TestForwardFollowsTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := imageServer(t, "", configuredCluster()...)
		deposed := s.Deps
		deposed.Controller, deposed.Active = &elsewhere{}, notLeading()
		to := &way{t: t, to: NewOfControllers(deposed)}
		decides := &decider{}
		active := s.Deps
		active.Controller = decides
		to.then = func() { to.to = NewOfControllers(active) }
		d := s.Deps
		d.Controller, d.Active = &elsewhere{}, to
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("orders")}}
		if got := ask[kmsg.DeleteTopicsResponse](t, New(d), 6, req).Topics[0]; got.ErrorCode != 0 || to.asked != 2 || decides.deleted != 1 {
			t.Errorf("%+v after %d questions, %d topics were deleted", got, to.asked, decides.deleted)
		}
	})
}

// A decider deletes topics.
type decider struct {
	elsewhere
	deleted int
}

func (d *decider) DeleteTopics(_ context.Context, topics []controller.TopicRef) ([]controller.DeletedTopic, error) {
	d.deleted += len(topics)
	return make([]controller.DeletedTopic, len(topics)), nil
}

// What is no request that a broker sends on is refused, and harms nobody.
func TestEnvelope(t *testing.T) {
	s := imageServer(t, "", configuredCluster()...)
	f := func(name string, active ActiveController, data []byte, want int16) {
		t.Helper()
		d := s.Deps
		d.Active, d.Controller = active, &decider{}
		req := kmsg.NewPtrEnvelopeRequest()
		req.RequestData = data
		if got := ask[kmsg.EnvelopeResponse](t, NewOfControllers(d), 0, req); got.ErrorCode != want || (len(got.ResponseData) > 0) != (want == 0) {
			t.Errorf("%s: error %d, want %d, with %d bytes", name, got.ErrorCode, want, len(got.ResponseData))
		}
	}
	inner := func(key kmsg.Key, version int16, body string) []byte {
		return wire.AppendRequest(nil, &Request{Key: int16(key), Version: version, Body: []byte(body)})
	}
	deletion := inner(kmsg.DeleteTopics, 3, "\x00\x00\x00\x00\x00\x00\x00\x00")
	f("a deletion", nil, deletion, 0)
	f("the controller has another node", notLeading(), deletion, kerr.NotController.Code)
	f("nothing", nil, nil, kerr.InvalidRequest.Code)
	f("what clients do not ask the controller", nil, inner(kmsg.ApiVersions, 0, ""), kerr.InvalidRequest.Code)
	f("an envelope in an envelope", nil, inner(kmsg.Envelope, 0, ""), kerr.InvalidRequest.Code)
	f("an unknown key", nil, inner(31000, 0, ""), kerr.InvalidRequest.Code)
	f("a version of the future", nil, inner(kmsg.DeleteTopics, 99, ""), kerr.UnsupportedVersion.Code)

	req := kmsg.NewPtrEnvelopeRequest()
	req.RequestData = inner(kmsg.DeleteTopics, 3, "\xff")
	r := &Request{Key: req.Key(), Body: req.AppendTo(nil)}
	d := s.Deps
	if err := NewOfControllers(d).Handle(t.Context(), r, new(wire.Response)); !errors.Is(err, errMalformed) {
		t.Errorf("a body that is cut: %v", err)
	}
}

// A broker registers with the controller of another node, and gets producer ids and topics from there.
func TestClusterController(t *testing.T) {
	leader, follower, to := twoNodes(t)
	c := &ClusterController{Active: to, ClusterID: leader.ClusterID, BrokerEpoch: func() int64 { return 0 }}
	self := leader.Metadata().Broker(leader.NodeID)
	epoch, err := c.RegisterBroker(t.Context(), controller.Registration{
		ID: 7, IncarnationID: self.IncarnationID, Endpoints: self.Endpoints, LogDirs: nil, PreviousEpoch: -1,
	})
	if controller.KindOf(err) != controller.InvalidRegistration {
		t.Errorf("no directory: epoch %d, %v", epoch, err)
	}
	dirs := []uuid.UUID{{1: 7}}
	rack := "r1"
	epoch, err = c.RegisterBroker(t.Context(), controller.Registration{
		ID: 7, IncarnationID: self.IncarnationID, Endpoints: self.Endpoints, LogDirs: dirs, Rack: &rack, PreviousEpoch: -1,
	})
	if got := leader.Metadata().Broker(7); err != nil || got == nil || got.Epoch != epoch || *got.Rack != rack || got.LogDirs[0] != dirs[0] {
		t.Errorf("epoch %d, %v: %+v", epoch, err, got)
	}
	a, err := c.Heartbeat(t.Context(), controller.Heartbeat{Broker: 7, BrokerEpoch: epoch, MetadataOffset: epoch, CordonedDirs: dirs})
	if want := (controller.HeartbeatAnswer{CaughtUp: true}); err != nil || a != want {
		t.Errorf("heartbeat: %+v, %v", a, err)
	}
	if _, err := c.Heartbeat(t.Context(), controller.Heartbeat{Broker: 7, BrokerEpoch: epoch - 1}); controller.KindOf(err) != controller.StaleBrokerEpoch {
		t.Errorf("heartbeat of an earlier life: %v", err)
	}
	first, count, err := c.AllocateProducerIDs(t.Context(), 7, epoch)
	if err != nil || count != 1000 {
		t.Errorf("ids %d+%d, %v", first, count, err)
	}
	if _, _, err := c.AllocateProducerIDs(t.Context(), 7, epoch-1); controller.KindOf(err) != controller.StaleBrokerEpoch {
		t.Errorf("an old epoch: %v", err)
	}
	created, err := c.CreateTopics(t.Context(), []controller.NewTopic{follower.newTopic("made"), {Name: "bad name", Partitions: 1, ReplicationFactor: 1}}, false)
	if err != nil || len(created) != 2 || created[0].Err != nil || controller.KindOf(created[1].Err) != controller.InvalidTopic {
		t.Errorf("%+v, %v", created, err)
	}
	made := leader.Metadata().Topic("made")
	at := made.Partitions[0].Replicas[0]
	list := []controller.DirectoryAssignment{{TopicID: made.ID, Partition: 0, Directory: uuid.UUID{9: 9}}}
	if err := c.AssignDirectories(t.Context(), at, list); err != nil {
		t.Error(err)
	}
	if got, _ := leader.Metadata().Topic("made").Partitions[0].Directory(at); got != list[0].Directory {
		t.Errorf("the replica is in %v", got)
	}
	c.ClusterID = "elsewhere"
	if _, err := c.RegisterBroker(t.Context(), controller.Registration{}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a broker of another cluster: %v", err)
	}
}

// What a heartbeat and the places of replicas say comes over as it was said.
func TestBrokerRequests(t *testing.T) {
	ids := []uuid.UUID{{0: 1}, {0: 2}}
	for _, h := range []controller.Heartbeat{
		{}, {Broker: 3, BrokerEpoch: 7, MetadataOffset: 9, WantFence: true}, {WantShutdown: true, OfflineDirs: ids},
		{CordonedDirs: []uuid.UUID{}}, {CordonedDirs: ids[:1]},
	} {
		req := heartbeatRequest(&h)
		req.SetVersion(2)
		got := new(kmsg.BrokerHeartbeatRequest)
		got.SetVersion(2)
		if err := got.ReadFrom(req.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, heartbeatOf(got)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	list := []controller.DirectoryAssignment{
		{TopicID: ids[0], Partition: 0, Directory: ids[1]}, {TopicID: ids[0], Partition: 1, Directory: ids[1]},
		{TopicID: ids[1], Partition: 0, Directory: ids[1]}, {TopicID: ids[0], Partition: 2, Directory: ids[0]},
	}
	if diff := cmp.Diff(list, assignmentsOf(assignmentRequest(1, 2, list))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
