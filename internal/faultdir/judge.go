package faultdir

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Rule is what an objection says was broken.
type Rule string

// The rules.
const (
	Wrong       Rule = "wrong record"      // of another content, or at a place where none was
	Aborted     Rule = "aborted record"    // a reader of committed records got one that is not
	Repeated    Rule = "written twice"     // a batch that an idempotent producer sent again
	Reused      Rule = "offset reused"     // a new record has an offset that another had
	Lost        Rule = "record lost"       // outside what the fault touched
	Hangs       Rule = "hangs"             // a step took too long
	Refused     Rule = "start refused"     // for a fault that costs a partition at most
	Unnamed     Rule = "refusal unnamed"   // the error does not name the file
	Unseen      Rule = "not named"         // a reader notices, check does not
	OtherAnswer Rule = "other answer"      // of ListOffsets, OffsetForLeaderEpoch or OffsetFetch
	Unavailable Rule = "unavailable"       // a partition cannot be read or written
	Changed     Rule = "changed by itself" // another start gives something else
	Alarm       Rule = "alarm"             // check calls damage what this broker has written
	Fails       Rule = "fails"             // the broker stops, or cannot be stopped
)

// An Objection is a rule that was broken, and how.
type Objection struct {
	Rule Rule
	What string
}

func (o Objection) String() string { return string(o.Rule) + ": " + o.What }

// A judgement gathers objections.
type judgement struct {
	scope *Scope
	truth *Reading
	list  []Objection
	noted []string // what a reader notices

	leftAlone bool
	heldBack  bool                     // a transaction counts as open whose marker may be lost
	foreign   bool                     // a record of another partition was read
	repeated  map[topic.Partition]bool // the last batch of a producer was written twice
}

func newJudgement(s *Scope, truth *Reading) *judgement {
	return &judgement{scope: s, truth: truth, repeated: map[topic.Partition]bool{}}
}

// perRule bounds the objections by one rule.
const perRule = 5

func (j *judgement) object(r Rule, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if r != Alarm {
		j.note("%s", what)
	}
	n := 0
	for _, o := range j.list {
		if o.Rule == r {
			n++
		}
	}
	if n < perRule {
		j.list = append(j.list, Objection{r, what})
	}
}

// note keeps some of what a reader notices.
func (j *judgement) note(format string, args ...any) {
	if len(j.noted) < perRule {
		j.noted = append(j.noted, fmt.Sprintf(format, args...))
	}
}

// reading judges what readers get of a directory with a fault.
func (j *judgement) reading(got *Reading) {
	if got.ClusterID != j.truth.ClusterID {
		j.note("cluster id %s, was %s", got.ClusterID, j.truth.ClusterID)
	}
	for _, id := range j.truth.partitions() {
		want, have := j.truth.Partitions[id], got.Partitions[id]
		switch {
		case have == nil && j.scope.Refusal: // the metadata do not know it any more: see start
			j.note("%v: the broker knows no such partition", id)
			j.leftAlone = true
		case have == nil:
			j.object(Unavailable, "%v: the broker knows no such partition", id)
		case have.Err != want.Err && j.scope.Apart[id] && notServed(have.Err):
			j.note("%v: %s", id, have.Err)
			j.leftAlone = true
		case have.Err != want.Err:
			j.object(Unavailable, "%v: %s", id, have.Err)
		default:
			j.partition(id, want, have)
		}
	}
	for _, id := range got.partitions() {
		if j.truth.Partitions[id] == nil {
			j.object(Wrong, "%v: nobody made this partition", id)
		}
	}
	j.groups(got)
	for name, want := range j.truth.Configs {
		if have, ok := got.Configs[name]; ok && have != want {
			j.object(OtherAnswer, "topic %q: %s, was %s", name, have, want)
		}
	}
}

func (j *judgement) partition(id topic.Partition, want, have *PartitionReading) {
	lost := j.scope.Lost[id]
	for _, e := range have.Errors {
		if !j.scope.Touched[id] && len(want.Errors) == 0 && !(j.scope.Longer[id] && e.Offset >= want.End) && !(j.scope.Gaps[id] && !want.has(e.Offset)) {
			j.object(Unavailable, "%v: %v", id, e)
		}
	}
	j.bounds(id, want, have)
	j.records(id, want, have, lost)
	j.committed(id, want, have, lost)
	j.times(id, want, have, lost)
	j.epochs(id, want, have)
}

// notServed reports whether an error says that a partition is not served.
func notServed(err string) bool {
	return err == kerr.KafkaStorageError.Message || err == kerr.LeaderNotAvailable.Message
}

// epochs judges the ends of leader epochs. Where they are not known any more, an end behind the true
// one is no harm: a reader goes on.
func (j *judgement) epochs(id topic.Partition, want, have *PartitionReading) {
	for epoch, answer := range want.Epochs {
		got := have.Epochs[epoch]
		if got == answer {
			continue
		}
		j.note("%v: epoch %d: %v, was %v", id, epoch, got, answer)
		if j.scope.Touched[id] || j.scope.Starts[id] || j.scope.Longer[id] || j.scope.Refusal || j.scope.Epochs[id] && (answer.End < 0 || got.End >= answer.End || j.scope.OtherEpochs[id]) {
			continue
		}
		j.object(OtherAnswer, "%v: epoch %d: %v, was %v", id, epoch, got, answer)
	}
}

// bounds judges where a log begins and ends, and up to where all transactions have ended.
func (j *judgement) bounds(id topic.Partition, want, have *PartitionReading) {
	if have.Start != want.Start {
		j.note("%v: the log begins at %d, was %d", id, have.Start, want.Start)
		switch {
		case j.scope.Starts[id]:
		case have.Start < want.Start:
			j.object(Wrong, "%v: the log begins at %d, below its start %d", id, have.Start, want.Start)
		case !j.scope.Touched[id]:
			j.object(Lost, "%v: the log begins at %d, was %d", id, have.Start, want.Start)
		}
	}
	if have.End != want.End {
		j.note("%v: the log ends at %d, was %d", id, have.End, want.End)
		if have.End < j.proven(id, want) {
			j.object(Reused, "%v: the log ends at %d, was %d", id, have.End, want.End)
		} else if !j.scope.Touched[id] && !j.scope.Longer[id] {
			j.object(OtherAnswer, "%v: the log ends at %d, was %d", id, have.End, want.End)
		}
	}
	if have.LastStable != want.LastStable {
		j.note("%v: the last stable offset is %d, was %d", id, have.LastStable, want.LastStable)
		if j.pinned(id, want, have) {
			j.heldBack = true
		} else if have.LastStable < min(want.LastStable, have.End) || !j.scope.Touched[id] && !j.scope.Longer[id] {
			j.object(OtherAnswer, "%v: the last stable offset is %d, was %d", id, have.LastStable, want.LastStable)
		}
	}
}

// pinned reports whether the last stable offset is held back by a transaction whose marker may be lost
// together with the end of the log: it may still be open, as far as anybody knows. So may one whose records
// came with a whole file of another partition.
func (j *judgement) pinned(id topic.Partition, want, have *PartitionReading) bool {
	if have.LastStable >= want.LastStable {
		return false
	}
	if r, ok := byOffset(have.Uncommitted)[have.LastStable]; ok && j.scope.Foreign[id] && byOffset(want.Uncommitted)[r.Offset].Digest != r.Digest {
		return r.Producer >= 0 && r.Control < 0 && !have.ends(r)
	}
	if r, ok := byOffset(want.Uncommitted)[have.LastStable]; ok {
		return j.undecided(want, r, j.scope.Lost[id])
	}
	// Compaction has taken its first record: then it is not known whose it was.
	return slices.ContainsFunc(want.Uncommitted, func(m Record) bool {
		return m.Control >= 0 && m.Offset > have.LastStable && j.scope.Lost[id].has(m.Offset)
	})
}

// proven is where the log of a partition ends at least: where it ended, unless only what a fault has
// touched proved that.
func (j *judgement) proven(id topic.Partition, want *PartitionReading) int64 {
	if !j.scope.Touched[id] {
		return want.End
	}
	return min(want.End, j.scope.Proven[id])
}

// hidden reports whether an offset is below a log start that nothing contradicts.
func (j *judgement) hidden(id topic.Partition, have *PartitionReading, offset int64) bool {
	return j.scope.Starts[id] && offset < have.Start
}

func (j *judgement) records(id topic.Partition, want, have *PartitionReading, lost stretches) {
	found := byOffset(have.Uncommitted)
	for _, r := range want.Uncommitted {
		if _, ok := found[r.Offset]; !ok {
			j.note("%v: no record at %d", id, r.Offset)
			if !lost.has(r.Offset) && !j.hidden(id, have, r.Offset) {
				j.object(Lost, "%v: offset %d; %s", id, r.Offset, firstOf(have.Errors))
			}
		}
	}
	truth := byOffset(want.Uncommitted)
	last := int64(-1)
	for _, r := range have.Uncommitted {
		if r.Offset <= last {
			j.object(Wrong, "%v: offset %d comes after %d", id, r.Offset, last)
		}
		last = r.Offset
		if w, ok := truth[r.Offset]; ok && w.Digest == r.Digest || r.Offset < want.Start && j.scope.Starts[id] {
			continue
		}
		if _, ok := truth[r.Offset]; !ok && j.scope.Returned[id] {
			j.note("%v: offset %d is there again", id, r.Offset)
			continue
		}
		if j.scope.Foreign[id] {
			j.note("%v: offset %d is another partition's", id, r.Offset)
			j.foreign = true
			continue
		}
		j.object(Wrong, "%v: offset %d (timestamp %d) is not what was written", id, r.Offset, r.Timestamp)
	}
}

func (j *judgement) committed(id topic.Partition, want, have *PartitionReading, lost stretches) {
	got, truth, all := byOffset(have.Committed), byOffset(want.Committed), byOffset(want.Uncommitted)
	for _, r := range have.Committed {
		if w, ok := truth[r.Offset]; ok && w.Digest == r.Digest || r.Offset < want.Start && j.scope.Starts[id] {
			continue
		}
		if w, ok := all[r.Offset]; ok && w.Digest == r.Digest && !want.commits(w) {
			j.object(Aborted, "%v: offset %d", id, r.Offset)
		} // else it is wrong, which records says
	}
	for _, r := range want.Committed {
		if _, ok := got[r.Offset]; ok {
			continue
		}
		j.note("%v: no record at %d for readers of committed records", id, r.Offset)
		held := r.Offset >= have.LastStable && j.pinned(id, want, have)
		if !lost.has(r.Offset) && !j.hidden(id, have, r.Offset) && !j.undecided(want, r, lost) && !held {
			j.object(Lost, "%v: offset %d for readers of committed records; %s", id, r.Offset, firstOf(have.Errors))
		}
	}
}

// commits reports whether a record was committed above the last stable offset: it is read when the transactions
// that held that back do so no more.
func (p *PartitionReading) commits(r Record) bool {
	if r.Offset < p.LastStable || r.Producer < 0 {
		return r.Offset >= p.LastStable
	}
	for _, m := range p.Uncommitted {
		if m.Offset > r.Offset && m.Control >= 0 && m.Producer == r.Producer {
			return m.Control == int16(record.ControlCommit)
		}
	}
	return false
}

// ends reports whether a marker behind a record ends its transaction.
func (p *PartitionReading) ends(r Record) bool {
	return slices.ContainsFunc(p.Uncommitted, func(m Record) bool {
		return m.Offset > r.Offset && m.Control >= 0 && m.Producer == r.Producer
	})
}

// undecided reports whether the marker that ended a record's transaction may be lost.
func (j *judgement) undecided(want *PartitionReading, r Record, lost stretches) bool {
	if r.Producer < 0 {
		return false
	}
	for _, m := range want.Uncommitted {
		if m.Offset > r.Offset && m.Control >= 0 && m.Producer == r.Producer {
			return lost.has(m.Offset)
		}
	}
	return false
}

// times judges lookups by time: an answer that is not lost is still the answer.
func (j *judgement) times(id topic.Partition, want, have *PartitionReading, lost stretches) {
	for query, answer := range want.Times {
		got := have.Times[query]
		if got == answer {
			continue
		}
		j.note("%v: time %d is at %v, was %v", id, query, got, answer)
		if lost.has(answer.Offset) || j.scope.Foreign[id] || j.scope.Starts[id] && (answer.Offset < have.Start || got.Offset < want.Start) {
			continue
		}
		j.object(OtherAnswer, "%v: time %d is at %v, was %v", id, query, got, answer)
	}
}

func (j *judgement) groups(got *Reading) {
	for name, want := range j.truth.Groups {
		have := got.Groups[name]
		for id, offset := range want {
			if have[id] == offset {
				continue
			}
			j.note("group %s: %v: committed %s, was %s", name, id, have[id], offset)
			if at := coordinatorOf(name, j.truth); !j.scope.Touched[at] && !j.scope.Apart[at] {
				j.object(OtherAnswer, "group %s: %v: committed %s, was %s", name, id, have[id], offset)
			}
		}
	}
	for name := range got.Groups {
		if _, ok := j.truth.Groups[name]; !ok {
			j.object(OtherAnswer, "nobody made group %q", name)
		}
	}
}

// coordinatorOf returns the partition that has a group's offsets.
func coordinatorOf(group string, r *Reading) topic.Partition {
	count := int32(0)
	for id := range r.Partitions {
		if id.Topic == topic.ConsumerOffsets {
			count++
		}
	}
	hash := int32(0)
	for _, c := range group { // as Java's String.hashCode; groups of tests are ASCII
		hash = 31*hash + c
	}
	return topic.Partition{Topic: topic.ConsumerOffsets, Partition: max(hash, -hash) % max(count, 1)}
}

// has reports whether a partition has a record at an offset.
func (p *PartitionReading) has(offset int64) bool {
	_, ok := byOffset(p.Uncommitted)[offset]
	return ok
}

func byOffset(list []Record) map[int64]Record {
	m := make(map[int64]Record, len(list))
	for _, r := range list {
		m[r.Offset] = r
	}
	return m
}

func firstOf(list []FetchError) string {
	if len(list) == 0 {
		return "no error"
	}
	return list[0].String()
}

// rules lists which rules were broken.
func (j *judgement) rules() (list []Rule) {
	for _, o := range j.list {
		if !slices.Contains(list, o.Rule) {
			list = append(list, o.Rule)
		}
	}
	return list
}
