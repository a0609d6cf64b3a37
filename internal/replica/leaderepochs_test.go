package replica

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// kafkaEpochs are Kafka's answers: by step, by topic.
func kafkaEpochs(t *testing.T) map[string]map[string]string {
	t.Helper()
	f, err := os.Open("testdata/leaderepochs-kafka-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := map[string]map[string]string{}
	var step map[string]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "## "); ok {
			step = map[string]string{}
			steps[name] = step
		} else if names, answers, ok := strings.Cut(lines.Text(), ": "); ok && step != nil {
			for name := range strings.FieldsSeq(names) {
				step[name] = answers
			}
		}
	}
	return steps
}

var epochTopics = []string{
	"empty", "one", "mid", "several", "deln", "delhalf", "delidle", "missing", "emptied", "zeroed", "cut", "older", "whole3", "whole4", "whole5",
}

// unharmed are the topics that had the same done to them as those whose epoch file is harmed later.
var unharmed = map[string]string{"missing": "whole4", "emptied": "whole3", "zeroed": "whole3", "cut": "whole5", "older": "whole5"}

// An epochBench is a bench that starts and stops.
type epochBench struct {
	*bench // since start
	t      *testing.T
	mem    *vfs.Mem
	epoch  int32
	want   map[string]map[string]string
}

// start begins a leader epoch.
func (b *epochBench) start(epoch int32) {
	b.t.Helper()
	b.bench = openBench(b.t, b.mem, nil)
	b.epoch = epoch
	var records []metadata.Record
	for i, name := range epochTopics {
		r, p := metadata.NewTopicRecord(), metadata.NewPartitionRecord()
		r.Name, r.TopicID = name, topicID(byte(i+1))
		p.TopicID, p.PartitionID, p.Leader, p.Replicas, p.ISR = r.TopicID, 0, testNode, []int32{testNode}, []int32{testNode}
		p.LeaderEpoch, p.PartitionEpoch, p.Directories = epoch, epoch, make([]uuid.UUID, 1)
		records = append(records, r, p)
	}
	b.apply(records...)
}

func (b *epochBench) stop() {
	b.t.Helper()
	if err := b.logs.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// kill leaves the files as they are, which is what the end of a process does.
func (b *epochBench) kill() {
	b.t.Helper()
	for _, name := range epochTopics {
		if err := b.partition(name).log.Load().Flush(); err != nil {
			b.t.Fatal(err)
		}
	}
	mem := b.mem.CrashClone(rand.New(rand.NewPCG(1, 1)))
	b.stop()
	b.mem = mem
}

func (b *epochBench) partition(name string) *Partition {
	b.t.Helper()
	p, err := b.Partition(topic.Partition{Topic: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *epochBench) write(n int, names ...string) {
	b.t.Helper()
	for _, name := range names {
		for i := range int64(n) {
			set := record.NewBuilder(record.BuilderOptions{})
			if err := set.Append(record.Record{Timestamp: 1700000000000 + i, Value: []byte("value")}); err != nil {
				b.t.Fatal(err)
			}
			if _, err := b.partition(name).Append(set.Build(), AppendOptions{LeaderEpoch: NoEpoch}); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func (b *epochBench) delete(name string, offset int64) {
	b.t.Helper()
	if _, err := b.partition(name).DeleteRecords(b.t.Context(), offset, time.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// file replaces a topic's leader-epoch-checkpoint.
func (b *epochBench) file(name, text string) {
	b.t.Helper()
	if err := vfs.WriteFileAtomic(b.mem, "data/"+name+"-0/leader-epoch-checkpoint", []byte(text)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *epochBench) removeFile(name string) {
	b.t.Helper()
	if err := b.mem.Remove("data/" + name + "-0/leader-epoch-checkpoint"); err != nil {
		b.t.Fatal(err)
	}
}

// compare asks everything, of harmed topics what Kafka says of those that are not.
func (b *epochBench) compare(step string, harmed bool) {
	b.t.Helper()
	for _, name := range epochTopics {
		as := name
		if twin, ok := unharmed[name]; ok && harmed {
			as = twin
		}
		if got, want := b.answers(name), b.want[step][as]; got != want {
			b.t.Errorf("%s: %s:\n got %s\nwant %s", step, name, got, want)
		}
	}
}

func (b *epochBench) answers(name string) string {
	p := b.partition(name)
	o := p.log.Load().Offsets()
	list := []string{fmt.Sprintf("epoch=%d start=%d end=%d", b.epoch, o.LogStart, o.End)}
	for _, at := range []int64{-1, -2, -3, -4, -5, -6, 0, 1700000000001, 1900000000000} {
		found, err := p.Lookup(Lookup{Timestamp: at, LeaderEpoch: NoEpoch})
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("L%d=%d@%d", at, found.Offset, found.LeaderEpoch))
	}
	for epoch := int32(-1); epoch <= b.epoch+1; epoch++ {
		e, end, err := p.EndOffset(NoEpoch, epoch)
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("E%d=%d:%d", epoch, e, end))
	}
	for epoch := int32(-1); epoch <= b.epoch+1; epoch++ {
		var answers []string
		for offset := max(0, o.LogStart-1); offset <= o.End+1; offset++ {
			answers = append(answers, b.fetch(name, offset, epoch))
		}
		list = append(list, fmt.Sprintf("F%d=%s", epoch, strings.Join(answers, ",")))
	}
	return strings.Join(list, " ")
}

func (b *epochBench) fetch(name string, offset int64, lastEpoch int32) string {
	parts := []*FetchPartition{{Name: []byte(name), Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: lastEpoch, MaxBytes: 1000}}
	if err := b.Fetch(b.t.Context(), &FetchRequest{MaxBytes: 1000}, parts); err != nil {
		b.t.Fatal(err)
	}
	defer Release(parts)
	switch r := &parts[0].Result; {
	case errors.Is(r.Err, commitlog.ErrOffsetOutOfRange):
		return "out"
	case r.Err != nil:
		return r.Err.Error()
	case r.Diverging:
		return fmt.Sprintf("div%d:%d", r.DivergingEpoch, r.DivergingEnd)
	}
	return "ok"
}

// Leader epochs in which nothing was written, several of them in a row, of empty logs, behind
// deleted records and after a kill. Where the epoch file is harmed while the broker is down, the
// answers are as without that.
func TestLeaderEpochsAreThoseOfKafka(t *testing.T) {
	b := &epochBench{t: t, mem: vfs.NewMem(), want: kafkaEpochs(t)}
	b.start(0)
	b.compare("created", false)
	b.write(3, "one", "mid", "deln", "delhalf", "delidle", "missing", "emptied", "zeroed", "cut", "older", "whole3", "whole4", "whole5")
	b.compare("written", false)
	b.stop()
	b.start(2)
	b.compare("restarted", false)
	b.write(2, "mid", "several", "cut", "older", "whole5")
	b.compare("written again", false)
	b.stop()
	b.start(4)
	b.compare("restarted again", false)
	b.kill()
	b.start(6)
	b.compare("killed", false)
	b.delete("deln", 3)
	b.delete("delhalf", 2)
	b.delete("delidle", 3)
	b.delete("mid", 3)
	b.write(1, "delidle", "mid", "missing", "whole4")
	b.compare("deleted", false)
	b.stop()

	b.removeFile("missing")
	b.file("emptied", "")
	b.file("zeroed", "0\n0\n")
	b.file("cut", "0\n2\n0 0\n2")
	b.file("older", "0\n1\n0 0\n")
	b.start(8)
	b.compare("damaged", true)
	b.write(1, "missing", "emptied", "zeroed", "cut", "older", "whole3", "whole4", "whole5")
	b.compare("damaged and written", true)
	b.kill()
	b.removeFile("missing")
	b.file("cut", "0\n1\n0 0\n")
	b.start(10)
	b.compare("damaged and killed", true)
	b.stop()
	b.start(12)
	b.compare("restarted at last", true)
	b.stop()
}
