package metadata

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A follower knows of the metadata what deltas have told it.
type follower struct {
	Topics  map[string]map[int32]string // by id
	Configs map[ConfigResource]map[string]string
	Brokers map[int32]*Broker
}

func newFollower() *follower {
	return &follower{map[string]map[int32]string{}, map[ConfigResource]map[string]string{}, map[int32]*Broker{}}
}

func (f *follower) follow(d *Delta) {
	for _, t := range d.DeletedTopics {
		delete(f.Topics, t.ID.String())
	}
	for _, c := range d.ChangedTopics {
		id := c.New.ID.String()
		if f.Topics[id] == nil {
			f.Topics[id] = map[int32]string{-1: c.New.Name}
		}
		for n, p := range c.Partitions() {
			f.Topics[id][n] = string(Append(nil, p.New.record(c.New.ID, n), LevelCurrent))
		}
	}
	for _, r := range d.Configs {
		if delete(f.Configs, r); d.After.Configs(r) != nil {
			f.Configs[r] = d.After.Configs(r)
		}
	}
	for _, id := range d.Brokers {
		if delete(f.Brokers, id); d.After.Broker(id) != nil {
			f.Brokers[id] = d.After.Broker(id)
		}
	}
}

// told is a follower that was told of an image at once.
func told(img *Image) *follower {
	f := newFollower()
	f.follow(DeltaOf(img))
	return f
}

var sameBrokers = cmp.Comparer((*Broker).equal)

// A generator draws records that fit an image, and many that do so only just.
type generator struct {
	t    *rapid.T
	seen int // ids given so far
}

func (g *generator) draw(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "n") }

func (g *generator) records(img *Image) []Record {
	name := fmt.Sprint("t", g.draw(5))
	topic, broker := img.Topic(name), img.Broker(int32(g.draw(3)))
	switch kind := g.draw(13); {
	case kind < 2 && topic != nil:
		return []Record{&RemoveTopicRecord{TopicID: topic.ID}}
	case kind == 2 && topic != nil: // and there again at once
		return append([]Record{&RemoveTopicRecord{TopicID: topic.ID}}, g.topic(name)...)
	case kind < 4 && topic == nil:
		return g.topic(name)
	case kind == 4 && topic != nil:
		return []Record{&PartitionRecord{TopicID: topic.ID, PartitionID: int32(len(topic.Partitions)), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1}}
	case kind == 5 && topic != nil:
		change := NewPartitionChangeRecord()
		change.TopicID, change.PartitionID = topic.ID, int32(g.draw(len(topic.Partitions)))
		change.ISR, change.EligibleLeaderReplicas = []int32{1}, []int32{}
		return []Record{change}
	case kind == 6 && broker != nil:
		change := NewBrokerRegistrationChangeRecord()
		change.BrokerID, change.BrokerEpoch, change.Fenced, change.CordonedLogDirs = broker.ID, broker.Epoch, int8(g.draw(3)-1), []uuid.UUID{}
		return []Record{change}
	case kind == 7 && broker != nil:
		return []Record{&UnregisterBrokerRecord{BrokerID: broker.ID, BrokerEpoch: broker.Epoch}}
	case kind < 8:
		return []Record{&RegisterBrokerRecord{BrokerID: int32(g.draw(3)), BrokerEpoch: int64(g.draw(3)), EndPoints: []BrokerEndpoint{}, Features: []BrokerFeature{}, LogDirs: []uuid.UUID{}}}
	case kind < 10:
		return g.config(topic)
	}
	return g.other()
}

func (g *generator) topic(name string) []Record {
	g.seen++
	return newTopic(name, byte(g.seen), 1+g.draw(3))
}

func (g *generator) config(topic *Topic) []Record {
	r := &ConfigRecord{ResourceType: ResourceBroker, Name: fmt.Sprint("k", g.draw(2))}
	if topic != nil {
		r.ResourceType, r.ResourceName = ResourceTopic, topic.Name
	}
	if n := g.draw(3); n > 0 {
		r.Value = text(fmt.Sprint(n))
	}
	return []Record{r}
}

func (g *generator) other() []Record {
	user, n := text("alice"), byte(g.draw(2))
	return [][]Record{
		{&FeatureLevelRecord{Name: "f", FeatureLevel: int16(n)}},
		{&ProducerIdsRecord{NextProducerID: int64(1000 * g.draw(3))}},
		{&ClientQuotaRecord{Entity: []EntityData{{EntityType: "user", EntityName: user}}, Key: "k", Value: float64(n), Remove: g.draw(2) == 0}},
		{&AccessControlEntryRecord{ID: id(n), Principal: "p"}},
		{&RemoveAccessControlEntryRecord{ID: id(n)}},
		{&UserScramCredentialRecord{Name: "u", Mechanism: int8(n), Salt: []byte{n}, StoredKey: []byte{}, ServerKey: []byte{}}},
		{&RemoveUserScramCredentialRecord{Name: "u", Mechanism: int8(n)}},
		{&DelegationTokenRecord{TokenID: "t", Owner: *user, Renewers: []string{}, IssueTimestamp: int64(n)}},
		{&RemoveDelegationTokenRecord{TokenID: "t"}},
	}[g.draw(9)]
}

// lists is a delta as text.
func lists(d *Delta) (list []string) {
	for _, t := range d.DeletedTopics {
		list = append(list, "deleted "+t.ID.String())
	}
	for _, c := range d.ChangedTopics {
		list = append(list, fmt.Sprint("changed ", c.New.ID, " new ", c.Old == nil))
		for n := range c.Partitions() {
			list = append(list, fmt.Sprint("partition ", n))
		}
	}
	for _, r := range d.Configs {
		if !maps.Equal(d.Before.Configs(r), d.After.Configs(r)) { // what was only set again is left out
			list = append(list, fmt.Sprint("configs ", r))
		}
	}
	for _, id := range d.Brokers {
		if !d.Before.Broker(id).equal(d.After.Broker(id)) {
			list = append(list, fmt.Sprint("broker ", id))
		}
	}
	return list
}

// kinds lists the other parts of a delta.
func kinds(d *Delta) map[string]bool {
	return map[string]bool{
		"features": d.Features, "producer ids": d.ProducerIDs, "quotas": d.ClientQuotas, "acls": d.ACLs, "scram": d.Scram, "tokens": d.DelegationTokens,
	}
}

// remade is an image as another node has it that was sent a snapshot: equal, and nothing shared.
func remade(t *rapid.T, img *Image) *Image {
	var records []Record
	for r := range img.Records() {
		decoded, err := Decode(Append(nil, r, LevelCurrent))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, decoded)
	}
	again, _, err := NewImage(img.ClusterID).Apply(records, img.Offset, img.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// The Diff of two images is the Delta of the records between them, and whoever follows it knows
// what the second says; also over many batches, and when the images share nothing.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t}
		start := NewImage("c")
		img, follows, before := start, newFollower(), start
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			records := g.records(img)
			next, delta, err := img.Apply(records, img.Offset+int64(len(records)), 1)
			if err != nil {
				t.Fatal(err)
			}
			diff := Diff(img, next)
			if d := cmp.Diff(lists(delta), lists(diff)); d != "" {
				t.Fatalf("after %T: Apply's delta is not Diff's: %s", records[0], d)
			}
			said := kinds(delta)
			for kind, differs := range kinds(diff) {
				if differs && !said[kind] {
					t.Fatalf("after %T: Apply's delta says nothing of %s", records[0], kind)
				}
			}
			follows.follow(delta)
			if img = next; g.draw(6) == 0 {
				before = img
			}
		}
		want := told(img)
		if d := cmp.Diff(want, follows, sameBrokers); d != "" {
			t.Fatalf("who follows the deltas of Apply: %s", d)
		}
		snapshot := remade(t, img)
		late := told(before)
		diff := Diff(before, snapshot)
		late.follow(diff)
		if d := cmp.Diff(want, late, sameBrokers); d != "" {
			t.Fatalf("who follows a snapshot: %s", d)
		}
		if d := cmp.Diff(lists(diff), lists(Diff(before, img))); d != "" {
			t.Fatalf("the diff depends on what the images share: %s", d)
		}
		if same := Diff(img, snapshot); len(lists(same))+len(same.Configs)+len(same.Brokers) > 0 || slices.Contains(slices.Collect(maps.Values(kinds(same))), true) {
			t.Fatalf("equal images differ: %v %v", lists(same), kinds(same))
		}
	})
}

// A snapshot in which things are missing deletes them.
func TestDiffDeletes(t *testing.T) {
	img, _ := mustApply(t, NewImage("c"), newTopic("a", 1, 2)...)
	img, _ = mustApply(t, img,
		&ConfigRecord{ResourceType: ResourceTopic, ResourceName: "a", Name: "k", Value: text("v")}, &RegisterBrokerRecord{BrokerID: 4},
		&FeatureLevelRecord{Name: "f", FeatureLevel: 1}, &ProducerIdsRecord{NextProducerID: 5}, &AccessControlEntryRecord{ID: id(1)},
		&UserScramCredentialRecord{Name: "u"}, &DelegationTokenRecord{TokenID: "t"}, &ClientQuotaRecord{Key: "k", Value: 1},
	)
	d := Diff(img, NewImage("c"))
	if len(d.DeletedTopics) != 1 || len(d.ChangedTopics) > 0 || len(d.Configs) != 1 || !slices.Equal(d.Brokers, []int32{4}) {
		t.Errorf("delta to nothing: %+v", d)
	}
	for kind, differs := range kinds(d) {
		if !differs {
			t.Errorf("delta to nothing: no change of %s", kind)
		}
	}
}
