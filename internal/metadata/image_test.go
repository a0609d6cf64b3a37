package metadata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

func id(n byte) uuid.UUID { return uuid.UUID{0: 1, 15: n} }

func text(s string) *string { return &s }

func newTopic(name string, n byte, partitions int) []Record {
	records := []Record{&TopicRecord{Name: name, TopicID: id(n)}}
	for p := range partitions {
		records = append(records, &PartitionRecord{TopicID: id(n), PartitionID: int32(p), Replicas: []int32{1, 2}, ISR: []int32{1, 2}, Leader: 1})
	}
	return records
}

func mustApply(t testing.TB, img *Image, records ...Record) (*Image, *Delta) {
	t.Helper()
	next, delta, err := img.Apply(records, img.Offset+int64(len(records)), 1)
	if err != nil {
		t.Fatal(err)
	}
	return next, delta
}

// snapshotOf returns the encoded records of an image: equal images have equal ones.
func snapshotOf(img *Image) (list []string) {
	for r := range img.Records() {
		list = append(list, string(Append(nil, r, LevelCurrent)))
	}
	return list
}

func TestTopics(t *testing.T) {
	empty := NewImage("c")
	one, delta := mustApply(t, empty, newTopic("orders", 1, 3)...)
	if got := delta.ChangedTopics; len(got) != 1 || got[0].Old != nil || got[0].New != one.Topic("orders") {
		t.Errorf("delta of a new topic is %+v", got)
	}
	if one.TopicByID(id(1)) != one.Topic("orders") || one.NumTopics() != 1 || one.NumPartitions() != 3 {
		t.Errorf("topics %d, partitions %d", one.NumTopics(), one.NumPartitions())
	}
	if empty.NumTopics() != 0 || empty.Topic("orders") != nil {
		t.Error("the image before has changed")
	}

	two, delta := mustApply(t, one, &PartitionChangeRecord{TopicID: id(1), PartitionID: 2, ISR: []int32{2}, Leader: 2, LeaderRecoveryState: -1})
	var changed []int32
	for n := range delta.ChangedTopics[0].Partitions() {
		changed = append(changed, n)
	}
	if !slices.Equal(changed, []int32{2}) {
		t.Errorf("changed partitions %v, want [2]", changed)
	}
	p := two.Partition(topic.Partition{Topic: "orders", Partition: 2})
	if p.Leader != 2 || p.LeaderEpoch != 1 || p.PartitionEpoch != 1 || !slices.Equal(p.ISR, []int32{2}) || !slices.Equal(p.Replicas, []int32{1, 2}) {
		t.Errorf("partition after the change: %+v", p)
	}
	if old := one.Topic("orders").Partitions[2]; old.Leader != 1 || old.PartitionEpoch != 0 {
		t.Errorf("the partition before has changed: %+v", old)
	}

	three, delta := mustApply(t, two, slices.Concat([]Record{&RemoveTopicRecord{TopicID: id(1)}}, newTopic("orders", 2, 1))...)
	if len(delta.DeletedTopics) != 1 || delta.DeletedTopics[0].ID != id(1) || delta.ChangedTopics[0].New.ID != id(2) || delta.ChangedTopics[0].Old != nil {
		t.Errorf("delta of a topic made again: %+v", delta)
	}
	if three.TopicByID(id(1)) != nil || three.NumPartitions() != 1 {
		t.Error("the old topic is still there")
	}
	_, delta = mustApply(t, three, slices.Concat(newTopic("brief", 3, 1), []Record{&RemoveTopicRecord{TopicID: id(3)}})...)
	if len(delta.DeletedTopics)+len(delta.ChangedTopics) != 0 {
		t.Errorf("a topic created and deleted in one batch leaves %+v", delta)
	}
}

func TestPartitionLeaderKept(t *testing.T) {
	img, _ := mustApply(t, NewImage(""), newTopic("a", 1, 1)...)
	change := NewPartitionChangeRecord()
	change.TopicID, change.PartitionID, change.ISR = id(1), 0, []int32{1}
	img, _ = mustApply(t, img, change)
	if p := img.Topic("a").Partitions[0]; p.Leader != 1 || p.LeaderEpoch != 0 || p.PartitionEpoch != 1 {
		t.Errorf("a change of the ISR makes %+v", p)
	}
}

func TestPartitionsInAnyOrder(t *testing.T) {
	records := newTopic("a", 1, 5)
	slices.Reverse(records[1:])
	img, _ := mustApply(t, NewImage(""), records...)
	if got := len(img.Topic("a").Partitions); got != 5 || slices.Contains(img.Topic("a").Partitions, nil) {
		t.Errorf("%d partitions", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	img, _ := mustApply(t, NewImage(""), newTopic("a", 1, 2)...)
	before := snapshotOf(img)
	f := func(records ...Record) {
		t.Helper()
		if _, _, err := img.Apply(records, 9, 1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%T: got %v, want ErrCorrupt", records[len(records)-1], err)
		}
		if diff := cmp.Diff(before, snapshotOf(img)); diff != "" {
			t.Errorf("the image has changed: %s", diff)
		}
	}
	f(&TopicRecord{Name: "a", TopicID: id(2)})
	f(&TopicRecord{Name: "b", TopicID: id(1)})
	f(&PartitionRecord{TopicID: id(9)})
	f(&PartitionRecord{TopicID: id(1), PartitionID: -1})
	f(&PartitionRecord{TopicID: id(1), PartitionID: 1 << 30}) // 2 is missing, and nothing that large is made
	f(&PartitionChangeRecord{TopicID: id(1), PartitionID: 2})
	f(&RemoveTopicRecord{TopicID: id(9)})
	f(&UnregisterBrokerRecord{BrokerID: 1})
	f(&FenceBrokerRecord{ID: 1})
	f(&BeginTransactionRecord{})
	f(&TopicRecord{Name: "c", TopicID: id(3)}, &RemoveTopicRecord{TopicID: id(9)})
}

func TestConfigs(t *testing.T) {
	resource := ConfigResource{ResourceTopic, "a"}
	set := func(key string, value *string) *ConfigRecord {
		return &ConfigRecord{ResourceType: ResourceTopic, ResourceName: "a", Name: key, Value: value}
	}
	img, _ := mustApply(t, NewImage(""), newTopic("a", 1, 1)...)
	one, delta := mustApply(t, img, set("retention.ms", text("1")), set("cleanup.policy", text("compact")))
	if !slices.Equal(delta.Configs, []ConfigResource{resource}) || len(one.TopicConfigs("a")) != 2 || img.TopicConfigs("a") != nil {
		t.Errorf("configs %v, delta %v", one.TopicConfigs("a"), delta.Configs)
	}
	two, _ := mustApply(t, one, set("retention.ms", nil))
	if got := two.TopicConfigs("a"); len(got) != 1 || got["cleanup.policy"] != "compact" || len(one.TopicConfigs("a")) != 2 {
		t.Errorf("configs after one was removed: %v", got)
	}
	three, delta := mustApply(t, two, &RemoveTopicRecord{TopicID: id(1)})
	if three.Configs(resource) != nil || !slices.Equal(delta.Configs, []ConfigResource{resource}) {
		t.Errorf("configs of a deleted topic: %v", three.Configs(resource))
	}
	four, _ := mustApply(t, two, set("cleanup.policy", nil), set("x", text("y")), set("x", nil))
	if four.Configs(resource) != nil {
		t.Errorf("the empty set remains: %v", four.Configs(resource))
	}
}

func TestBrokers(t *testing.T) {
	register := &RegisterBrokerRecord{BrokerID: 1, BrokerEpoch: 7, Fenced: true, LogDirs: []uuid.UUID{id(9)}}
	img, _ := mustApply(t, NewImage(""), register)
	if img.Broker(1).Active() {
		t.Error("a new broker is active")
	}
	img, delta := mustApply(t, img, &BrokerRegistrationChangeRecord{BrokerID: 1, BrokerEpoch: 7, Fenced: -1})
	if !img.Broker(1).Active() || !slices.Equal(delta.Brokers, []int32{1}) {
		t.Errorf("broker %+v, delta %v", img.Broker(1), delta.Brokers)
	}
	down, _ := mustApply(t, img, &BrokerRegistrationChangeRecord{BrokerID: 1, BrokerEpoch: 7, InControlledShutdown: 1})
	if down.Broker(1).Active() || !img.Broker(1).Active() {
		t.Error("controlled shutdown")
	}
	if _, _, err := img.Apply([]Record{&FenceBrokerRecord{ID: 1, Epoch: 6}}, 9, 1); err == nil {
		t.Error("a change with an old broker epoch was applied")
	}
	gone, _ := mustApply(t, img, &UnregisterBrokerRecord{BrokerID: 1, BrokerEpoch: 7})
	if gone.Broker(1) != nil || len(gone.Brokers()) != 0 {
		t.Error("the broker is still there")
	}
}

func TestClientQuotas(t *testing.T) {
	entity := []EntityData{{EntityType: "user", EntityName: text("alice")}, {EntityType: "client-id"}}
	swapped := []EntityData{entity[1], entity[0]}
	img, _ := mustApply(t, NewImage(""), &ClientQuotaRecord{Entity: entity, Key: "producer_byte_rate", Value: 5})
	if q := img.ClientQuota(swapped); q == nil || q.Limits["producer_byte_rate"] != 5 {
		t.Errorf("quota of the entity in another order: %+v", q)
	}
	if img.ClientQuota(entity[:1]) != nil {
		t.Error("part of an entity has its quota")
	}
	img, _ = mustApply(t, img, &ClientQuotaRecord{Entity: swapped, Key: "producer_byte_rate", Remove: true})
	if img.ClientQuota(entity) != nil {
		t.Error("a quota without limits remains")
	}
}

func TestCollidingTopic(t *testing.T) {
	img, _ := mustApply(t, NewImage(""), newTopic("a.b_c", 1, 1)...)
	f := func(name, want string) {
		t.Helper()
		if got := img.CollidingTopic(name); got != want {
			t.Errorf("CollidingTopic(%q) = %q, want %q", name, got, want)
		}
	}
	f("a_b.c", "a.b_c")
	f("a.b_c", "")
	f("a-b-c", "")
	img, _ = mustApply(t, img, &RemoveTopicRecord{TopicID: id(1)})
	f("a_b.c", "")
}

func TestTransactions(t *testing.T) {
	var tx Transactions
	f := func(want int, records ...Record) {
		t.Helper()
		ready, err := tx.Next(records)
		if err != nil || len(ready) != want {
			t.Errorf("ready %d, %v, want %d", len(ready), err, want)
		}
	}
	begin, end, abort, noop := NewBeginTransactionRecord(), NewEndTransactionRecord(), NewAbortTransactionRecord(), NewNoOpRecord()
	f(1, noop)
	f(3, noop, begin, noop, end, noop)
	f(1, noop, begin, noop)
	if !tx.Open() {
		t.Error("not open")
	}
	f(0, noop)
	f(3, noop, end)
	f(0, begin, noop, abort)
	if _, err := tx.Next([]Record{end}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an end without a begin: %v", err)
	}
	if _, err := tx.Next([]Record{begin, begin}); !errors.Is(err, ErrCorrupt) || tx.Open() {
		t.Errorf("a begin inside a transaction: %v, open %t", err, tx.Open())
	}
}

// The records of any image make an equal image, and the deltas name everything that changed.
func TestRandomImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := NewImage("c")
		model := map[string]int{} // topic to partitions
		ids := map[string]uuid.UUID{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var records []Record
			for range rapid.IntRange(1, 4).Draw(t, "batch") {
				name := fmt.Sprintf("t%d", rapid.IntRange(0, 8).Draw(t, "topic"))
				switch {
				case ids[name].IsZero():
					ids[name] = uuid.New()
					records = append(records, &TopicRecord{Name: name, TopicID: ids[name]})
					model[name] = 0
				case rapid.Bool().Draw(t, "delete"):
					records = append(records, &RemoveTopicRecord{TopicID: ids[name]})
					delete(ids, name)
					delete(model, name)
					continue
				}
				records = append(records, &PartitionRecord{TopicID: ids[name], PartitionID: int32(model[name]), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1},
					&ConfigRecord{ResourceType: ResourceTopic, ResourceName: name, Name: "k", Value: text("v")})
				model[name]++
			}
			before := snapshotOf(img)
			next, delta, err := img.Apply(records, img.Offset+1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(before, snapshotOf(img)) {
				t.Fatal("Apply changed the image before")
			}
			checkDelta(t, img, next, delta)
			img = next
			checkModel(t, img, model)
		}
		again, _, err := NewImage("c").Apply(slices.Collect(img.Records()), img.Offset, 1)
		if err != nil || !slices.Equal(snapshotOf(img), snapshotOf(again)) {
			t.Fatalf("the records make another image (%v)", err)
		}
	})
}

func checkModel(t *rapid.T, img *Image, model map[string]int) {
	partitions := 0
	for name, n := range model {
		if topic := img.Topic(name); topic == nil || len(topic.Partitions) != n || img.TopicByID(topic.ID) != topic {
			t.Fatalf("topic %s has not %d partitions: %+v", name, n, topic)
		}
		partitions += n
	}
	if names := slices.Sorted(maps.Keys(model)); !slices.Equal(names, img.TopicNames()) || img.NumTopics() != len(names) || img.NumPartitions() != partitions {
		t.Fatalf("topics %v (%d partitions), want %v (%d)", img.TopicNames(), img.NumPartitions(), names, partitions)
	}
}

// checkDelta compares the delta with what differs.
func checkDelta(t *rapid.T, before, after *Image, d *Delta) {
	var got, want []string
	for _, topic := range d.DeletedTopics {
		got = append(got, "-"+topic.ID.String())
	}
	for _, c := range d.ChangedTopics {
		got = append(got, "+"+c.New.ID.String())
	}
	for topic := range before.Topics() {
		if after.TopicByID(topic.ID) == nil {
			want = append(want, "-"+topic.ID.String())
		}
	}
	for topic := range after.Topics() {
		if before.TopicByID(topic.ID) != topic {
			want = append(want, "+"+topic.ID.String())
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("delta %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

func TestDeltaOf(t *testing.T) {
	img, _ := mustApply(t, NewImage(""), newTopic("a", 1, 2)...)
	img, _ = mustApply(t, img, &RegisterBrokerRecord{BrokerID: 4}, &FeatureLevelRecord{Name: MetadataVersion, FeatureLevel: 33})
	d := DeltaOf(img)
	if len(d.ChangedTopics) != 1 || !slices.Equal(d.Brokers, []int32{4}) || !d.Features || d.After != img || d.ACLs {
		t.Errorf("delta from nothing: %+v", d)
	}
}

// BenchmarkApplyTopic adds and removes a topic in an image of 10,000.
func BenchmarkApplyTopic(b *testing.B) {
	img := NewImage("")
	for n := range 10000 {
		topicID := uuid.UUID{0: 1, 1: byte(n >> 8), 2: byte(n)}
		img, _ = mustApply(b, img, &TopicRecord{Name: fmt.Sprint("topic-", n), TopicID: topicID},
			&PartitionRecord{TopicID: topicID, Replicas: []int32{1}, ISR: []int32{1}, Leader: 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		next, _ := mustApply(b, img, newTopic("new", 9, 1)...)
		mustApply(b, next, &RemoveTopicRecord{TopicID: id(9)})
	}
}

func BenchmarkTopic(b *testing.B) {
	img, _ := mustApply(b, NewImage(""), newTopic("orders", 1, 1)...)
	for b.Loop() {
		if img.Topic("orders") == nil {
			b.Fatal("not found")
		}
	}
}
