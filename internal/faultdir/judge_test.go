package faultdir

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/topic"
)

var (
	untouched = topic.Partition{Topic: "a"}
	touched   = topic.Partition{Topic: "b"}
)

// someReading is of two partitions with ten records each: at 5 an aborted one, at 6 its marker. The
// fault has touched the batch of 7 and 8 in one of them.
func someReading() *Reading {
	r := &Reading{ClusterID: "c", Partitions: map[topic.Partition]*PartitionReading{}, Groups: map[string]map[topic.Partition]string{"g": {untouched: "4"}}}
	for _, id := range []topic.Partition{untouched, touched} {
		p := &PartitionReading{Start: 0, End: 10, LastStable: 10, Times: map[int64]Answer{7: {7, 7}}, Epochs: map[int32]EpochEnd{0: {0, 10}}}
		for i := range int64(10) {
			rec := Record{Offset: i, Timestamp: i, Digest: uint64(i), Producer: -1, Control: -1}
			switch i {
			case 5:
				rec.Producer = 1
			case 6:
				rec.Producer, rec.Control = 1, 0
			default:
				p.Committed = append(p.Committed, rec)
			}
			p.Uncommitted = append(p.Uncommitted, rec)
		}
		r.Partitions[id] = p
	}
	return r
}

func someScope() *Scope {
	return &Scope{Kind: LogFile, Touched: map[topic.Partition]bool{touched: true}, Lost: map[topic.Partition]stretches{touched: {{7, 9}}}, Proven: map[topic.Partition]int64{touched: 10}}
}

func without(list []Record, offset int64) []Record {
	return slices.DeleteFunc(slices.Clone(list), func(r Record) bool { return r.Offset == offset })
}

// The judge objects to each thing that may not be, and to nothing that may.
func TestJudgeObjects(t *testing.T) {
	f := func(what string, id topic.Partition, sabotage func(r *Reading, p *PartitionReading), want ...Rule) {
		t.Helper()
		got := someReading()
		sabotage(got, got.Partitions[id])
		j := newJudgement(someScope(), someReading())
		j.reading(got)
		if !slices.Equal(j.rules(), want) {
			t.Errorf("%s: %v, want %v", what, j.list, want)
		}
	}
	both := func(offset int64) func(*Reading, *PartitionReading) {
		return func(_ *Reading, p *PartitionReading) {
			p.Uncommitted, p.Committed = without(p.Uncommitted, offset), without(p.Committed, offset)
		}
	}
	f("nothing", touched, func(*Reading, *PartitionReading) {})
	f("a record of the touched batch", touched, both(7))
	f("a record beside it", touched, both(9), Lost)
	f("a record of another partition", untouched, both(7), Lost)
	f("a record for readers of committed records only", touched, func(_ *Reading, p *PartitionReading) { p.Committed = without(p.Committed, 4) }, Lost)
	f("another value", touched, func(_ *Reading, p *PartitionReading) { p.Uncommitted[8].Digest++ }, Wrong)
	f("a record where none was", untouched, func(_ *Reading, p *PartitionReading) {
		p.Uncommitted = append(p.Uncommitted, Record{Offset: 10, Producer: -1, Control: -1})
	}, Wrong)
	f("records out of order", untouched, func(_ *Reading, p *PartitionReading) { slices.Reverse(p.Uncommitted) }, Wrong)
	f("an aborted record", touched, func(_ *Reading, p *PartitionReading) { p.Committed = slices.Insert(p.Committed, 5, p.Uncommitted[5]) }, Aborted)
	f("a shorter log", touched, func(_ *Reading, p *PartitionReading) { p.End, p.LastStable = 9, 9 }, Reused)
	f("a longer log", untouched, func(_ *Reading, p *PartitionReading) { p.End = 11 }, OtherAnswer)
	f("a later start over lost records only", touched, func(_ *Reading, p *PartitionReading) { p.Start = 1 })
	f("a later start elsewhere", untouched, func(_ *Reading, p *PartitionReading) { p.Start = 1 }, Lost)
	f("an open transaction", touched, func(_ *Reading, p *PartitionReading) { p.LastStable = 5 }, OtherAnswer)
	f("the time of a lost record", touched, func(_ *Reading, p *PartitionReading) { p.Times[7] = Answer{9, 9} })
	f("another time", untouched, func(_ *Reading, p *PartitionReading) { p.Times[7] = Answer{9, 9} }, OtherAnswer)
	f("another epoch", untouched, func(_ *Reading, p *PartitionReading) { p.Epochs[0] = EpochEnd{-1, -1} }, OtherAnswer)
	f("another committed offset", untouched, func(r *Reading, _ *PartitionReading) { r.Groups["g"][untouched] = "3" }, OtherAnswer)
	f("a group of nobody", untouched, func(r *Reading, _ *PartitionReading) { r.Groups["h"] = nil }, OtherAnswer)
	f("an error", untouched, func(_ *Reading, p *PartitionReading) { p.Err = "KAFKA_STORAGE_ERROR" }, Unavailable)
	f("an error while reading", untouched, func(_ *Reading, p *PartitionReading) { p.Errors = append(p.Errors, FetchError{4, "CORRUPT_MESSAGE"}) }, Unavailable)
	f("no partition", untouched, func(r *Reading, _ *PartitionReading) { delete(r.Partitions, untouched) }, Unavailable)
	f("a partition of nobody", untouched, func(r *Reading, _ *PartitionReading) {
		r.Partitions[topic.Partition{Topic: "c"}] = &PartitionReading{}
	}, Wrong)
}

func TestJudgeObjectsToAppends(t *testing.T) {
	f := func(what string, offset int64, want ...Rule) {
		t.Helper()
		j := newJudgement(someScope(), someReading())
		j.appended(someReading(), map[topic.Partition]Record{touched: {Offset: offset}})
		if !slices.Equal(j.rules(), want) {
			t.Errorf("%s: %v, want %v", what, j.list, want)
		}
	}
	f("at the end", 10)
	f("at an old offset", 9, Reused)
	f("behind a hole", 11, Wrong)
	f("refused", -1-56, Unavailable)
}

func TestJudgeObjectsToAnotherReading(t *testing.T) {
	added := map[topic.Partition]Record{untouched: {Offset: 10, Digest: 99, Producer: -1, Control: -1}}
	f := func(what string, sabotage func(*PartitionReading), want ...Rule) {
		t.Helper()
		got := someReading()
		p := got.Partitions[untouched]
		p.Uncommitted, p.Committed = append(p.Uncommitted, added[untouched]), append(p.Committed, added[untouched])
		p.End, p.LastStable = 11, 11
		sabotage(p)
		j := newJudgement(someScope(), someReading())
		j.again("kill", someReading(), got, added)
		if !slices.Equal(j.rules(), want) {
			t.Errorf("%s: %v, want %v", what, j.list, want)
		}
	}
	f("nothing", func(*PartitionReading) {})
	f("the new record is gone", func(p *PartitionReading) { p.Uncommitted = without(p.Uncommitted, 10) }, Changed)
	f("an aborted record", func(p *PartitionReading) { p.Committed = slices.Insert(p.Committed, 5, p.Uncommitted[5]) }, Changed)
	f("another end", func(p *PartitionReading) { p.End++ }, Changed)
}

func TestJudgeObjectsToRefusals(t *testing.T) {
	f := func(what string, kind FileKind, err error, want ...Rule) {
		t.Helper()
		r := &Result{Fault: Fault{Path: "d/meta.properties"}, Scope: &Scope{Kind: kind, Refusal: kind.identity()}}
		j := newJudgement(r.Scope, someReading())
		(&Subject{}).refused(j, r, err)
		if !slices.Equal(j.rules(), want) {
			t.Errorf("%s: %v, want %v", what, j.list, want)
		}
	}
	f("named", MetaProperties, errors.New("d/meta.properties: damaged"))
	f("not named", MetaProperties, errors.New("damaged"), Unnamed)
	f("a partition's file", LogFile, errors.New("d/meta.properties: damaged"), Refused)
	f("no end", MetaProperties, errHangs, Hangs)
}

// What a whole file of another partition excuses: its records, and that one of its transactions that nothing ends holds
// the last stable offset back. No more.
func TestJudgeOfForeignFiles(t *testing.T) {
	f := func(what string, foreign bool, sabotage func(*PartitionReading), want ...Rule) {
		t.Helper()
		got, scope := someReading(), someScope()
		scope.Foreign = map[topic.Partition]bool{touched: foreign}
		sabotage(got.Partitions[touched])
		j := newJudgement(scope, someReading())
		j.reading(got)
		if !slices.Equal(j.rules(), want) {
			t.Errorf("%s: %v, want %v", what, j.list, want)
		}
		if excused := !slices.Contains(want, OtherAnswer); j.heldBack != excused {
			t.Errorf("%s: counted as held back: %v", what, j.heldBack)
		}
	}
	// The records of 7 and 8 are others, of a producer, and readers of committed records get what is in front.
	open := func(producer int64, lastStable int64) func(*PartitionReading) {
		return func(p *PartitionReading) {
			for i := 7; i <= 8; i++ {
				p.Uncommitted[i].Digest, p.Uncommitted[i].Producer = 70, producer
			}
			p.LastStable = lastStable
			p.Committed = slices.DeleteFunc(p.Committed, func(r Record) bool { return r.Offset >= lastStable })
		}
	}
	and := func(changes ...func(*PartitionReading)) func(*PartitionReading) {
		return func(p *PartitionReading) {
			for _, c := range changes {
				c(p)
			}
		}
	}
	f("open", true, open(9, 7))
	f("open, but nothing is another's", false, open(9, 7), OtherAnswer, Wrong, Lost)
	f("no transaction", true, open(-1, 7), OtherAnswer, Lost)
	f("ended", true, and(open(9, 7), func(p *PartitionReading) { p.Uncommitted[9].Producer, p.Uncommitted[9].Control = 9, 1 }), OtherAnswer, Lost)
	f("another's is ended", true, and(open(9, 7), func(p *PartitionReading) { p.Uncommitted[9].Producer, p.Uncommitted[9].Control = 8, 1 }))
	f("a marker that is another's", true, and(open(9, 7), func(p *PartitionReading) { p.Uncommitted[7].Control = 1 }), OtherAnswer, Lost)
	f("in front of it", true, open(9, 4), OtherAnswer, Lost)
	f("at its own aborted record", true, open(9, 5), OtherAnswer, Lost)
	f("where nothing is", true, and(open(9, 7), func(p *PartitionReading) { p.Uncommitted = without(p.Uncommitted, 7) }), OtherAnswer, Lost)
	f("what is in front is read", true, and(open(9, 7), func(p *PartitionReading) { p.Committed = without(p.Committed, 3) }), Lost)
}

// Without a fault there is nothing to object to, and the subjects have in them what faults need.
func TestSubjectsWithoutFault(t *testing.T) {
	resent := 0
	for _, s := range subjects(t) {
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range append(r.Objections, s.alarms...) {
			if o.Rule != Repeated { // the producers of old directories expire
				t.Errorf("%s: %v", s.Name, o)
			}
		}
		if !strings.Contains(s.Name, "torn") {
			for f := range s.findings {
				if strings.HasPrefix(f, string(check.Damage)) {
					t.Errorf("%s: %s", s.Name, f)
				}
			}
		}
		resent += len(s.resent)
	}
	if resent == 0 {
		t.Errorf("%d batches of idempotent producers, want some", resent)
	}
}

// What readers of committed records had not been shown yet, because a transaction was open, they may be shown
// when that is so no more: what was committed.
func TestJudgeAboveLastStable(t *testing.T) {
	truth := someReading().Partitions[touched]
	truth.LastStable = 4
	truth.Committed = truth.Committed[:4]
	for offset, want := range map[int64]bool{3: false, 4: true, 5: false, 9: true} {
		if got := truth.commits(byOffset(truth.Uncommitted)[offset]); got != want {
			t.Errorf("offset %d: %v, want %v", offset, got, want)
		}
	}
	truth.Uncommitted[6].Control = 1
	if !truth.commits(truth.Uncommitted[5]) {
		t.Error("offset 5 is committed at 6")
	}
}
