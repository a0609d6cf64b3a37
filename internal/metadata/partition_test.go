package metadata

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

func TestImagePartition(t *testing.T) {
	img, _ := mustApply(t, NewImage(""), newTopic("a", 1, 2)...)
	f := func(name string, n int32, want bool) {
		t.Helper()
		if got := img.Partition(topic.Partition{Topic: name, Partition: n}); (got != nil) != want {
			t.Errorf("%s-%d: got %v", name, n, got)
		}
	}
	f("a", -1, false)
	f("a", 0, true)
	f("a", 1, true)
	f("a", 2, false)
	f("b", 0, false)
}

// A replica's directory is not known where the list is shorter, as of an old release.
func TestPartitionDirectory(t *testing.T) {
	p := &Partition{Replicas: []int32{5, 6, 7}, Directories: []uuid.UUID{id(1), id(2)}}
	f := func(broker int32, want uuid.UUID, is bool) {
		t.Helper()
		if got, ok := p.Directory(broker); got != want || ok != is {
			t.Errorf("broker %d: got %v, %v", broker, got, ok)
		}
	}
	f(5, id(1), true)
	f(6, id(2), true)
	f(7, uuid.Unassigned, true)
	f(8, uuid.Zero, false)
}

// A change changes what it names. Directories follow their replicas.
func TestPartitionMerge(t *testing.T) {
	before := Partition{
		Replicas: []int32{1, 2}, Directories: []uuid.UUID{id(1), id(2)}, ISR: []int32{1, 2},
		ELR: []int32{3}, LastKnownELR: []int32{4}, Leader: 1, LeaderEpoch: 5, PartitionEpoch: 6, RecoveryState: Recovering,
	}
	f := func(name string, change func(*PartitionChangeRecord), want func(*Partition)) {
		t.Helper()
		r := NewPartitionChangeRecord()
		change(r)
		expected := before
		expected.PartitionEpoch++
		want(&expected)
		if diff := cmp.Diff(&expected, before.merge(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	f("nothing", func(*PartitionChangeRecord) {}, func(*Partition) {})
	f("directories", func(r *PartitionChangeRecord) { r.Directories = []uuid.UUID{id(7), id(8)} },
		func(p *Partition) { p.Directories = []uuid.UUID{id(7), id(8)} })
	f("replicas", func(r *PartitionChangeRecord) { r.Replicas = []int32{2, 3} },
		func(p *Partition) { p.Replicas, p.Directories = []int32{2, 3}, []uuid.UUID{id(2), uuid.Unassigned} })
	f("both", func(r *PartitionChangeRecord) { r.Replicas, r.Directories = []int32{2}, []uuid.UUID{id(9)} },
		func(p *Partition) { p.Replicas, p.Directories = []int32{2}, []uuid.UUID{id(9)} })
	f("leader", func(r *PartitionChangeRecord) { r.Leader = 2 }, func(p *Partition) { p.Leader, p.LeaderEpoch = 2, 6 })
	f("recovered", func(r *PartitionChangeRecord) { r.LeaderRecoveryState = Recovered }, func(p *Partition) { p.RecoveryState = Recovered })
	f("recovering", func(r *PartitionChangeRecord) { r.LeaderRecoveryState = Recovering }, func(*Partition) {})
	f("no ELR", func(r *PartitionChangeRecord) { r.EligibleLeaderReplicas, r.LastKnownELR = []int32{}, []int32{} },
		func(p *Partition) { p.ELR, p.LastKnownELR = []int32{}, []int32{} })
}

// Partitions may come in any order within a batch, and none may be missing at its end.
func TestPartitionsMissing(t *testing.T) {
	f := func(ok bool, numbers ...int32) {
		t.Helper()
		records := newTopic("a", 1, 0)
		for _, n := range numbers {
			records = append(records, &PartitionRecord{TopicID: id(1), PartitionID: n, Replicas: []int32{1}, ISR: []int32{1}, Leader: 1})
		}
		img, _, err := NewImage("").Apply(records, 9, 1)
		switch {
		case ok && (err != nil || len(img.Topic("a").Partitions) != len(numbers)):
			t.Errorf("%v: got %v", numbers, err)
		case !ok && !errors.Is(err, ErrCorrupt):
			t.Errorf("%v: got %v, want ErrCorrupt", numbers, err)
		}
	}
	f(true, 0, 1, 2)
	f(true, 2, 0, 1)
	f(true, 3, 1, 0, 2)
	f(false, 1)
	f(false, 1, 0, 3)
	f(false, 3, 1, 0)
}

func TestClearELR(t *testing.T) {
	var records []Record
	for n, name := range []string{"a", "b"} {
		for _, r := range newTopic(name, byte(n+1), 3) {
			if p, ok := r.(*PartitionRecord); ok && p.PartitionID == 1 {
				p.EligibleLeaderReplicas = []int32{2}
			} else if ok && p.PartitionID == 2 {
				p.LastKnownELR = []int32{2}
			}
			records = append(records, r)
		}
	}
	before, _ := mustApply(t, NewImage(""), records...)
	f := func(name string, want map[string]bool) {
		t.Helper()
		after, delta := mustApply(t, before, &ClearElrRecord{TopicName: name})
		if len(delta.ChangedTopics) != len(want) {
			t.Errorf("%q: %d topics have changed, want %d", name, len(delta.ChangedTopics), len(want))
		}
		for _, name := range []string{"a", "b"} {
			for n, p := range after.Topic(name).Partitions {
				old := before.Topic(name).Partitions[n]
				switch cleared := len(p.ELR)+len(p.LastKnownELR) == 0; {
				case want[name] && n > 0 && (!cleared || p.PartitionEpoch != old.PartitionEpoch+1):
					t.Errorf("%s-%d was not cleared: %+v", name, n, p)
				case (!want[name] || n == 0) && p != old:
					t.Errorf("%s-%d has changed to %+v", name, n, p)
				}
			}
		}
	}
	f("a", map[string]bool{"a": true})
	f("", map[string]bool{"a": true, "b": true})
	f("c", nil)
}

// setField gives a field of a struct a value that it has not.
func setField(t *testing.T, f reflect.Value) {
	t.Helper()
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int8, reflect.Int32, reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Slice:
		f.Set(reflect.Append(f, reflect.New(f.Type().Elem()).Elem()))
	case reflect.Array: // an id
		f.Index(0).SetUint(f.Index(0).Uint() + 1)
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	default:
		t.Fatalf("no other value of %v", f.Type())
	}
}

// testEqual changes each field of a zero T: nothing that differs is equal.
func testEqual[T any](t *testing.T, equal func(a, b *T) bool) {
	t.Helper()
	var a, b T
	if !equal(&a, &b) || !equal(nil, nil) || equal(&a, nil) || equal(nil, &b) {
		t.Errorf("%T: zero values and nil", a)
	}
	fields := reflect.TypeFor[T]()
	for n := range fields.NumField() {
		if !fields.Field(n).IsExported() {
			continue
		}
		var changed T
		setField(t, reflect.ValueOf(&changed).Elem().Field(n))
		if equal(&a, &changed) || equal(&changed, &a) {
			t.Errorf("%T: another %s is equal", a, fields.Field(n).Name)
		}
	}
}

func TestPartitionEqual(t *testing.T) { testEqual(t, (*Partition).equal) }
