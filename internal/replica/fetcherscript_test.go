package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// TestFetcherScripts runs the scripts of testdata/fetcher: what a fetcher decides about its partitions, numbered from 0, and
// what it tells the leader. The commands are the methods of fetcherScript.
func TestFetcherScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/fetcher", func(t *testing.T, path string) {
		s := &fetcherScript{parts: map[int32]*followed{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			commands := map[string]func() string{
				"follow": s.follow, "end": s.end, "goes-on": s.goesOn, "ask": s.ask, "answer": s.answer, "session": s.answerSession, "fails": s.fails, "begin-anew": s.beginAnew,
			}
			f := commands[d.Cmd]
			if f == nil {
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			}
			s.script.d = d
			return f()
		})
	})
}

type fetcherScript struct {
	script  // for its arguments
	parts   map[int32]*followed
	session clientSession
	last    LeaderFetch
}

func (s *fetcherScript) part() *followed { return s.parts[int32(s.num("p", 0))] }

// follow p=0 epoch=1 [latest=-1] [hw=0] [end=0]: the metadata say to follow; the log is so.
func (s *fetcherScript) follow() string {
	f := beginFollowing(int32(s.num("epoch", 1)), int32(s.num("latest", -1)), &View{HW: s.num("hw", 0), End: s.num("end", 0)})
	s.parts[int32(s.num("p", 0))] = &f
	return f.String()
}

// end p=0: the partition is not followed any more.
func (s *fetcherScript) end() string {
	delete(s.parts, int32(s.num("p", 0)))
	return ""
}

// goes-on p=0 offset=5 epoch=1: records came, or were cut.
func (s *fetcherScript) goesOn() string {
	s.part().phase = phaseFetching
	s.part().goOn(s.num("offset", 0), int32(s.num("epoch", 1)))
	return s.part().String()
}

// ask [now=0]: the next fetch.
func (s *fetcherScript) ask() string {
	var asks []AskedPartition
	for p, f := range s.parts {
		if f.asks(s.num("now", 0)) {
			asks = append(asks, AskedPartition{PartitionID: PartitionID{topicID(1), p}, Offset: f.Offset, LeaderEpoch: f.LeaderEpoch, LastEpoch: f.LastEpoch})
		}
	}
	s.session.next(asks, &s.last)
	var b strings.Builder
	fmt.Fprintf(&b, "session %d epoch %d\n", s.last.SessionID, s.last.SessionEpoch)
	for _, a := range s.last.Partitions {
		fmt.Fprintf(&b, "%d: from %d in %d after %d\n", a.Index, a.Offset, a.LeaderEpoch, a.LastEpoch)
	}
	for _, p := range s.last.Forgotten {
		fmt.Fprintf(&b, "%d: forget\n", p.Index)
	}
	return b.String()
}

var scriptErrors = map[string]error{
	"": nil, "out-of-range": commitlog.ErrOffsetOutOfRange, "fenced": ErrFencedLeaderEpoch, "unknown-epoch": ErrUnknownLeaderEpoch,
	"not-leader": ErrNotLeaderOrFollower, "unknown-topic": ErrUnknownTopicOrPartition, "unknown-id": ErrUnknownTopicID, "inconsistent-id": ErrInconsistentTopicID,
	"offline": ErrOffline, "storage": commitlog.ErrStorage, "no-session": ErrSessionNotFound, "session-epoch": ErrSessionEpoch,
}

func (s *fetcherScript) err() error {
	text, _ := s.arg("err")
	err, ok := scriptErrors[text]
	if !ok {
		panic("unknown error " + text)
	}
	return err
}

// answer p=0 [epoch=1] [offset=0] [err=fenced] [diverging=1]: what to do about it.
func (s *fetcherScript) answer() string {
	f := s.part()
	step := f.answered(int32(s.num("epoch", int64(f.LeaderEpoch))), s.num("offset", f.Offset), s.err(), s.num("diverging", 0) == 1)
	if step == stepFail {
		f.fail()
	}
	return []string{"ignore", "append", "truncate", "restart", "wait", "fail"}[step] + "\n"
}

// begin-anew p=0 at=1000: after a pause.
func (s *fetcherScript) beginAnew() string {
	s.part().beginAnew(s.num("at", 0))
	return s.part().String()
}

// session id=7 [err=no-session] [parts=0,1]: the leader answers, about these partitions.
func (s *fetcherScript) answerSession() string {
	a := &LeaderAnswer{Err: s.err(), SessionID: int32(s.num("id", 0))}
	for _, p := range s.list("parts", nil) {
		a.Partitions = append(a.Partitions, AnsweredPartition{PartitionID: PartitionID{topicID(1), p}})
	}
	return fmt.Sprintf("counts: %t, session %d epoch %d, the leader knows of %v\n", s.session.answered(a), s.session.id, s.session.epoch, s.known())
}

// fails: no answer came.
func (s *fetcherScript) fails() string {
	s.session.failed()
	return fmt.Sprintf("session %d epoch %d\n", s.session.id, s.session.epoch)
}

func (s *fetcherScript) known() []int32 {
	list := []int32{}
	for id := range s.session.known {
		list = append(list, id.Index)
	}
	slices.Sort(list)
	return list
}

func (f *followed) String() string {
	return fmt.Sprintf("%s from %d in %d after %d until %d\n", []string{"new", "truncating", "fetching", "failed"}[f.phase], f.Offset, f.LeaderEpoch, f.LastEpoch, f.WaitUntilMs)
}
