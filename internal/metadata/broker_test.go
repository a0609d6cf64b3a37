package metadata

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

func TestBrokerEqual(t *testing.T) {
	testEqual(t, (*Broker).equal)
	if (&Broker{}).equal(&Broker{migratingZk: true}) {
		t.Error("a broker that migrates is equal to one that does not")
	}
}

// A directory is online unless the broker's list says otherwise, or it is lost.
func TestBrokerServes(t *testing.T) {
	f := func(dirs []uuid.UUID, dir uuid.UUID, want bool) {
		t.Helper()
		if got := (&Broker{LogDirs: dirs}).Serves(dir); got != want {
			t.Errorf("%v of %v: got %v", dir, dirs, got)
		}
	}
	listed := []uuid.UUID{id(1), id(2)}
	f(listed, id(1), true)
	f(listed, id(3), false)
	f(listed, uuid.Zero, true)
	f(listed, uuid.Unassigned, true)
	f(listed, uuid.Lost, false)
	f(nil, id(3), true)
	f(nil, uuid.Lost, false)
}

func TestBrokerCordoned(t *testing.T) {
	f := func(dirs, cordoned []uuid.UUID, want bool) {
		t.Helper()
		if got := (&Broker{LogDirs: dirs, CordonedLogDirs: cordoned}).Cordoned(); got != want {
			t.Errorf("%v of %v: got %v", cordoned, dirs, got)
		}
	}
	two := []uuid.UUID{id(1), id(2)}
	f(nil, nil, false)
	f(nil, two, false)
	f(two, nil, false)
	f(two, two[:1], false)
	f(two, two, true)
}

func TestImageOnline(t *testing.T) {
	listed := []uuid.UUID{id(1)}
	img, _ := mustApply(t, NewImage(""),
		&RegisterBrokerRecord{BrokerID: 1, LogDirs: listed}, &RegisterBrokerRecord{BrokerID: 2, LogDirs: listed, Fenced: true})
	p := &Partition{Replicas: []int32{1, 2, 3}, Directories: []uuid.UUID{id(1), id(1), id(1)}}
	f := func(p *Partition, broker int32, want bool) {
		t.Helper()
		if got := img.Online(p, broker); got != want {
			t.Errorf("broker %d of %v: got %v", broker, p.Replicas, got)
		}
	}
	f(p, 1, true)
	f(p, 2, false) // fenced
	f(p, 3, false) // not registered
	f(&Partition{Replicas: []int32{2, 3}}, 1, false)
	f(&Partition{Replicas: []int32{1}, Directories: []uuid.UUID{id(9)}}, 1, false)
}

// A change of a registration changes what it names: 1 switches on, -1 off.
func TestBrokerRegistrationChange(t *testing.T) {
	f := func(name string, before Broker, r BrokerRegistrationChangeRecord, want Broker) {
		t.Helper()
		img, _ := mustApply(t, NewImage(""), before.record())
		img, _ = mustApply(t, img, &r)
		if diff := cmp.Diff(&want, img.Broker(0), cmp.AllowUnexported(Broker{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	dirs, other := []uuid.UUID{id(1)}, []uuid.UUID{id(2)}
	off := Broker{LogDirs: dirs, CordonedLogDirs: dirs}
	on := Broker{LogDirs: dirs, CordonedLogDirs: dirs, Fenced: true, InControlledShutdown: true}
	f("nothing, off", off, BrokerRegistrationChangeRecord{}, off)
	f("nothing, on", on, BrokerRegistrationChangeRecord{}, on)
	f("on", off, BrokerRegistrationChangeRecord{Fenced: 1, InControlledShutdown: 1}, on)
	f("off", on, BrokerRegistrationChangeRecord{Fenced: -1, InControlledShutdown: -1}, off)
	f("directories", off, BrokerRegistrationChangeRecord{LogDirs: other}, Broker{LogDirs: other, CordonedLogDirs: dirs})
	f("no directories", off, BrokerRegistrationChangeRecord{LogDirs: []uuid.UUID{}}, off)
	f("cordoned", off, BrokerRegistrationChangeRecord{CordonedLogDirs: other}, Broker{LogDirs: dirs, CordonedLogDirs: other})
	f("none cordoned", off, BrokerRegistrationChangeRecord{CordonedLogDirs: []uuid.UUID{}}, Broker{LogDirs: dirs, CordonedLogDirs: []uuid.UUID{}})
}
