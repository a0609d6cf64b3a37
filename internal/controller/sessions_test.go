package controller

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A fleet is brokers as a controller of several sees them, decision by decision.
type fleet struct {
	t        *testing.T
	img      *metadata.Image
	sessions *sessions
	now      time.Time
	epoch    int32
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, img: metadata.NewImage("c"), sessions: newSessions(9 * time.Second), now: time.UnixMilli(1_700_000_000_000), epoch: 1}
}

func (f *fleet) given() given {
	return given{Rules: testRules(), now: f.now, nextOffset: f.img.Offset + 1, epoch: f.epoch, random: &seed{}}
}

// apply takes over what was decided and holds it against what must always be true.
func (f *fleet) apply(records []metadata.Record, err error) error {
	f.t.Helper()
	if err != nil || len(records) == 0 {
		return err
	}
	next, _, err := f.img.Apply(records, f.img.Offset+int64(len(records)), 1)
	if err != nil {
		f.t.Fatalf("records that do not fit: %v", err)
	}
	for topic := range next.Topics() {
		for n, p := range topic.Partitions {
			f.checkPartition(fmt.Sprintf("%s-%d", topic.Name, n), f.img.Topic(topic.Name), n, p, next)
		}
	}
	f.img = next
	return nil
}

func (f *fleet) checkPartition(name string, before *metadata.Topic, n int, p *metadata.Partition, img *metadata.Image) {
	f.t.Helper()
	if len(p.ISR) == 0 || slices.ContainsFunc(p.ISR, func(id int32) bool { return !slices.Contains(p.Replicas, id) }) {
		f.t.Errorf("%s: in sync are %v of %v", name, p.ISR, p.Replicas)
	}
	if p.Leader != metadata.NoLeader && (!slices.Contains(p.ISR, p.Leader) || !img.Broker(p.Leader).Active()) {
		f.t.Errorf("%s is led by %d, in sync are %v", name, p.Leader, p.ISR)
	}
	if before == nil {
		return
	}
	if old := before.Partitions[n]; p.LeaderEpoch < old.LeaderEpoch || p.PartitionEpoch < old.PartitionEpoch || p.Leader != old.Leader && p.LeaderEpoch == old.LeaderEpoch {
		f.t.Errorf("%s: leader %d in epoch %d (%d) became %d in %d (%d)", name, old.Leader, old.LeaderEpoch, old.PartitionEpoch, p.Leader, p.LeaderEpoch, p.PartitionEpoch)
	}
}

func fleetRegistration(id int32, life int) Registration {
	r := registration(id)
	r.IncarnationID = uuid.UUID{0: byte(id), 1: byte(life), 2: byte(life >> 8), 15: 1}
	return r
}

func (f *fleet) register(r Registration) (int64, error) {
	f.t.Helper()
	records, epoch, err := f.sessions.register(f.img, r, f.given())
	return epoch, f.apply(records, err)
}

// beat sends a heartbeat of a broker that has all the metadata.
func (f *fleet) beat(id int32, change func(*Heartbeat)) (HeartbeatAnswer, error) {
	f.t.Helper()
	h := Heartbeat{Broker: id, BrokerEpoch: -1, MetadataOffset: f.img.Offset}
	if b := f.img.Broker(id); b != nil {
		h.BrokerEpoch = b.Epoch
	}
	change(&h)
	records, a, err := f.sessions.heartbeat(f.img, &h, f.given())
	return a, f.apply(records, err)
}

func serving(*Heartbeat) {}

// fenceSilent does what the controller does every now and then, and returns who was fenced.
func (f *fleet) fenceSilent() (fenced []int32) {
	f.t.Helper()
	f.sessions.enter(f.img, f.given())
	for b := f.sessions.silent(f.img, f.now); b != nil; b = f.sessions.silent(f.img, f.now) {
		fenced = append(fenced, b.ID)
		f.apply(fence(f.img, b), nil)
	}
	return fenced
}

// inService registers brokers and puts them into service.
func (f *fleet) inService(ids ...int32) {
	f.t.Helper()
	for _, id := range ids {
		if _, err := f.register(fleetRegistration(id, 1)); err != nil {
			f.t.Fatal(err)
		}
		if a, err := f.beat(id, serving); err != nil || a.Fenced {
			f.t.Fatalf("broker %d: %+v, %v", id, a, err)
		}
	}
}

func (f *fleet) create(name string, partitions int32, factor int16) {
	f.t.Helper()
	g := f.given()
	binary.BigEndian.PutUint64(g.random.bytes[:], uint64(g.nextOffset))
	records, created, err := createTopics(f.img, []NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: factor}}, g)
	if err == nil {
		err = created[0].Err
	}
	if err := f.apply(records, err); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) wantLeader(name string, partition int, want int32) {
	f.t.Helper()
	if got := f.img.Topic(name).Partitions[partition].Leader; got != want {
		f.t.Errorf("%s-%d is led by %d, want %d", name, partition, got, want)
	}
}

func wantHeartbeat(t *testing.T, what string, a HeartbeatAnswer, err error, want HeartbeatAnswer) {
	t.Helper()
	if err != nil || a != want {
		t.Errorf("%s: %+v, %v, want %+v", what, a, err, want)
	}
}

// A broker goes into service when it is ready and has its registration, and out of it when it is not heard of.
func TestHeartbeat(t *testing.T) {
	f := newFleet(t)
	epoch, err := f.register(fleetRegistration(1, 1))
	if b := f.img.Broker(1); err != nil || !b.Fenced || b.Epoch != epoch {
		t.Fatalf("%+v, %v", b, err)
	}
	starting := func(h *Heartbeat) { h.WantFence = true }
	late := func(h *Heartbeat) { h.MetadataOffset = epoch - 1 }
	a, err := f.beat(1, func(h *Heartbeat) { starting(h); late(h) })
	wantHeartbeat(t, "starting, behind", a, err, HeartbeatAnswer{Fenced: true})
	a, err = f.beat(1, starting)
	wantHeartbeat(t, "starting", a, err, HeartbeatAnswer{CaughtUp: true, Fenced: true})
	a, err = f.beat(1, late)
	wantHeartbeat(t, "ready, behind", a, err, HeartbeatAnswer{Fenced: true})
	a, err = f.beat(1, serving)
	wantHeartbeat(t, "ready", a, err, HeartbeatAnswer{CaughtUp: true})
	if f.img.Broker(1).Fenced {
		t.Error("it is fenced still")
	}
	a, err = f.beat(1, starting)
	wantHeartbeat(t, "not ready any more", a, err, HeartbeatAnswer{CaughtUp: true, Fenced: true})
	if _, err := f.beat(1, func(h *Heartbeat) { h.BrokerEpoch-- }); KindOf(err) != StaleBrokerEpoch {
		t.Errorf("an earlier life: %v", err)
	}
	if _, err := f.beat(2, serving); KindOf(err) != StaleBrokerEpoch {
		t.Errorf("nobody: %v", err)
	}

	if a, err := f.beat(1, serving); err != nil || a.Fenced {
		t.Fatal(a, err)
	}
	f.now = f.now.Add(9 * time.Second)
	if got := f.fenceSilent(); len(got) > 0 {
		t.Errorf("after a session to the end %v are fenced", got)
	}
	f.now = f.now.Add(time.Millisecond)
	if got := f.fenceSilent(); !slices.Equal(got, []int32{1}) || !f.img.Broker(1).Fenced {
		t.Errorf("after a session %v are fenced", got)
	}
}

// A new controller does not know when the one before it heard of a broker: each has a session from now on.
func TestSessionsOfANewController(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2)
	f.now = f.now.Add(time.Hour)
	f.epoch++
	if got := f.fenceSilent(); len(got) > 0 {
		t.Errorf("at once %v are fenced", got)
	}
	f.now = f.now.Add(9 * time.Second)
	if _, err := f.beat(2, serving); err != nil {
		t.Error(err)
	}
	f.now = f.now.Add(time.Second)
	if got := f.fenceSilent(); !slices.Equal(got, []int32{1}) {
		t.Errorf("after a session %v are fenced, want 1", got)
	}
}

// Two brokers of one id: the second waits for the first one's session to end, unless it has a directory of it.
func TestRegistrationOfASecondBroker(t *testing.T) {
	f := newFleet(t)
	f.inService(1)
	other := fleetRegistration(1, 2)
	other.LogDirs = []uuid.UUID{{1: 77}}
	if _, err := f.register(other); KindOf(err) != DuplicateBrokerRegistration {
		t.Errorf("with other directories: %v", err)
	}
	again := fleetRegistration(1, 2)
	again.LogDirs = append(again.LogDirs, uuid.UUID{1: 78})
	before := f.img.Broker(1).Epoch
	epoch, err := f.register(again)
	if err != nil || epoch <= before || !f.img.Broker(1).Fenced {
		t.Errorf("with a directory of the first: epoch %d after %d, %v", epoch, before, err)
	}
	if a, err := f.beat(1, serving); err != nil || a.Fenced {
		t.Errorf("%+v, %v", a, err)
	}
	f.now = f.now.Add(9*time.Second + 1)
	if _, err := f.register(other); err != nil {
		t.Errorf("after a session: %v", err)
	}
}

// Who stops has others lead first, and stops when they know.
func TestControlledShutdown(t *testing.T) {
	f := newFleet(t)
	f.inService(1, 2, 3)
	f.create("t", 6, 2)
	f.create("alone", 3, 1)
	stop := func(h *Heartbeat) { h.WantShutdown = true }
	a, err := f.beat(1, stop)
	wantHeartbeat(t, "it leads", a, err, HeartbeatAnswer{CaughtUp: true})
	b := f.img.Broker(1)
	if !b.InControlledShutdown || b.Fenced || leads(f.img, 1) {
		t.Errorf("%+v, leads=%v", b, leads(f.img, 1))
	}
	for n, p := range f.img.Topic("t").Partitions {
		if slices.Contains(p.ISR, 1) || p.Leader == metadata.NoLeader {
			t.Errorf("t-%d: leader %d, in sync %v", n, p.Leader, p.ISR)
		}
	}
	a, err = f.beat(1, stop)
	wantHeartbeat(t, "others do not know yet", a, err, HeartbeatAnswer{CaughtUp: true})
	f.beat(2, serving)
	a, err = f.beat(1, stop)
	wantHeartbeat(t, "one does not know yet", a, err, HeartbeatAnswer{CaughtUp: true})
	f.beat(3, serving)
	a, err = f.beat(1, stop)
	wantHeartbeat(t, "all know", a, err, HeartbeatAnswer{CaughtUp: true, Fenced: true, Shutdown: true})
	a, err = f.beat(1, stop)
	wantHeartbeat(t, "once more", a, err, HeartbeatAnswer{CaughtUp: true, Fenced: true, Shutdown: true})

	if _, err := f.register(fleetRegistration(1, 2)); err != nil {
		t.Fatal(err)
	}
	if f.img.Broker(1).InControlledShutdown {
		t.Error("it is in controlled shutdown when it is back")
	}
	f.beat(1, serving)
	for n, p := range f.img.Topic("alone").Partitions {
		f.wantLeader("alone", n, p.Replicas[0])
	}
}

// Directories that fail take their replicas out of service, whatever else the broker says.
func TestHeartbeatOfFailedDirectories(t *testing.T) {
	f := newFleet(t)
	r := fleetRegistration(1, 1)
	r.LogDirs = []uuid.UUID{{1: 1}, {1: 2}}
	if _, err := f.register(r); err != nil {
		t.Fatal(err)
	}
	f.beat(1, serving)
	f.create("t", 1, 1)
	if err := f.apply(assignDirectories(f.img, 1, []DirectoryAssignment{{f.img.Topic("t").ID, 0, r.LogDirs[1]}}), nil); err != nil {
		t.Fatal(err)
	}
	f.wantLeader("t", 0, 1)
	failed := func(h *Heartbeat) { h.OfflineDirs = r.LogDirs[1:] }
	a, err := f.beat(1, failed)
	wantHeartbeat(t, "one fails", a, err, HeartbeatAnswer{CaughtUp: true})
	f.wantLeader("t", 0, metadata.NoLeader)
	offset := f.img.Offset
	a, err = f.beat(1, failed)
	wantHeartbeat(t, "the same", a, err, HeartbeatAnswer{CaughtUp: true})
	if f.img.Offset != offset {
		t.Error("the same failure is written twice")
	}
	a, err = f.beat(1, func(h *Heartbeat) { h.CordonedDirs = r.LogDirs[:1] })
	wantHeartbeat(t, "cordoned", a, err, HeartbeatAnswer{CaughtUp: true})
	if got := f.img.Broker(1).CordonedLogDirs; !slices.Equal(got, r.LogDirs[:1]) {
		t.Errorf("cordoned are %v", got)
	}
}

// Whatever brokers do, in any order: who leads is in sync and in service, epochs only grow (fleet.apply), and when all
// are in service again every partition has a leader.
func TestFleetHistories(t *testing.T) {
	for number := range uint64(300) {
		random := rand.New(rand.NewPCG(number, 7))
		f := newFleet(t)
		f.inService(1, 2, 3, 4)
		f.create("a", 4, 3)
		f.create("b", 4, 1)
		f.create("c", 4, 2)
		lives := map[int32]int{}
		for range 60 {
			id := int32(random.IntN(4) + 1)
			switch random.IntN(8) {
			case 0, 1, 2:
				f.beat(id, serving)
			case 3:
				f.beat(id, func(h *Heartbeat) { h.WantShutdown = true })
			case 4:
				f.beat(id, func(h *Heartbeat) { h.WantFence = true })
			case 5:
				lives[id]++
				f.register(fleetRegistration(id, 2+lives[id]))
			case 6:
				f.now = f.now.Add(time.Duration(random.IntN(8000)) * time.Millisecond)
				f.fenceSilent()
			case 7:
				f.epoch++
				f.now = f.now.Add(time.Duration(random.IntN(20000)) * time.Millisecond)
			}
		}
		for id := int32(1); id <= 4; id++ {
			lives[id]++
			if _, err := f.register(fleetRegistration(id, 2+lives[id])); err != nil {
				t.Fatal(err)
			}
			if a, err := f.beat(id, serving); err != nil || a.Fenced {
				t.Fatalf("history %d: broker %d: %+v, %v", number, id, a, err)
			}
		}
		for topic := range f.img.Topics() {
			for n, p := range topic.Partitions {
				if p.Leader == metadata.NoLeader {
					t.Fatalf("history %d: %s-%d has no leader; in sync are %v of %v", number, topic.Name, n, p.ISR, p.Replicas)
				}
			}
		}
	}
}
