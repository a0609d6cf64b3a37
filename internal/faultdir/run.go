package faultdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Subject is the log directories of one broker, that faults are made in.
type Subject struct {
	Name string
	Dirs []string // log.dirs
	Set  []string // further settings
	Tree *Tree
	// Damaged says that the directory is damaged already: a fault is the second one.
	Damaged bool
	// Older gives a file as it was some time before; ok is false where it was the same.
	Older func(name string) ([]byte, bool)

	once        sync.Once
	notPrepared error

	truth    *Reading
	findings map[string]bool // what check says without a fault
	resent   map[topic.Partition]record.Batch
	alarms   []Objection // without a fault
	chooser  *chooser
}

// limit bounds a step of a run: a start, a reading, a stop.
const limit = 20 * time.Second

// A Result is what came of one fault.
type Result struct {
	Fault      Fault
	Scope      *Scope
	Refusal    error // the start was refused, as it may be
	Objections []Objection
	LeftAlone  bool     // a partition is not served, as it may be
	HeldBack   bool     // a transaction whose marker may be lost counts as open
	Foreign    bool     // records of another partition were read: a whole .log file was exchanged
	Named      bool     // check found something
	Noted      []string // what a reader noticed
	Warnings   []string
	Findings   []string // of check, new
}

// Prepare reads the subject without a fault, which must go without an objection. What is done once is not
// done again.
func (s *Subject) Prepare() error {
	s.once.Do(func() { s.notPrepared = s.prepare() })
	return s.notPrepared
}

func (s *Subject) prepare() error {
	fs, err := s.Tree.Mem()
	if err != nil {
		return err
	}
	findings, err := checkTree(s.Tree, s.Dirs)
	if err != nil {
		return err
	}
	s.findings = map[string]bool{}
	for _, f := range findings {
		s.findings[f.String()] = true
	}
	b, err := start(fs, s.Dirs, s.Set, limit)
	if err != nil {
		return err
	}
	if s.truth, err = b.read(nil); err == nil {
		err = s.prepareResending(b)
	}
	s.chooser = newChooser(s.Tree, s.Older)
	return errors.Join(err, b.stop(limit))
}

// prepareResending finds the batches that are known to be there already when they are sent again, also
// after other starts: the producers of old directories have expired then.
func (s *Subject) prepareResending(b *server) error {
	s.resent = map[topic.Partition]record.Batch{}
	for id, p := range s.truth.Partitions {
		if p.Sequenced != nil && !topic.IsInternal(id.Topic) {
			s.resent[id] = p.Sequenced
		}
	}
	offsets, err := b.produce(s.resent)
	if err != nil {
		return err
	}
	for id, at := range offsets {
		if at.offset != s.resent[id].BaseOffset() {
			delete(s.resent, id)
		}
	}
	j := newJudgement(&Scope{}, s.truth)
	if err := s.start(j, &Result{Scope: j.scope}, s.Tree); err != nil {
		return err
	}
	s.alarms = j.list
	maps.DeleteFunc(s.resent, func(id topic.Partition, _ record.Batch) bool { return j.repeated[id] })
	return nil
}

// resend sends batches again: none may be written twice, unless it is lost, and what is acknowledged can
// be read.
func (s *Subject) resend(j *judgement, b *server, before *Reading) error {
	offsets, err := b.produce(s.resent)
	for id, got := range offsets {
		batch := s.resent[id]
		if got.offset >= 0 && got.offset != batch.BaseOffset() && !j.scope.Lost[id].has(batch.LastOffset()) {
			j.repeated[id] = true
			j.object(Repeated, "%v: the batch of offset %d now at %d too", id, batch.BaseOffset(), got.offset)
		}
		want, have := s.truth.Partitions[id], before.Partitions[id]
		if last := batch.LastOffset(); got.offset == batch.BaseOffset() && want != nil && have != nil && last >= have.Start && want.has(last) && !have.has(last) {
			j.object(Lost, "%v: the batch of offset %d is acknowledged again, and cannot be read", id, batch.BaseOffset())
		}
	}
	return err
}

func checkTree(t *Tree, dirs []string) ([]check.Finding, error) {
	fs, err := t.Mem()
	if err != nil {
		return nil, err
	}
	report, err := check.Dirs(context.Background(), dirs, check.Options{FS: fs})
	return report.Findings, err
}

func (s *server) read(truth *Reading) (*Reading, error) {
	c, err := s.connect(limit)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return read(c, truth)
}

// Run makes the faults in a copy of the subject and judges what becomes of it.
func (s *Subject) Run(faults ...Fault) (*Result, error) {
	tree := s.Tree
	r := &Result{Scope: &Scope{}}
	for _, f := range faults {
		next, err := f.Apply(tree, s.Older)
		if err != nil {
			return nil, err
		}
		scope := scopeOf(f, tree, next)
		if r.Fault.Kind == "" {
			r.Fault, r.Scope = f, scope
		} else {
			r.Scope.merge(scope)
		}
		tree = next
	}
	j := newJudgement(r.Scope, s.truth)
	findings, err := checkTree(tree, s.Dirs)
	if err != nil {
		findings = append(findings, check.Finding{File: tree.Names()[0], Message: err.Error()})
	}
	for _, f := range findings {
		if !s.findings[f.String()] {
			r.Findings = append(r.Findings, f.String())
		}
	}
	r.Named = len(r.Findings) > 0
	err = s.start(j, r, tree)
	r.Noted, r.LeftAlone, r.HeldBack, r.Foreign = j.noted, j.leftAlone, j.heldBack, j.foreign
	if r.Refusal != nil {
		r.Noted = append(r.Noted, "start refused: "+r.Refusal.Error())
	}
	if len(r.Noted) > 0 && !r.Named && !r.Scope.Silent {
		j.object(Unseen, "%s", r.Noted[0])
	}
	r.Objections = j.list
	if s.Damaged || len(faults) > 1 {
		r.Objections = slices.DeleteFunc(r.Objections, func(o Objection) bool { return !o.Rule.always() })
	}
	return r, err
}

// merge adds what another fault may cost.
func (s *Scope) merge(o *Scope) {
	s.Refusal = s.Refusal || o.Refusal
	s.Proven = o.Proven
	for p := range o.Touched {
		s.Touched[p] = true
		s.Lost[p] = append(s.Lost[p], o.Lost[p]...)
	}
	for p := range o.Epochs {
		s.Epochs[p], s.OtherEpochs[p] = true, s.OtherEpochs[p] || o.OtherEpochs[p]
	}
	for p, apart := range o.Apart {
		s.Apart[p] = s.Apart[p] || apart
	}
	for p := range o.Returned {
		s.Returned[p] = true
	}
	for p := range o.Foreign {
		s.Foreign[p] = true
	}
	for p := range o.Gaps {
		s.Gaps[p] = true
	}
	for p, longer := range o.Longer {
		s.Longer[p] = s.Longer[p] || longer
	}
	for p := range o.Starts {
		s.Starts[p] = true
	}
}

// start starts a broker on the tree, reads, appends, and starts it again after a clean stop and
// after a kill.
func (s *Subject) start(j *judgement, r *Result, tree *Tree) error {
	fs, err := tree.Mem()
	if err != nil {
		return err
	}
	b, err := start(fs, s.Dirs, s.Set, limit)
	if err != nil {
		s.refused(j, r, err)
		return nil
	}
	defer func() { r.Warnings = b.log.all() }()
	first, err := b.read(s.truth)
	if err != nil {
		j.object(Fails, "reading: %v", err)
		return ignore(b.stop(limit))
	}
	j.reading(first)
	appended, err := b.append(first)
	if err != nil {
		j.object(Fails, "appending: %v", err)
		return ignore(b.stop(limit))
	}
	j.appended(first, appended)
	killed, err := b.tree()
	if err != nil {
		return err
	}
	if err := b.stop(limit); err != nil {
		j.object(Fails, "stop: %v", err)
		return nil
	}
	clean, err := b.tree()
	if err != nil {
		return err
	}
	if err := s.alarmed(j, r, clean); err != nil {
		return err
	}
	for id := range j.truth.Partitions {
		if first.Partitions[id] == nil && !samePartition(id, tree, clean) {
			j.object(Lost, "%v: the partition is not served, and its files are not what they were", id)
		}
	}
	s.again(j, "clean stop", clean, first, appended)
	s.again(j, "kill", killed, first, appended)
	return nil
}

// samePartition reports whether the files of a partition are the same in two trees.
func samePartition(p topic.Partition, a, b *Tree) bool {
	files := func(t *Tree) map[string]string {
		list := map[string]string{}
		for name, file := range t.Files {
			if path.Base(path.Dir(name)) == p.String() {
				list[name] = string(file.Data)
			}
		}
		return list
	}
	return maps.Equal(files(a), files(b))
}

// alarmed objects to damage that check finds where no fault was made: in what the broker wrote.
func (s *Subject) alarmed(j *judgement, r *Result, clean *Tree) error {
	findings, err := checkTree(clean, s.Dirs)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Severity == check.Damage && !s.findings[f.String()] && !r.Fault.near(f.File) && !r.Scope.speaksOf(f) {
			if o := (Objection{Alarm, f.String()}); !slices.Contains(s.alarms, o) {
				j.object(Alarm, "%v", f)
			}
		}
	}
	return nil
}

// speaksOf reports whether a finding is about a partition that is touched, or longer than it was.
func (s *Scope) speaksOf(f check.Finding) bool {
	for _, list := range []map[topic.Partition]bool{s.Touched, s.Longer, s.Apart} {
		for p, is := range list {
			if is && (strings.Contains(f.Message, p.String()) || strings.Contains(f.File, p.String())) {
				return true
			}
		}
	}
	return false
}

// near reports whether a file is one that the fault is in, or of the same partition.
func (f Fault) near(file string) bool {
	for _, touched := range []string{f.Path, f.Other} {
		_, partition := partitionOf(touched)
		if touched != "" && (file == touched || path.Dir(file) == touched || partition && (path.Dir(file) == path.Dir(touched) || file == path.Dir(touched))) {
			return true
		}
	}
	return false
}

func ignore(error) error { return nil }

func (s *Subject) refused(j *judgement, r *Result, err error) {
	switch {
	case errors.Is(err, errHangs):
		j.object(Hangs, "%v", err)
	case !r.Scope.Refusal:
		j.object(Refused, "%v", err)
	case !names(err, r.Fault.Path):
		r.Refusal = err
		j.object(Unnamed, "%v", err)
	default:
		r.Refusal = err
	}
}

// names reports whether an error names a file. Where something of the metadata log is wrong it is
// enough to say what does not go with the metadata.
func names(err error, file string) bool {
	if kindOf(file) == MetaProperties && strings.Contains(err.Error(), "node.id") {
		return true // what it says is not what the others say
	}
	return strings.Contains(err.Error(), path.Base(file)) || strings.Contains(file, metadataDir) && strings.Contains(err.Error(), "metadata")
}

// again starts a broker once more and compares what is read with the first reading and what was
// appended since.
func (s *Subject) again(j *judgement, what string, tree *Tree, first *Reading, appended map[topic.Partition]Record) {
	fs, err := tree.Mem()
	if err != nil {
		j.object(Fails, "%v", err)
		return
	}
	b, err := start(fs, s.Dirs, s.Set, limit)
	if err != nil {
		j.object(Changed, "start after %s: %v", what, err)
		return
	}
	got, err := b.read(s.truth)
	if err == nil {
		j.again(what, first, got, appended)
		err = s.resend(j, b, got)
	}
	if err != nil {
		j.object(Changed, "after %s: %v", what, err)
	}
	if err := b.stop(limit); err != nil {
		j.object(Fails, "stop after %s: %v", what, err)
	}
}

// newRecord is what is appended to each partition.
var newRecord = record.Record{Timestamp: 1_760_000_000_000, Key: []byte("new"), Value: []byte("written behind a fault")}

// append appends a record to each partition that clients may write to, and returns them as
// they are now. Where it is refused the offset is -1 - error code.
func (s *server) append(r *Reading) (map[topic.Partition]Record, error) {
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(newRecord); err != nil {
		return nil, err
	}
	batch := b.Build()
	batches := map[topic.Partition]record.Batch{}
	for id, p := range r.Partitions {
		if !topic.IsInternal(id.Topic) && p.Err == "" {
			batches[id] = batch
		}
	}
	offsets, err := s.produce(batches)
	appended := map[topic.Partition]Record{}
	for id, at := range offsets {
		r := newRecord
		r.Offset = at.offset
		if at.appendTime >= 0 {
			r.Timestamp, r.TimestampType = at.appendTime, record.LogAppendTime
		}
		appended[id] = Record{r.Offset, r.Timestamp, digest(r), -1, -1}
	}
	return appended, err
}

// A place is where a batch was written: -1 - error code for nowhere.
type place struct{ offset, appendTime int64 }

// produce sends a batch to each of some partitions.
func (s *server) produce(batches map[topic.Partition]record.Batch) (map[topic.Partition]place, error) {
	places := map[topic.Partition]place{}
	if len(batches) == 0 {
		return places, nil
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	for _, id := range slices.SortedFunc(maps.Keys(batches), topic.Partition.Compare) {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != id.Topic {
			req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: id.Topic})
		}
		last := &req.Topics[len(req.Topics)-1]
		batch := slices.Clone(batches[id])
		batch.SetBaseOffset(0)
		last.Partitions = append(last.Partitions, kmsg.ProduceRequestTopicPartition{Partition: id.Partition, Records: batch})
	}
	c, err := s.connect(limit)
	if err != nil {
		return nil, err
	}
	defer c.close()
	resp, err := ask[*kmsg.ProduceResponse](c, 9, req)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			at := place{p.BaseOffset, p.LogAppendTime}
			if p.ErrorCode != 0 {
				at.offset = -1 - int64(p.ErrorCode)
			}
			places[topic.Partition{Topic: t.Topic, Partition: p.Partition}] = at
		}
	}
	return places, nil
}

// appended judges where new records went.
func (j *judgement) appended(first *Reading, appended map[topic.Partition]Record) {
	for id, r := range appended {
		offset := r.Offset
		want, have := j.truth.Partitions[id], first.Partitions[id]
		switch {
		case offset < 0:
			j.object(Unavailable, "%v: append: %s", id, codeName(int16(-1-offset)))
		case want != nil && offset < j.proven(id, want):
			j.object(Reused, "%v: a new record has offset %d, the log ended at %d", id, offset, want.End)
		case offset != have.End:
			j.object(Wrong, "%v: a new record has offset %d, the log ended at %d", id, offset, have.End)
		}
	}
}

// again judges a later reading: all of the first, and what was appended.
func (j *judgement) again(what string, first, got *Reading, appended map[topic.Partition]Record) {
	for _, id := range first.partitions() {
		want, have := first.Partitions[id], got.Partitions[id]
		if j.scope.Foreign[id] {
			continue // where there are records of two partitions nothing goes together
		}
		if have != nil && have.Err == "" && notServed(want.Err) && j.scope.Apart[id] {
			want = j.truth.Partitions[id] // it took the broker a moment to tell itself where its partitions are
		}
		if have == nil || have.Err != want.Err {
			j.object(Changed, "%v after %s: %s, was %s", id, what, have.state(), want.state())
			continue
		}
		end, stable := want.End, want.LastStable
		uncommitted, committed := want.Uncommitted, want.Committed
		loose := j.scope.Touched[id] || j.scope.Longer[id] // what is lost may have ended a transaction
		goesOn := loose && have.LastStable > stable
		if added, ok := appended[id]; ok && added.Offset >= 0 {
			uncommitted = append(slices.Clone(uncommitted), added)
			if stable == end || goesOn && added.Offset < have.LastStable {
				stable, committed = added.Offset+1, append(slices.Clone(committed), added)
			}
			end = added.Offset + 1
		}
		if goesOn {
			stable = max(stable, have.LastStable)
		}
		longer := j.scope.Longer[id] && have.End > end && have.LastStable >= stable
		if have.Start != want.Start || !longer && (have.End != end || have.LastStable != stable) {
			j.object(Changed, "%v after %s: start %d, last stable %d, end %d, was %d, %d, %d", id, what,
				have.Start, have.LastStable, have.End, want.Start, stable, end)
		}
		if !slices.Equal(have.Uncommitted, uncommitted) {
			j.object(Changed, "%v after %s: %s", id, what, difference(have.Uncommitted, uncommitted))
		}
		if goesOn {
			committed = j.decided(id, want, have, committed)
		}
		if !slices.Equal(have.Committed, committed) {
			j.object(Changed, "%v after %s, committed: %s", id, what, difference(have.Committed, committed))
		}
	}
}

// decided returns what readers of committed records have to get when the last stable offset has gone on
// since the first reading: what they got, and in between what the truth says was committed.
func (j *judgement) decided(id topic.Partition, want, have *PartitionReading, committed []Record) []Record {
	truth, found := j.truth.Partitions[id], byOffset(have.Uncommitted)
	list := slices.DeleteFunc(slices.Clone(committed), func(r Record) bool { return r.Offset >= have.LastStable })
	if truth == nil {
		return list
	}
	got := byOffset(have.Committed)
	for _, r := range truth.Committed {
		given := got[r.Offset] == r // or readers get an error: its marker is lost
		if found[r.Offset] == r && (given || !j.undecided(truth, r, j.scope.Lost[id])) && r.Offset >= want.LastStable && r.Offset < have.LastStable {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Offset, b.Offset) })
	return slices.Compact(list)
}

// state is what becomes of those who read a partition.
func (p *PartitionReading) state() string {
	switch {
	case p == nil:
		return "unknown"
	case p.Err == "":
		return "served"
	}
	return p.Err
}

// difference tells the first one between two lists of records.
func difference(got, want []Record) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("offset %d is gone", want[i].Offset)
		case i >= len(want):
			return fmt.Sprintf("offset %d is new", got[i].Offset)
		case got[i] != want[i]:
			return fmt.Sprintf("offset %d is %+v, was %+v", got[i].Offset, got[i], want[i])
		}
	}
	return ""
}
