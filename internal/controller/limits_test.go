package controller

import (
	"errors"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// oneBroker is an image with a broker, and what is given to a decision on it.
func oneBroker(t *testing.T) (*metadata.Image, given) {
	t.Helper()
	records := []metadata.Record{&metadata.RegisterBrokerRecord{BrokerID: 1}}
	img, _, err := metadata.NewImage("c").Apply(records, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img, given{Rules: testRules(), random: &seed{}}
}

// A request may ask for as many partitions as a write takes, and for none more.
func TestCreateTopicsLimit(t *testing.T) {
	img, g := oneBroker(t)
	f := func(ok bool, counts ...int32) {
		t.Helper()
		var topics []NewTopic
		for i, n := range counts {
			topics = append(topics, NewTopic{Name: string(rune('a' + i)), Partitions: n, ReplicationFactor: 1})
		}
		_, _, err := createTopics(img, topics, g)
		if ok != (err == nil) || !ok && KindOf(err) != PolicyViolation {
			t.Errorf("%v partitions: got %v", counts, err)
		}
	}
	f(true, recordsMax)
	f(false, recordsMax+1)
	f(true, recordsMax-1, 1)
	f(false, recordsMax-1, 2)
	f(true, recordsMax, -7) // which is refused on its own
}

func TestCreatePartitionsLimit(t *testing.T) {
	img, g := oneBroker(t)
	created, _, err := createTopics(img, []NewTopic{{Name: "a", Partitions: 1, ReplicationFactor: 1}, {Name: "b", Partitions: 1, ReplicationFactor: 1}}, g)
	if err != nil {
		t.Fatal(err)
	}
	img, _, err = img.Apply(created, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := func(a, b int32, whole, first, second bool) {
		t.Helper()
		_, results, err := createPartitions(img, []PartitionsIncrease{{Topic: "a", Count: a}, {Topic: "b", Count: b}}, g)
		if (err == nil) != whole || whole && ((results[0] == nil) != first || (results[1] == nil) != second) {
			t.Errorf("%d and %d partitions: got %v, %v", a, b, results, err)
		}
	}
	f(recordsMax, 2, true, true, true)
	f(recordsMax, 3, false, false, false)
	f(recordsMax+1, 1, true, true, false) // there is one already
	f(2, recordsMax+2, true, true, false)
}

func TestEligible(t *testing.T) {
	f := func(isr, elr []int32, want bool) {
		t.Helper()
		if got := eligible(&metadata.Partition{ISR: isr, ELR: elr}, 1); got != want {
			t.Errorf("ISR %v, ELR %v: got %v", isr, elr, got)
		}
	}
	f([]int32{1, 2}, nil, true)
	f([]int32{2}, nil, false)
	f(nil, []int32{1}, true)
	f(nil, []int32{2}, false)
	f([]int32{2}, []int32{1}, false)
	f(nil, nil, false)
}

// errors.Is compares kinds, and nothing else is a kind.
func TestErrorKinds(t *testing.T) {
	err := refuse(InvalidTopic, "no")
	f := func(target error, want bool) {
		t.Helper()
		if got := errors.Is(err, target); got != want {
			t.Errorf("%#v: got %v", target, got)
		}
	}
	f(&Error{Kind: InvalidTopic}, true)
	f(&Error{Kind: InvalidRequest}, false)
	f(&Error{Kind: InvalidTopic, Message: "other"}, false)
	f(errors.New("no"), false)
}
