package group

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/coordinator"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// The scripts in testdata/scripts drive a shard by commands, in virtual time, over a log
// in memory. Each command prints what it wrote and who was answered what, in order.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.out.Reset()
			w.run(t, d)
			w.checkInvariants(t)
			if w.out.Len() == 0 {
				return "ok\n"
			}
			return w.out.String()
		})
	})
}

// A world is a shard, its log and its clock.
type world struct {
	cfg    Config
	shard  *Shard
	now    time.Time
	ids    int
	log    []coordinator.Replayed
	held   []coordinator.Write // not appended yet
	hold   bool
	failAs error // what the next append fails with
	out    strings.Builder
}

func newWorld() *world {
	w := &world{cfg: DefaultConfig(), now: time.UnixMilli(1_000_000)}
	w.restart()
	return w
}

// restart loads the shard from the log.
func (w *world) restart() {
	w.shard = NewShard(w.cfg, func() string { w.ids++; return strconv.Itoa(w.ids) }, slog.New(slog.DiscardHandler))
	for _, r := range w.log {
		if err := w.shard.Replay(r); err != nil {
			w.printf("replay: %v", err)
		}
	}
	w.step(w.shard.Loaded)
}

func (w *world) printf(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// step runs f and, unless writes are on hold, what it wants written.
func (w *world) step(f func(t *coordinator.Turn)) {
	t := &coordinator.Turn{Now: w.now}
	f(t)
	w.held = append(w.held, t.Writes...)
	if !w.hold {
		w.commit()
	}
}

// commit appends the writes one by one, as a runtime might.
func (w *world) commit() {
	for len(w.held) > 0 {
		write := w.held[0]
		t := &coordinator.Turn{Now: w.now}
		if w.failAs != nil {
			err := w.failAs
			w.failAs = nil
			w.printf("log fails: %v", err)
			write.Done(t, -1, err)
		} else {
			write.Done(t, w.append(write.Records, -1), nil)
		}
		w.held = append(w.held[1:], t.Writes...)
	}
}

func (w *world) append(records []coordinator.Record, producerID int64) int64 {
	first := int64(len(w.log))
	for i, r := range records {
		w.log = append(w.log, coordinator.Replayed{Record: r, Offset: first + int64(i), ProducerID: producerID})
		w.printf("log %s", describeRecord(r))
	}
	return first
}

// advance lets time pass, timer by timer.
func (w *world) advance(d time.Duration) {
	end := w.now.Add(d)
	for {
		at, ok := w.shard.Deadline()
		if !ok || at.After(end) {
			break
		}
		w.now = at
		before := w.out.Len()
		w.step(w.shard.Tick)
		if w.out.Len() > before {
			w.printf("at %v", w.now.Sub(end.Add(-d)))
		}
	}
	w.now = end
}

// args reads the arguments of a command.
type args struct{ d *datadriven.TestData }

func (a args) str(key, otherwise string) string {
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key {
			return strings.Join(arg.Vals, ",")
		}
	}
	return otherwise
}

func (a args) has(key string) bool {
	return slices.ContainsFunc(a.d.CmdArgs, func(c datadriven.CmdArg) bool { return c.Key == key })
}

func (a args) opt(key string) *string {
	if !a.has(key) {
		return nil
	}
	s := a.str(key, "")
	return &s
}

func (a args) num(key string, otherwise int) int {
	n, err := strconv.Atoi(a.str(key, strconv.Itoa(otherwise)))
	if err != nil {
		panic(err)
	}
	return n
}

func (a args) duration(key, otherwise string) time.Duration {
	d, err := time.ParseDuration(a.str(key, otherwise))
	if err != nil {
		panic(err)
	}
	return d
}

func (w *world) run(t *testing.T, d *datadriven.TestData) {
	a := args{d}
	switch d.Cmd {
	case "config":
		w.cfg.InitialRebalanceDelay = a.duration("initial-delay", w.cfg.InitialRebalanceDelay.String())
		w.cfg.MaxSize = a.num("max-size", w.cfg.MaxSize)
		w.cfg.OffsetsRetention = a.duration("retention", w.cfg.OffsetsRetention.String())
		w.cfg.OffsetMetadataMax = a.num("metadata-max", w.cfg.OffsetMetadataMax)
		w.restart()
	case "restart":
		w.held = nil
		w.restart()
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		w.advance(by)
	case "hold":
		w.hold = true
	case "release":
		w.hold = false
		w.commit()
	case "fail-next":
		w.failAs = errors.New("disk on fire")
	case "stop":
		w.shard.Stop(coordinator.ErrNotCoordinator)
	case "join":
		w.join(a)
	case "sync":
		w.sync(a)
	case "heartbeat":
		w.step(func(t *coordinator.Turn) {
			err := w.shard.Heartbeat(t, a.str("group", "g"), a.str("member", ""), a.opt("instance"), int32(a.num("generation", 0)))
			w.printf("heartbeat: %s", errName(err))
		})
	case "leave":
		w.leave(a)
	case "commit":
		w.commitOffsets(a)
	case "txn-commit": // as a transaction writes it
		w.pendingOffset(t, a)
	case "marker":
		w.shard.EndTransaction(int64(a.num("producer", 1)), a.has("commit"))
	case "fetch":
		w.fetch(a)
	case "list":
		for _, l := range w.shard.List() {
			w.printf("%s %s protocol=%q state=%s", l.Group, l.Type, l.ProtocolType, l.State)
		}
	case "describe":
		w.describe(a)
	case "delete":
		w.step(func(t *coordinator.Turn) {
			w.shard.Delete(t, strings.Split(a.str("groups", "g"), ","), func(errs []error) { w.printf("delete: %s", errNames(errs)) })
		})
	case "delete-offsets":
		w.step(func(t *coordinator.Turn) {
			w.shard.DeleteOffsets(t, a.str("group", "g"), parseTopics(a.str("offsets", "")), func(errs []error, err error) {
				w.printf("delete-offsets: %s %s", errName(err), errNames(errs))
			})
		})
	case "drop-topics":
		w.step(func(t *coordinator.Turn) { w.shard.DropTopics(t, strings.Split(a.str("topics", ""), ",")) })
	case "record": // a record of another broker: key as hex
		w.foreignRecord(t, a)
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
}

func (w *world) join(a args) {
	as := a.str("as", "join")
	r := &JoinRequest{
		Group: a.str("group", "g"), MemberID: a.str("member", ""), InstanceID: a.opt("instance"),
		ClientID: a.str("client", "c"), ClientHost: "/127.0.0.1",
		SessionTimeout: a.duration("session", "10s"), RebalanceTimeout: a.duration("rebalance", "60s"),
		ProtocolType: a.str("type", "consumer"),
		NeedKnownID:  a.has("v4"), CanSkipAssignment: a.has("v9"),
	}
	for _, p := range strings.Split(a.str("protocols", "range:t"), ",") {
		name, topics, _ := strings.Cut(p, ":")
		if name != "" {
			r.Protocols = append(r.Protocols, Protocol{name, subscriptionTo(topics)})
		}
	}
	w.step(func(t *coordinator.Turn) {
		w.shard.Join(t, r, func(resp *JoinResponse) {
			if resp.Err != nil {
				w.printf("%s: %s member=%q", as, errName(resp.Err), resp.MemberID)
				return
			}
			var members []string
			for _, m := range resp.Members {
				members = append(members, m.ID)
			}
			skip := ""
			if resp.SkipAssignment {
				skip = " skip-assignment"
			}
			w.printf("%s: generation=%d protocol=%s leader=%s member=%s members=%v%s",
				as, resp.Generation, resp.Protocol, resp.Leader, resp.MemberID, members, skip)
		})
	})
}

// subscriptionTo is the metadata of a consumer that reads some topics, or bytes that are
// none.
func subscriptionTo(topics string) []byte {
	if topics == "garbage" {
		return []byte{0, 0, 0x7f, 0xff, 0xff, 0xff}
	}
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 1, strings.Split(topics, "+")
	return m.AppendTo(nil)
}

func (w *world) sync(a args) {
	as := a.str("as", "sync")
	r := &SyncRequest{
		Group: a.str("group", "g"), MemberID: a.str("member", ""), InstanceID: a.opt("instance"),
		Generation: int32(a.num("generation", 1)), ProtocolType: a.opt("type"), Protocol: a.opt("protocol"),
		Assignments: make(map[string][]byte),
	}
	for _, line := range strings.Fields(a.d.Input) {
		id, assignment, _ := strings.Cut(line, "=")
		r.Assignments[id] = []byte(assignment)
	}
	w.step(func(t *coordinator.Turn) {
		w.shard.Sync(t, r, func(resp *SyncResponse) {
			if resp.Err != nil {
				w.printf("%s: %s", as, errName(resp.Err))
				return
			}
			w.printf("%s: protocol=%s assignment=%q", as, resp.Protocol, resp.Assignment)
		})
	})
}

func (w *world) leave(a args) {
	var leavers []Leaver
	if a.has("member") || !a.has("instance") {
		for _, id := range strings.Split(a.str("member", ""), ",") {
			leavers = append(leavers, Leaver{id, a.opt("instance")})
		}
	} else {
		leavers = append(leavers, Leaver{"", a.opt("instance")})
	}
	w.step(func(t *coordinator.Turn) {
		w.printf("leave: %s", errNames(w.shard.Leave(t, a.str("group", "g"), leavers)))
	})
}

// parseOffset reads topic-partition=offset/metadata.
func parseCommit(s string) CommitOffset {
	name, value, _ := strings.Cut(s, "=")
	topic, partition, _ := strings.Cut(name, "-")
	number, metadata, _ := strings.Cut(value, "/")
	p, _ := strconv.Atoi(partition)
	o, _ := strconv.Atoi(number)
	return CommitOffset{Topic: topic, TopicID: uuid.UUID{15: 200}, Partition: int32(p), Offset: int64(o), LeaderEpoch: 7, Metadata: metadata}
}

func parseTopics(s string) []TopicPartitions {
	var list []TopicPartitions
	for _, name := range strings.Split(s, ",") {
		c := parseCommit(name)
		list = append(list, TopicPartitions{c.Topic, []int32{c.Partition}})
	}
	return list
}

func (w *world) commitOffsets(a args) {
	r := &CommitRequest{
		Group: a.str("group", "g"), MemberID: a.str("member", ""), InstanceID: a.opt("instance"),
		Generation: int32(a.num("generation", -1)), RetentionMs: a.duration("retention", "-1ms").Milliseconds(), NotFound: ErrIllegalGeneration,
	}
	for _, s := range strings.Split(a.str("offsets", ""), ",") {
		r.Offsets = append(r.Offsets, parseCommit(s))
	}
	w.step(func(t *coordinator.Turn) {
		w.shard.Commit(t, r, func(errs []error, err error) { w.printf("commit: %s %s", errName(err), errNames(errs)) })
	})
}

func (w *world) pendingOffset(t *testing.T, a args) {
	producer := int64(a.num("producer", 1))
	c := parseCommit(a.str("offsets", ""))
	r := offsetRecord(a.str("group", "g"), c.Topic, c.Partition, c.value(w.now.UnixMilli(), -1))
	w.append([]coordinator.Record{r}, producer)
	if err := w.shard.Replay(w.log[len(w.log)-1]); err != nil {
		t.Fatal(err)
	}
}

func (w *world) foreignRecord(t *testing.T, a args) {
	key := []byte{0, byte(a.num("type", 0))}
	for _, s := range strings.Split(a.str("key", ""), ",") {
		key = append(key, 0, byte(len(s)))
		key = append(key, s...)
	}
	r := coordinator.Record{Key: key, Value: []byte{0, 0}}
	if a.has("tombstone") {
		r.Value = nil
	}
	w.append([]coordinator.Record{r}, -1)
	if err := w.shard.Replay(w.log[len(w.log)-1]); err != nil {
		t.Fatal(err)
	}
}

func (w *world) fetch(a args) {
	r := &FetchRequest{Group: a.str("group", "g"), RequireStable: a.has("stable")}
	if a.has("offsets") {
		r.Topics = parseTopics(a.str("offsets", ""))
	}
	for _, topic := range w.shard.Fetch(r) {
		for _, o := range topic.Offsets {
			w.printf("%s-%d offset=%d epoch=%d metadata=%q %s", topic.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, errName(o.Err))
		}
	}
}

func (w *world) describe(a args) {
	d := w.shard.Describe(a.str("group", "g"))
	w.printf("%s state=%s type=%q protocol=%q %s", d.Group, d.State, d.ProtocolType, d.Protocol, errName(d.Err))
	for _, m := range d.Members {
		w.printf("  %s instance=%s client=%s metadata=%dB assignment=%q", m.ID, orBlank(m.InstanceID), m.ClientID, len(m.Metadata), m.Assignment)
	}
}

func errName(err error) string {
	if err == nil {
		return "NONE"
	}
	for refusal, name := range errNameOf {
		if errors.Is(err, refusal) {
			return name
		}
	}
	return err.Error()
}

// errNameOf has Kafka's names of the refusals.
var errNameOf = map[error]string{
	ErrUnknownMemberID:            "UNKNOWN_MEMBER_ID",
	ErrFencedInstanceID:           "FENCED_INSTANCE_ID",
	ErrRebalanceInProgress:        "REBALANCE_IN_PROGRESS",
	ErrIllegalGeneration:          "ILLEGAL_GENERATION",
	ErrInconsistentGroupProtocol:  "INCONSISTENT_GROUP_PROTOCOL",
	ErrMemberIDRequired:           "MEMBER_ID_REQUIRED",
	ErrGroupMaxSizeReached:        "GROUP_MAX_SIZE_REACHED",
	ErrInvalidSessionTimeout:      "INVALID_SESSION_TIMEOUT",
	ErrInvalidGroupID:             "INVALID_GROUP_ID",
	ErrGroupIDNotFound:            "GROUP_ID_NOT_FOUND",
	ErrNonEmptyGroup:              "NON_EMPTY_GROUP",
	ErrGroupSubscribedToTopic:     "GROUP_SUBSCRIBED_TO_TOPIC",
	ErrUnstableOffsetCommit:       "UNSTABLE_OFFSET_COMMIT",
	ErrOffsetMetadataTooLarge:     "OFFSET_METADATA_TOO_LARGE",
	ErrCoordinatorNotAvailable:    "COORDINATOR_NOT_AVAILABLE",
	coordinator.ErrNotCoordinator: "NOT_COORDINATOR",
}

func errNames(errs []error) string {
	names := make([]string, len(errs))
	for i, err := range errs {
		names[i] = errName(err)
	}
	return "[" + strings.Join(names, " ") + "]"
}

func describeRecord(r coordinator.Record) string {
	k, _ := parseKeyType(r.Key)
	switch k {
	case keyOffset:
		var key kmsg.OffsetCommitKey
		_ = key.ReadFrom(r.Key)
		if r.Value == nil {
			return fmt.Sprintf("offset %s %s-%d tombstone", key.Group, key.Topic, key.Partition)
		}
		var v kmsg.OffsetCommitValue
		_ = v.ReadFrom(r.Value)
		return fmt.Sprintf("offset %s %s-%d = %d (version %d)", key.Group, key.Topic, key.Partition, v.Offset, v.Version)
	case keyGroup:
		var key kmsg.GroupMetadataKey
		_ = key.ReadFrom(r.Key)
		if r.Value == nil {
			return fmt.Sprintf("group %s tombstone", key.Group)
		}
		var v kmsg.GroupMetadataValue
		_ = v.ReadFrom(r.Value)
		var members []string
		for _, m := range v.Members {
			members = append(members, fmt.Sprintf("%s=%s", m.MemberID, m.Assignment))
		}
		return fmt.Sprintf("group %s generation=%d type=%q protocol=%s leader=%s members=%v",
			key.Group, v.Generation, v.ProtocolType, orBlank(v.Protocol), orBlank(v.Leader), members)
	}
	return fmt.Sprintf("type %d %q", k, r.Key[2:])
}

// testingT is what *testing.T and *rapid.T share.
type testingT interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkInvariants looks for states that no sequence of requests may lead to.
func (w *world) checkInvariants(t testingT) {
	t.Helper()
	for id, g := range w.shard.groups {
		if g.id != id || len(g.byID) != len(g.members) {
			t.Errorf("group %q: %d members, %d by id", id, len(g.members), len(g.byID))
		}
		if (g.leader == "") != (len(g.members) == 0) || g.leader != "" && g.byID[g.leader] == nil {
			t.Errorf("group %q: leader %q of %d members", id, g.leader, len(g.members))
		}
		if g.state == Empty && len(g.members) > 0 {
			t.Errorf("group %q is Empty with %d members", id, len(g.members))
		}
		static := 0
		for _, m := range g.members {
			if m.isStatic() {
				static++
				if g.static[*m.instanceID] != m {
					t.Errorf("group %q: instance %q is not indexed", id, *m.instanceID)
				}
			}
			if m.join != nil && g.state != PreparingRebalance {
				t.Errorf("group %q: %q waits to join in %v", id, m.id, g.state)
			}
			if m.sync != nil && g.state != CompletingRebalance {
				t.Errorf("group %q: %q waits for its assignment in %v", id, m.id, g.state)
			}
		}
		if static != len(g.static) {
			t.Errorf("group %q: %d static members, %d instances", id, static, len(g.static))
		}
		pending := 0
		for _, txn := range w.shard.transactions {
			for _, partitions := range txn[id] {
				pending += len(partitions)
			}
		}
		if pending != g.pending {
			t.Errorf("group %q counts %d pending offsets, has %d", id, g.pending, pending)
		}
	}
	for producer, txn := range w.shard.transactions {
		if len(txn) == 0 {
			t.Errorf("producer %d has a transaction without groups", producer)
		}
		for id, offsets := range txn {
			if len(offsets) == 0 {
				t.Errorf("producer %d has pending offsets of group %q, which are none", producer, id)
			}
			if w.shard.groups[id] == nil {
				t.Errorf("producer %d has pending offsets of group %q, which does not exist", producer, id)
			}
		}
	}
}
