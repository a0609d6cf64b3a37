package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

var (
	ordersID  = mustUUID("z6G1uhKLwF0ZNsuyl48zMA")
	carsID    = mustUUID("9QlA8kXpQMCbgPKeNrWH4g")
	strangeID = mustUUID("TzOsImOWQvav6IHRKRsjFQ")
)

func mustUUID(text string) uuid.UUID {
	id, err := uuid.Parse(text)
	if err != nil {
		panic(err)
	}
	return id
}

// image has orders with two partitions here and one on node 2, and cars with one here.
func image(t testing.TB) *metadata.Image {
	t.Helper()
	partition := func(id uuid.UUID, n int32, node int32) metadata.Record {
		return &metadata.PartitionRecord{TopicID: id, PartitionID: n, Replicas: []int32{node}, ISR: []int32{node}, Leader: node}
	}
	img, _, err := metadata.NewImage("c").Apply([]metadata.Record{
		&metadata.TopicRecord{Name: "orders", TopicID: ordersID}, partition(ordersID, 0, 1), partition(ordersID, 1, 1), partition(ordersID, 2, 2),
		&metadata.TopicRecord{Name: "cars", TopicID: carsID}, partition(carsID, 0, 1),
	}, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// at is a directory that was found. The id may be an error that reading it gave.
func at(name string, id any) logdir.FoundPartition {
	p, err := topic.ParsePartition(name)
	if err != nil {
		panic(err)
	}
	found := logdir.FoundPartition{Partition: p, Path: "d/" + name}
	switch id := id.(type) {
	case uuid.UUID:
		found.TopicID = id
	case error:
		found.IDErr = id
	}
	return found
}

// sound is the evidence of a directory that nothing is wrong with.
func sound(t testing.TB, partitions ...logdir.FoundPartition) *Evidence {
	return &Evidence{
		Logs: logdir.Evidence{NodeID: 1, ClusterID: "c", ClusterKnown: true, Dirs: []logdir.FoundDir{{
			Path: "d", HoldsLogs: true, HasMeta: true, Meta: checkpoint.MetaProperties{Version: 1, ClusterID: "c", NodeID: 1}, Partitions: partitions,
		}}},
		Metadata: quorum.Evidence{Dir: "d/__cluster_metadata-0", End: 10, Claims: []quorum.Claim{
			{Path: "d/__cluster_metadata-0", Says: "LeaderChange of epoch 1", Voters: []int32{1}, Leader: 1},
			{Path: "d/__cluster_metadata-0/quorum-state", Says: "epoch 2", Leader: -1},
		}},
		Image: image(t),
	}
}

// TestJudge: each piece of evidence against a start refuses it, names itself and the permission that
// lets it through, and that permission does.
func TestJudge(t *testing.T) {
	f := func(name string, change func(*Evidence), flag string, want ...string) {
		t.Helper()
		e := sound(t, at("orders-0", ordersID))
		change(e)
		v := Judge(*e, Permissions{})
		if flag == "" {
			if v.Err() != nil || v.TakeOver || v.AcceptLoss {
				t.Errorf("%s: %v", name, v.Err())
			}
			return
		}
		if !errors.Is(v.Err(), ErrRefused) {
			t.Fatalf("%s: got %v, want a refusal", name, v.Err())
		}
		for _, text := range append(want, flag) {
			if !strings.Contains(v.Err().Error(), text) {
				t.Errorf("%s: %q is not in: %v", name, text, v.Err())
			}
		}
		v = Judge(*e, Permissions{TakeOver: flag == takeOverFlag, AcceptLoss: flag == acceptLossFlag, PutAside: flag == putAsideFlag})
		if v.Err() != nil || v.TakeOver != (flag == takeOverFlag) || v.AcceptLoss != (flag == acceptLossFlag) {
			t.Errorf("%s: with %s: %+v", name, flag, v)
		}
	}
	f("sound", func(*Evidence) {}, "")

	claim := func(c quorum.Claim) func(*Evidence) {
		return func(e *Evidence) { e.Metadata.Claims = append(e.Metadata.Claims, c) }
	}
	f("one of several", claim(quorum.Claim{Path: "d/q", Says: "epoch 5", Voters: []int32{1, 2, 3}, Leader: -1}), takeOverFlag,
		"d/q: epoch 5", "the voters are 1, 2, 3, and this node, node.id=1, is only one of them")
	f("no voter", claim(quorum.Claim{Path: "d/q", Says: "epoch 5", Voters: []int32{3}, Leader: 3}), takeOverFlag, "this node, node.id=1, is none of them")
	f("led by another", claim(quorum.Claim{Path: "d/q", Says: "epoch 5", Leader: 3}), takeOverFlag, "the leader is node 3")
	f("no voters at all", claim(quorum.Claim{Path: "d/q", Says: "KRAFT_VOTERS at offset 0", Voters: []int32{}, Leader: -1}), takeOverFlag, "none of them")

	config := func(roles, voters, servers string) func(*Evidence) {
		return func(e *Evidence) {
			e.Roles, e.QuorumVoters, e.BootstrapServers = strings.Fields(roles), strings.Fields(voters), strings.Fields(servers)
		}
	}
	f("combined node, static", config("broker controller", "1@localhost:9093", ""), "")
	f("combined node, dynamic", config("broker controller", "", "localhost:9093"), "")
	f("no roles", config("", "", "localhost:9093"), "")
	f("roles alone", config("broker", "", ""), "")
	f("three voters", config("broker controller", "1@a:9093 2@b:9093 3@c:9093", ""), takeOverFlag, "controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093: the quorum has several voters")
	f("another voter", config("broker", "3@c:9093", ""), takeOverFlag, "this node, node.id=1, is no voter")
	f("no number", config("broker", "x", ""), takeOverFlag, "this node, node.id=1, is no voter")
	f("three controllers", config("broker controller", "", "a:9093 b:9093 c:9093"), takeOverFlag, "the quorum has several controllers")
	f("broker only", config("broker", "", "c:9093"), takeOverFlag, "process.roles=broker", "c:9093")

	several := func(claimed ...int32) func(*Evidence) {
		return func(e *Evidence) {
			config("broker controller", "1@a:9093 2@b:9093 3@c:9093", "")(e)
			e.Several, e.Metadata.Claims = true, []quorum.Claim{{Path: "d/q", Says: "epoch 5", Voters: claimed, Leader: 2}}
		}
	}
	f("one of three, new", several(), "")
	f("one of three", several(3, 1, 2), "")
	f("was alone", several(1), takeOverFlag, "d/q: epoch 5: the voters are 1, but controller.quorum.voters=1@a:9093,2@b:9093,3@c:9093")
	f("one of other three", several(1, 2, 4), takeOverFlag, "the voters are 1, 2, 4")
	f("partitions wait for the metadata of the others", func(e *Evidence) {
		several(1, 2, 3)(e)
		e.Partial = true
		for i := range 20 {
			e.Logs.Dirs[0].Partitions = append(e.Logs.Dirs[0].Partitions, at(fmt.Sprintf("unknown%d-0", i), strangeID))
		}
	}, "")

	proof := quorum.Proof{Path: "d/0401.snapshot", Says: "written when the log ended at offset 401", End: 401}
	f("cut", func(e *Evidence) { e.Metadata.Proofs = []quorum.Proof{{Path: "x", End: 11}, proof} }, acceptLossFlag, "ends at offset 10 but d/0401.snapshot: written")
	f("torn below a proof", func(e *Evidence) { e.Metadata.Proofs, e.Metadata.Torn = []quorum.Proof{proof}, 77 }, acceptLossFlag, "77 bytes before the end of its file")
	f("torn", func(e *Evidence) { e.Metadata.Torn = 77 }, "")

	empty := func(change func(*Evidence)) func(*Evidence) {
		return func(e *Evidence) {
			e.Metadata = quorum.Evidence{Dir: "d/__cluster_metadata-0", Empty: true}
			e.Image = metadata.NewImage("c")
			change(e)
		}
	}
	zooKeeper := func(e *Evidence) {
		e.Logs.Dirs[0].Meta = checkpoint.MetaProperties{NodeID: 1}
		e.Checkpointed = []Checkpointed{{"d/replication-offset-checkpoint", topic.Partition{Topic: "t"}}}
	}
	f("no metadata log", empty(func(*Evidence) {}), acceptLossFlag, "d/orders-0 has a topic id", "d/__cluster_metadata-0 is missing or empty", "log.dirs")
	f("no metadata log, damaged id", empty(func(e *Evidence) { e.Logs.Dirs[0].Partitions[0] = at("orders-0", checkpoint.ErrCorrupt) }), acceptLossFlag, "d/orders-0")
	f("no metadata log, no id", empty(func(e *Evidence) { e.Logs.Dirs[0].Partitions[0] = at("orders-0", fs.ErrNotExist) }), "")
	f("no metadata log, checkpoints", empty(func(e *Evidence) {
		zooKeeper(e)
		e.Logs.Dirs[0].Meta.Version, e.Logs.Dirs[0].Partitions = 1, nil
	}), acceptLossFlag, "d/replication-offset-checkpoint has an entry of t-0")
	f("no metadata log, but proofs", empty(func(e *Evidence) { e.Metadata.Proofs, e.Logs.Dirs[0].Partitions = []quorum.Proof{proof}, nil }), acceptLossFlag, "ends at offset 0 but")
	f("new directory", empty(func(e *Evidence) { e.Logs.Dirs[0].HasMeta, e.Logs.Dirs[0].Partitions = false, nil }), "")
	f("formatted directory", empty(func(e *Evidence) { e.Logs.Dirs[0].Partitions = nil }), "")
	f("ZooKeeper's directory", empty(zooKeeper), "")
	f("two directories, one of ZooKeeper's", empty(func(e *Evidence) {
		zooKeeper(e)
		e.Logs.Dirs = append(e.Logs.Dirs, logdir.FoundDir{Path: "e", HasMeta: true, Meta: checkpoint.MetaProperties{Version: 1}})
	}), acceptLossFlag, "d/orders-0")
	f("0.8's directory", empty(func(e *Evidence) {
		zooKeeper(e)
		e.Logs.Dirs[0].HasMeta, e.Logs.Dirs[0].Partitions[0] = false, at("orders-0", fs.ErrNotExist)
	}), "")
	f("no meta.properties, but ids", empty(func(e *Evidence) { e.Logs.Dirs[0].HasMeta = false }), acceptLossFlag, "d/orders-0")
	f("metadata log elsewhere", empty(func(e *Evidence) { e.OtherMetadata = []string{"e/__cluster_metadata-0"} }), acceptLossFlag, "the metadata log is e/__cluster_metadata-0", "metadata.log.dir")
	f("whose log", func(e *Evidence) {
		e.Logs.ClusterKnown = false
		img, _, err := e.Image.Apply([]metadata.Record{&metadata.RegisterBrokerRecord{BrokerID: 1}}, 10, 1)
		if err != nil {
			t.Fatal(err)
		}
		e.Image = img
	}, acceptLossFlag, "no meta.properties says of which")
	f("a log that has just begun", func(e *Evidence) { e.Logs.ClusterKnown = false }, "")

	many := func(n int, id any, name string) func(*Evidence) {
		return func(e *Evidence) {
			for i := range n {
				e.Logs.Dirs[0].Partitions = append(e.Logs.Dirs[0].Partitions, at(fmt.Sprintf(name, i), id))
			}
		}
	}
	f("some unknown", many(5, strangeID, "unknown%d-0"), "")
	f("too many unknown", many(6, strangeID, "unknown%d-0"), acceptLossFlag, "6 of 7 partitions are not known", "d/unknown0-0", putAsideFlag)
	f("too many without an id", many(6, fs.ErrNotExist, "unknown%d-0"), "")
	f("many that were left alone before", func(e *Evidence) {
		many(6, strangeID, "unknown%d-0")(e)
		for i := range e.Logs.Dirs[0].Partitions {
			e.Logs.Dirs[0].Partitions[i].Accepted = true
		}
	}, "")
	f("a fifth unknown", func(e *Evidence) {
		many(10, strangeID, "unknown%d-0")(e)
		many(40, ordersID, "orders-%d")(e)
		e.Image = imageOf(t, 40)
	}, "")
	f("some strays", many(5, carsID, "old%d-0"), "")
	f("too many strays", many(6, carsID, "old%d-0"), putAsideFlag, "6 of 7 partitions would be put aside", "d/old0-0", "topic cars")
	f("removed topics", func(e *Evidence) {
		many(50, strangeID, "old%d-0")(e)
		e.Removed = map[uuid.UUID]bool{strangeID: true}
	}, "")
}

// imageOf has the topic orders with n partitions here.
func imageOf(t testing.TB, n int) *metadata.Image {
	t.Helper()
	records := []metadata.Record{&metadata.TopicRecord{Name: "orders", TopicID: ordersID}}
	for i := range n {
		records = append(records, &metadata.PartitionRecord{TopicID: ordersID, PartitionID: int32(i), Replicas: []int32{1}, ISR: []int32{1}, Leader: 1})
	}
	img, _, err := metadata.NewImage("c").Apply(records, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestJudgeWarnsOfSecondMetadataLog(t *testing.T) {
	e := sound(t)
	e.OtherMetadata = []string{"e/__cluster_metadata-0"}
	if v := Judge(*e, Permissions{}); v.Err() != nil || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "e/__cluster_metadata-0") {
		t.Errorf("got %+v", v)
	}
}

func TestFate(t *testing.T) {
	names := map[logdir.Fate]string{logdir.Keep: "keep", logdir.Heal: "heal", logdir.LeaveAlone: "leave alone", logdir.PutAside: "put aside"}
	removed := map[uuid.UUID]bool{carsID: true}
	// f is given the first of the directories that lie there.
	f := func(want, reason string, found ...logdir.FoundPartition) {
		t.Helper()
		e := sound(t, found...)
		e.Removed = removed
		got := Judge(*e, Permissions{})
		d := got.Fate(found[0])
		if names[d.Fate] != want || !strings.Contains(d.Reason, reason) || d.Fate == logdir.Heal && d.TopicID != ordersID {
			t.Errorf("%v, id %v, %v: got %s (%s), want %s (%s)", found[0].Partition, found[0].TopicID, found[0].IDErr, names[d.Fate], d.Reason, want, reason)
		}
		allowed := Judge(*e, Permissions{PutAside: true})
		if d := allowed.Fate(found[0]); want == "leave alone" && d.Fate != logdir.PutAside || want != "leave alone" && names[d.Fate] != want {
			t.Errorf("%v: with the permission to put aside: %s", found[0].Partition, names[d.Fate])
		}
	}
	flipped := ordersID
	flipped[3] ^= 0x10
	garbled := flipped
	garbled[0], garbled[7], garbled[12] = 99, 99, 99

	f("keep", "", at("orders-0", ordersID))
	f("keep", "", at("orders-0", fs.ErrNotExist))   // before 2.8
	f("keep", "", at("orders-0", errors.New("io"))) // loading says what
	f("heal", "a few characters", at("orders-0", flipped))
	f("heal", "a few characters", at("orders-0", garbled))
	f("heal", "makes no sense", at("orders-0", checkpoint.ErrCorrupt))
	f("leave alone", "another directory claims", at("orders-0", flipped), at("orders-0", ordersID))
	f("leave alone", "another directory claims", at("orders-0", checkpoint.ErrCorrupt), at("cars-0", ordersID))
	f("leave alone", "an earlier topic of the name", at("orders-0", strangeID))
	f("put aside", "nodes 2, not on 1", at("orders-2", ordersID))
	f("put aside", "nodes 2, not on 1", at("orders-2", fs.ErrNotExist))
	f("leave alone", "not known for certain", at("orders-2", flipped))
	f("leave alone", "has only 3 partitions", at("orders-3", ordersID))
	f("leave alone", "knows neither", at("gone-0", strangeID))
	f("leave alone", "knows neither", at("gone-0", fs.ErrNotExist))
	f("leave alone", "knows neither", at("gone-0", checkpoint.ErrCorrupt))
	f("put aside", "was deleted", at("gone-0", carsID))
	f("put aside", "was deleted", at("orders-0", carsID)) // and made again
	removed = nil
	f("put aside", "that of topic cars", at("gone-0", carsID))
	f("heal", "that of topic cars", at("orders-0", carsID), at("cars-0", carsID))                // a copy of its file
	f("leave alone", "another directory claims", at("orders-0", carsID), at("cars-0", ordersID)) // files changed places, or directories
}

// The id in the file has changed since the last clean stop, which the judge was told instead.
func TestFateOfChanged(t *testing.T) {
	remembered, changed := at("orders-0", ordersID), at("orders-0", checkpoint.ErrCorrupt)
	v := Judge(*sound(t, remembered), Permissions{})
	if d := v.Fate(changed); d.Fate != logdir.Heal || d.TopicID != ordersID {
		t.Errorf("got %+v, want it healed", d)
	}
}

// Ids that were made apart are never nearly equal.
func TestNearlyEqual(t *testing.T) {
	for range 2000 {
		a, b := uuid.New(), uuid.New()
		if nearlyEqual(a, b) {
			t.Errorf("%v and %v", a, b)
		}
		for bit := range 128 {
			c := a
			c[bit/8] ^= 1 << (bit % 8)
			if !nearlyEqual(a, c) {
				t.Errorf("%v and %v, one bit apart", a, c)
			}
		}
	}
}

func TestUnknownTopics(t *testing.T) {
	e := sound(t, at("orders-0", ordersID), at("gone-0", strangeID), at("old-0", fs.ErrNotExist))
	if got := UnknownTopics(e.Image, e.Logs.Dirs); len(got) != 1 || !got[strangeID] {
		t.Errorf("got %v", got)
	}
}
