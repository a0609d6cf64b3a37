package replica

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// TestScripts runs the scripts of testdata/state: what the brokers of a cluster decide about one partition. Each file
// begins with new brokers. The commands are the methods of script.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/state", func(t *testing.T, path string) {
		s := script{cluster: newCluster(3)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.d, s.out = d, strings.Builder{}
			s.run(t)
			return s.out.String()
		})
	})
}

// A script is the state of a file, and the output of the command that runs.
type script struct {
	*cluster
	d   *datadriven.TestData
	out strings.Builder
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) run(t *testing.T) {
	commands := map[string]func(){
		"brokers": s.setBrokers, "broker": s.setBroker, "partition": s.setPartition, "learn": s.learn, "append": s.append,
		"fetch": s.fetch, "heard": s.heard, "tick": s.tick, "alter": s.alter, "show": s.show, "committed": s.committed,
		"delete-records": s.deleteRecords, "list-offsets": s.listOffsets, "retention": s.retention, "epoch-end": s.epochEnd,
		"crash": s.crash, "next-fetch": s.nextFetch,
	}
	f := commands[s.d.Cmd]
	if f == nil {
		t.Fatalf("%s: unknown command %q", s.d.Pos, s.d.Cmd)
	}
	f()
}

func (s *script) arg(key string) (string, bool) {
	for _, a := range s.d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ","), true
		}
	}
	return "", false
}

func (s *script) num(key string, otherwise int64) int64 {
	text, ok := s.arg(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) list(key string, otherwise []int32) []int32 {
	if _, ok := s.arg(key); !ok {
		return otherwise
	}
	text, _ := s.arg(key)
	var ids []int32
	for id := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			panic(err)
		}
		ids = append(ids, int32(n))
	}
	return ids
}

func (s *script) node(key string) *simNode { return s.nodes[int32(s.num(key, 1))] }

// brokers n=3 [min-isr=1] [lag-ms=30000]: there are so many, with nothing.
func (s *script) setBrokers() {
	s.cluster = newCluster(int(s.num("n", 3)))
	s.minISR, s.lagMs = int(s.num("min-isr", 1)), s.num("lag-ms", 30_000)
}

// broker id=2 [fenced=1] [shutdown=1] [epoch=200] [unknown=1]: what the metadata says of it from now on.
func (s *script) setBroker() {
	b := *s.brokers[int32(s.num("id", 0))]
	b.Fenced, b.InControlledShutdown, b.Epoch = s.num("fenced", 0) == 1, s.num("shutdown", 0) == 1, s.num("epoch", b.Epoch)
	s.brokers[b.ID] = &b
	if s.num("unknown", 0) == 1 {
		delete(s.brokers, b.ID)
	}
}

// partition [leader=1] [replicas=1,2] [isr=1,2] [new-epoch=1] [on=1,2]: the controller changes the partition; the
// brokers learn of it, or those of on, on=0 for none.
func (s *script) setPartition() {
	s.change(func(p *metadata.Partition) {
		p.Leader = int32(s.num("leader", int64(p.Leader)))
		p.Replicas, p.ISR = s.list("replicas", p.Replicas), s.list("isr", p.ISR)
		p.LeaderEpoch += int32(s.num("new-epoch", 0))
	})
	s.learn()
}

// learn [on=2] [partition-epoch=0] [leader-epoch=0]: brokers learn the metadata, or ones with other epochs.
func (s *script) learn() {
	p := *s.meta
	p.PartitionEpoch = int32(s.num("partition-epoch", int64(p.PartitionEpoch)))
	p.LeaderEpoch = int32(s.num("leader-epoch", int64(p.LeaderEpoch)))
	for _, id := range s.list("on", s.ids()) {
		n := s.nodes[id]
		if n == nil {
			continue
		}
		old := n.state
		n.apply(&p)
		if n.state == old && old != nil {
			s.say("%d: nothing new", id)
		} else {
			s.say("%v", n)
		}
	}
}

// append [to=1] [n=1] [epoch=-1] [acks=all]
func (s *script) append() {
	n := s.node("to")
	acks, _ := s.arg("acks")
	if _, err := n.appendTo(int(s.num("n", 1)), int32(s.num("epoch", -1)), acks == "all"); err != nil {
		s.say("error: %v", err)
	}
	s.say("%v", n)
}

// fetch by=2 [from=1] [n=1] [max=1000] [lose=answer]: a follower fetches n times, and takes the answers.
func (s *script) fetch() {
	by, from := s.node("by"), s.node("from")
	_, lost := s.arg("lose")
	for range s.num("n", 1) {
		a := from.serve(by.ask(), int(s.num("max", 1000)))
		if lost {
			s.say("the answer is lost: %d records, error %v", len(a.records), a.err)
			continue
		}
		s.say("%s", by.take(a, from))
	}
	s.say("%v\n%v", from, by)
}

// heard from=2 [by=1] offset=3 [start=0] [epoch=-1] [broker-epoch=-1] [end=9]: the leader gets a fetch of any kind; it
// had its log end at end when it read.
func (s *script) heard() {
	by := s.node("by")
	f := FollowerFetch{Follower{int32(s.num("from", 2)), s.num("broker-epoch", -1)}, s.num("offset", 0), s.num("start", 0)}
	epoch := int32(s.num("epoch", -1))
	err := by.state.CheckLeader(epoch)
	if err == nil {
		err = by.state.CheckFollower(f.ID, epoch)
	}
	if err == nil {
		v := by.view()
		v.End = s.num("end", v.End)
		_, err = by.state.Fetched(f, v)
	}
	if err != nil {
		s.say("error: %v", err)
		return
	}
	if next := by.state.ExpandISR(f.ID, by.view()); next != nil {
		by.state = next
	}
	by.advance()
	s.say("%v", by)
	r := by.state.follower(f.ID)
	s.say("%d: end=%d caught up %d ms ago", r.ID, r.LogEnd, s.nowMs-r.CaughtUpMs)
}

// tick [ms=0]: time passes, and all leaders look who lags.
func (s *script) tick() {
	s.nowMs += s.num("ms", 0)
	for _, id := range s.ids() {
		n := s.nodes[id]
		if n.state == nil || !n.state.Leading {
			continue
		}
		if next := n.state.ShrinkISR(n.view()); next != nil {
			n.state = next
		}
		s.say("%v", n)
	}
}

// alter [from=1] [answer=not-controller] [lose=answer] [learn=1]: the controller decides what a leader asks. With answer it says
// that instead; with lose the leader does not hear it.
func (s *script) alter() {
	n := s.node("from")
	q := n.state.Pending
	if q == nil {
		s.say("nothing is asked")
		return
	}
	s.say("asks for isr=%v broker epochs=%v in epoch=%d.%d", q.ISR, q.BrokerEpochs, q.LeaderEpoch, q.PartitionEpoch)
	a := s.answerTo(n, q)
	if _, lost := s.arg("lose"); lost {
		return
	}
	s.say("answer: %s", sayAnswer(a))
	if n.answer(q, a) {
		s.say("asks again")
	}
	s.say("%v", n)
}

func (s *script) answerTo(n *simNode, q *ISRChange) *ISRAnswer {
	if name, ok := s.arg("answer"); ok {
		err := refusals[name]
		if err == nil {
			err = errors.New(name)
		}
		return &ISRAnswer{Err: err}
	}
	a := s.decide(n.id, q)
	a.LeaderEpoch += int32(s.num("leader-epoch", 0))
	a.PartitionEpoch += int32(s.num("partition-epoch", 0))
	return a
}

var refusals = map[string]error{
	"ineligible-replica": ErrIneligibleReplica, "operation-not-attempted": ErrOperationNotAttempted,
	"fenced-leader-epoch": ErrFencedLeaderEpoch, "invalid-update-version": ErrInvalidUpdateVersion,
	"invalid-request": ErrInvalidRequest, "new-leader-elected": ErrNewLeaderElected,
	"unknown-topic": ErrUnknownTopicOrPartition, "unknown-topic-id": ErrUnknownTopicID,
}

func sayAnswer(a *ISRAnswer) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	return fmt.Sprintf("isr=%v epoch=%d.%d", a.ISR, a.LeaderEpoch, a.PartitionEpoch)
}

// show: all replicas.
func (s *script) show() {
	for _, id := range s.ids() {
		s.say("%v", s.nodes[id])
	}
}

// committed [on=1] offset=3
func (s *script) committed() {
	n := s.node("on")
	done, err := n.state.CheckCommitted(s.num("offset", 0), n.view())
	s.say("done=%t err=%v", done, err)
}

// delete-records [on=1] offset=3
func (s *script) deleteRecords() {
	n := s.node("on")
	n.log.start = min(max(n.log.start, s.num("offset", 0)), n.log.hw)
	s.say("start=%d low watermark=%d", n.log.start, n.state.LowWatermark(n.view()))
}

// retention [on=1] start=3: the log loses its beginning.
func (s *script) retention() {
	n := s.node("on")
	n.log.start = s.num("start", 0)
	s.say("%v", n)
}

// list-offsets [on=1]
func (s *script) listOffsets() {
	n := s.node("on")
	if err := n.state.CheckOffsets(n.view()); err != nil {
		s.say("error: %v", err)
		return
	}
	s.say("latest=%d", n.log.hw)
}

// epoch-end [on=1] epoch=3
func (s *script) epochEnd() {
	e := s.node("on").log.epochEnd(int32(s.num("epoch", 0)))
	s.say("epoch=%d end=%d epochs=%v", e.Epoch, e.End, s.node("on").log.epochs)
}

// crash [on=2] [end=3] [hw=0]: the broker starts again, perhaps without the end of its log.
func (s *script) crash() {
	n := s.node("on")
	n.log.truncate(s.num("end", n.log.end()))
	n.log.hw = min(s.num("hw", n.log.hw), n.log.end())
	n.state = nil
	b := *s.brokers[n.id]
	b.Epoch += 100
	s.brokers[n.id] = &b
	if slices.Contains(s.meta.Replicas, n.id) {
		n.learn()
	}
	s.say("%v", n)
}

// next-fetch [on=2]: what the follower asks next.
func (s *script) nextFetch() {
	f := s.node("on").ask()
	s.say("offset=%d last epoch=%d epoch=%d", f.Offset, f.lastEpoch, f.epoch)
}
