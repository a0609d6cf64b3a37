package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openQuorum(t testing.TB) *quorum.Quorum {
	t.Helper()
	fsys := vfs.NewMem()
	if err := vfs.MkdirAll(fsys, "/data", 0o755); err != nil {
		t.Fatal(err)
	}
	q, err := quorum.Open(quorum.Options{FS: fsys, Dir: "/data", NodeID: 1, ClusterID: "c", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// A script is a Controller under test; see testdata.
type script struct {
	*Controller
	q *quorum.Quorum
}

func newScript(t testing.TB) *script {
	q := openQuorum(t)
	c := New(Options{Quorum: q, Rules: testRules()})
	t.Cleanup(c.Close)
	return &script{q: q, Controller: c}
}

// testRules are those of the scripts.
func testRules() Rules {
	return Rules{
		TopicDefaults: func() (int32, int16) { return 2, 1 },
		ValidateConfigs: func(_ metadata.ConfigResource, configs map[string]string) error {
			if v, ok := configs["retention.ms"]; ok {
				if _, err := strconv.Atoi(v); err != nil {
					return fmt.Errorf("Invalid value %s for configuration retention.ms", v)
				}
			}
			if _, ok := configs["no.such.key"]; ok {
				return refuse(InvalidRequest, "no.such.key")
			}
			return nil
		},
		ListConfig: func(_ metadata.ConfigResource, key string) (string, bool) {
			return "delete", key == "cleanup.policy"
		},
	}
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript(t)
		datadriven.RunTest(t, path, s.run)
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	before := s.q.NextOffset()
	out, err := s.command(t, d)
	if err != nil {
		out += describe(err) + "\n"
	}
	if n := s.q.NextOffset() - before; n > 0 && d.Cmd != "register" {
		out += fmt.Sprintf("%d records\n", n)
	}
	return out
}

// describe prints a refusal as its kind and the message.
func describe(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("%v: %v", KindOf(err), err)
}

func (s *script) command(t *testing.T, d *datadriven.TestData) (string, error) {
	ctx := context.Background()
	switch d.Cmd {
	case "register":
		return s.register(t, d)
	case "create":
		topics, validateOnly := parseTopics(t, d), d.HasArg("validate-only")
		results, err := s.CreateTopics(ctx, topics, validateOnly)
		var out strings.Builder
		for _, r := range results {
			if r.Err != nil {
				fmt.Fprintf(&out, "%s: %s\n", r.Name, describe(r.Err))
				continue
			}
			fmt.Fprintf(&out, "%s: partitions=%d replication=%d configs=%v\n", r.Name, r.Partitions, r.ReplicationFactor, r.Configs)
		}
		return out.String(), err
	case "delete":
		var refs []TopicRef
		for line := range strings.Lines(d.Input) {
			refs = append(refs, s.parseRef(strings.TrimSpace(line)))
		}
		results, err := s.DeleteTopics(ctx, refs)
		var out strings.Builder
		for _, r := range results {
			fmt.Fprintf(&out, "%s: %s\n", r.Name, describe(r.Err))
		}
		return out.String(), err
	case "partitions":
		results, err := s.CreatePartitions(ctx, parseIncreases(t, d), d.HasArg("validate-only"))
		return describeAll(results), err
	case "alter":
		results, err := s.AlterConfigs(ctx, parseAlter(t, d), d.HasArg("validate-only"))
		return describeAll(results), err
	case "replace":
		results, err := s.AlterConfigs(ctx, parseReplace(d), d.HasArg("validate-only"))
		return describeAll(results), err
	case "assign":
		return s.assign(t, d)
	case "offline":
		return s.offline(t, d)
	case "producer-ids":
		var broker int
		d.ScanArgs(t, "broker", &broker)
		epoch := int64(-1)
		if b := s.q.Image().Broker(int32(broker)); b != nil && !d.HasArg("stale") {
			epoch = b.Epoch
		}
		first, n, err := s.AllocateProducerIDs(ctx, int32(broker), epoch)
		return fmt.Sprintf("[%d,%d)\n", first, first+int64(n)), err
	case "topics":
		return s.topics(), nil
	case "configs":
		var out strings.Builder
		configs := maps.Collect(s.q.Image().ConfigResources())
		for _, r := range slices.SortedFunc(maps.Keys(configs), func(a, b metadata.ConfigResource) int { return strings.Compare(a.Name, b.Name) }) {
			fmt.Fprintf(&out, "%d %q: %v\n", r.Type, r.Name, configs[r])
		}
		return out.String(), nil
	}
	d.Fatalf(t, "unknown command")
	return "", nil
}

func describeAll(results []error) string {
	var out strings.Builder
	for _, err := range results {
		fmt.Fprintln(&out, describe(err))
	}
	return out.String()
}

func dirID(n int) uuid.UUID { return uuid.UUID{0: 9, 15: byte(n)} }

// register broker=1 [rack=a] [dirs=2] [without=0] [clean]
func (s *script) register(t *testing.T, d *datadriven.TestData) (string, error) {
	r := Registration{IncarnationID: uuid.New(), PreviousEpoch: -1, Endpoints: []metadata.BrokerEndpoint{{Name: "PLAINTEXT", Host: "h", Port: 9092}}}
	var id int
	dirs := 1
	d.ScanArgs(t, "broker", &id)
	d.MaybeScanArgs(t, "dirs", &dirs)
	r.ID = int32(id)
	if d.HasArg("rack") {
		var rack string
		d.ScanArgs(t, "rack", &rack)
		r.Rack = &rack
	}
	for n := range dirs {
		r.LogDirs = append(r.LogDirs, dirID(10*id+n))
	}
	if d.HasArg("without") {
		var n int
		d.ScanArgs(t, "without", &n)
		r.LogDirs = slices.Delete(r.LogDirs, n, n+1)
	}
	old := s.q.Image().Broker(r.ID)
	if old != nil && d.HasArg("clean") {
		r.PreviousEpoch = old.Epoch
	}
	epoch, err := s.RegisterBroker(context.Background(), r)
	if err != nil {
		return "", err
	}
	b := s.q.Image().Broker(r.ID)
	if b.Epoch != epoch || old != nil && epoch <= old.Epoch || b.IncarnationID != r.IncarnationID {
		return "", fmt.Errorf("epoch %d, registered %+v, before %+v", epoch, b, old)
	}
	return fmt.Sprintf("broker %d active=%t\n", id, b.Active()), nil
}

// assign broker=1 dir=1, and a topic a line
func (s *script) assign(t *testing.T, d *datadriven.TestData) (string, error) {
	var broker, dir int
	d.ScanArgs(t, "broker", &broker)
	d.ScanArgs(t, "dir", &dir)
	var list []DirectoryAssignment
	for line := range strings.Lines(d.Input) {
		id := s.q.Image().Topic(strings.TrimSpace(line)).ID
		list = append(list, DirectoryAssignment{TopicID: id, Directory: dirID(10*broker + dir)})
	}
	return "", s.AssignDirectories(context.Background(), int32(broker), list)
}

// offline broker=1 dir=1 [stale]
func (s *script) offline(t *testing.T, d *datadriven.TestData) (string, error) {
	var broker, dir int
	d.ScanArgs(t, "broker", &broker)
	d.ScanArgs(t, "dir", &dir)
	epoch := s.q.Image().Broker(int32(broker)).Epoch
	if d.HasArg("stale") {
		epoch--
	}
	err := s.DirectoriesOffline(context.Background(), int32(broker), epoch, []uuid.UUID{dirID(10*broker + dir)})
	return fmt.Sprintf("%d directories left\n", len(s.q.Image().Broker(int32(broker)).LogDirs)), err
}

// Lines of create: name [partitions=n] [factor=n] [assign=0:1,2;1:2,1] [key=value ...] [key=null]
func parseTopics(t *testing.T, d *datadriven.TestData) (topics []NewTopic) {
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		topic := NewTopic{Name: words[0], Partitions: -1, ReplicationFactor: -1, Configs: map[string]*string{}}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch n, _ := strconv.Atoi(value); key {
			case "partitions":
				topic.Partitions = int32(n)
			case "factor":
				topic.ReplicationFactor = int16(n)
			case "assign":
				for a := range strings.SplitSeq(value, ";") {
					p, brokers, _ := strings.Cut(a, ":")
					number, err := strconv.Atoi(p)
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					topic.Assignments = append(topic.Assignments, Assignment{int32(number), parseBrokers(brokers)})
				}
			default:
				topic.Configs[key] = parseValue(value)
			}
		}
		topics = append(topics, topic)
	}
	return topics
}

func parseValue(s string) *string {
	if s == "null" {
		return nil
	}
	return &s
}

func parseBrokers(s string) (list []int32) {
	for w := range strings.SplitSeq(s, ",") {
		if n, err := strconv.Atoi(w); err == nil {
			list = append(list, int32(n))
		}
	}
	return list
}

// parseRef reads a name, id-of:NAME, both:NAME or no-id.
func (s *script) parseRef(word string) TopicRef {
	if name, ok := strings.CutPrefix(word, "id-of:"); ok {
		return TopicRef{ID: s.q.Image().Topic(name).ID}
	}
	if name, ok := strings.CutPrefix(word, "both:"); ok {
		return TopicRef{Name: name, ID: uuid.New()}
	}
	switch word {
	case "unknown-id":
		return TopicRef{ID: uuid.New()}
	case "nothing":
		return TopicRef{}
	}
	return TopicRef{Name: word}
}

// Lines of partitions: topic count [assign=1,2;2,1]
func parseIncreases(t *testing.T, d *datadriven.TestData) (list []PartitionsIncrease) {
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		n, err := strconv.Atoi(words[1])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		p := PartitionsIncrease{Topic: words[0], Count: int32(n)}
		if len(words) > 2 {
			p.Assignments = [][]int32{}
			for a := range strings.SplitSeq(strings.TrimPrefix(words[2], "assign="), ";") {
				p.Assignments = append(p.Assignments, parseBrokers(a))
			}
		}
		list = append(list, p)
	}
	return list
}

func parseResource(word string) metadata.ConfigResource {
	kind, name, _ := strings.Cut(word, ":")
	types := map[string]int8{"topic": metadata.ResourceTopic, "broker": metadata.ResourceBroker, "group": metadata.ResourceGroup, "logger": metadata.ResourceBrokerLogger}
	return metadata.ConfigResource{Type: types[kind], Name: name}
}

// Lines of alter: topic:NAME op:key[=value] ...
func parseAlter(t *testing.T, d *datadriven.TestData) (list []AlterConfig) {
	ops := map[string]ConfigOp{"set": ConfigSet, "delete": ConfigDelete, "append": ConfigAppend, "subtract": ConfigSubtract, "other": 7}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		r := AlterConfig{Resource: parseResource(words[0])}
		for _, w := range words[1:] {
			op, rest, ok := strings.Cut(w, ":")
			if !ok {
				d.Fatalf(t, "operation %q", w)
			}
			key, value, _ := strings.Cut(rest, "=")
			r.Changes = append(r.Changes, ConfigChange{key, ops[op], parseValue(value)})
		}
		list = append(list, r)
	}
	return list
}

// Lines of replace: topic:NAME key=value ...
func parseReplace(d *datadriven.TestData) (list []AlterConfig) {
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		r := AlterConfig{Resource: parseResource(words[0]), Replace: true}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			r.Changes = append(r.Changes, ConfigChange{key, ConfigSet, parseValue(value)})
		}
		list = append(list, r)
	}
	return list
}

// topics prints the partitions of all topics.
func (s *script) topics() string {
	var out strings.Builder
	img := s.q.Image()
	for _, name := range img.TopicNames() {
		for n, p := range img.Topic(name).Partitions {
			var dirs []string
			for i, dir := range p.Directories {
				switch {
				case dir == uuid.Unassigned:
					dirs = append(dirs, "unassigned")
				case dir == dirID(int(10*p.Replicas[i])):
					dirs = append(dirs, "its own")
				case dir == dirID(int(10*p.Replicas[i]+1)):
					dirs = append(dirs, "second")
				default:
					dirs = append(dirs, "other")
				}
			}
			fmt.Fprintf(&out, "%s-%d replicas=%v isr=%v leader=%d epoch=%d/%d dirs=%v\n", name, n, p.Replicas, p.ISR, p.Leader, p.LeaderEpoch, p.PartitionEpoch, dirs)
		}
	}
	return out.String()
}

// Concurrent requests for the same names: each name is created once.
func TestConcurrentCreate(t *testing.T) {
	s := newScript(t)
	if _, err := s.RegisterBroker(context.Background(), registration(1)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	created := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 10 {
				results, err := s.CreateTopics(context.Background(), []NewTopic{{Name: fmt.Sprint("t", n), Partitions: 1, ReplicationFactor: 1}}, false)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if err := results[0].Err; err == nil {
					created[results[0].Name]++
				} else if !errors.Is(err, &Error{Kind: TopicAlreadyExists}) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(created) != 10 || s.q.Image().NumTopics() != 10 {
		t.Errorf("created %v", created)
	}
	for name, n := range created {
		if n != 1 {
			t.Errorf("%s was created %d times", name, n)
		}
	}
}

// A broker that comes back leads again what nobody leads, from the ISR or the ELR, as a clean
// stop of Kafka leaves it, but not what it may have missed.
func TestRegisterElects(t *testing.T) {
	s := newScript(t)
	ctx := context.Background()
	for id := range int32(3) {
		if _, err := s.RegisterBroker(ctx, registration(id)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateTopics(ctx, []NewTopic{{Name: "t", Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, []int32{1, 2}}, {1, []int32{1, 2}}, {2, []int32{1, 2}}}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	change := func(partition int32, isr, elr []int32) *metadata.PartitionChangeRecord {
		r := metadata.NewPartitionChangeRecord()
		r.TopicID, r.PartitionID, r.Leader = s.q.Image().Topic("t").ID, partition, metadata.NoLeader
		r.ISR, r.EligibleLeaderReplicas, r.LastKnownELR = isr, elr, elr
		return r
	}
	wait, err := s.q.Propose(ctx, s.q.Tail(), []metadata.Record{change(0, []int32{1}, nil), change(1, []int32{}, []int32{1}), change(2, []int32{2}, nil)})
	if err == nil {
		err = wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := registration(1)
	r.PreviousEpoch = s.q.Image().Broker(1).Epoch
	if _, err := s.RegisterBroker(ctx, r); err != nil {
		t.Fatal(err)
	}
	want := [][]int32{{1}, {1}, {2}}
	for n, p := range s.q.Image().Topic("t").Partitions {
		leader := int32(1)
		if n == 2 {
			leader = metadata.NoLeader
		}
		if p.Leader != leader || !slices.Equal(p.ISR, want[n]) || len(p.ELR) > 0 || len(p.LastKnownELR) > 0 {
			t.Errorf("partition %d: %+v, want leader %d, ISR %v and no ELR", n, p, leader, want[n])
		}
	}
}

func registration(id int32) Registration {
	return Registration{
		ID: id, IncarnationID: uuid.New(), PreviousEpoch: -1, LogDirs: []uuid.UUID{dirID(int(10 * id))},
		Endpoints: []metadata.BrokerEndpoint{{Name: "PLAINTEXT", Host: "h", Port: 9092}},
	}
}

func TestRegistrationRefused(t *testing.T) {
	s := newScript(t)
	if _, err := s.RegisterBroker(context.Background(), registration(2)); err != nil {
		t.Fatal(err)
	}
	f := func(name string, change func(*Registration)) {
		t.Helper()
		r := registration(1)
		change(&r)
		if _, err := s.RegisterBroker(context.Background(), r); KindOf(err) != InvalidRegistration {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f("negative id", func(r *Registration) { r.ID = -1 })
	f("no incarnation", func(r *Registration) { r.IncarnationID = uuid.Zero })
	f("no listener", func(r *Registration) { r.Endpoints = nil })
	f("no directory", func(r *Registration) { r.LogDirs = nil })
	f("reserved directory", func(r *Registration) { r.LogDirs = []uuid.UUID{uuid.Lost} })
	f("directory twice", func(r *Registration) { r.LogDirs = append(r.LogDirs, r.LogDirs[0]) })
	f("directory of another broker", func(r *Registration) { r.LogDirs = registration(2).LogDirs })
}

// Placement spreads leaders and followers evenly and prefers different racks.
func TestPlacement(t *testing.T) {
	s := newScript(t)
	for id := range int32(6) {
		r := registration(id)
		rack := string(rune('a' + id%3))
		r.Rack = &rack
		if _, err := s.RegisterBroker(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	results, err := s.CreateTopics(context.Background(), []NewTopic{{Name: "t", Partitions: 60, ReplicationFactor: 3}}, false)
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results[0].Err)
	}
	leads, holds := map[int32]int{}, map[int32]int{}
	for n, p := range s.q.Image().Topic("t").Partitions {
		leads[p.Leader]++
		seen := map[int32]bool{}
		for _, id := range p.Replicas {
			holds[id]++
			if seen[id] {
				t.Errorf("partition %d is on %v", n, p.Replicas)
			}
			seen[id] = true
		}
	}
	for id := range int32(6) {
		if leads[id] != 10 || holds[id] < 25 || holds[id] > 35 {
			t.Errorf("broker %d leads %d of 60 and holds %d of 180", id, leads[id], holds[id])
		}
	}
}

// BenchmarkCreateTopics creates 1,000 topics of 10 partitions in one request.
func BenchmarkCreateTopics(b *testing.B) {
	topics := make([]NewTopic, 1000)
	for n := range topics {
		topics[n] = NewTopic{Name: fmt.Sprint("topic-", n), Partitions: 10, ReplicationFactor: 1}
	}
	for b.Loop() {
		b.StopTimer()
		s := newScript(b)
		if _, err := s.RegisterBroker(context.Background(), registration(1)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := s.CreateTopics(context.Background(), topics, false); err != nil {
			b.Fatal(err)
		}
	}
}
