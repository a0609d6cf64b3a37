package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// How many partitions may be put aside, or be unknown, at one start: a fifth of them, or a handful.
const (
	shareDivisor = 5
	shareMin     = 5
)

// UnknownTopics returns the ids in partition.metadata files that no topic of the image has.
func UnknownTopics(img *metadata.Image, dirs []logdir.FoundDir) map[uuid.UUID]bool {
	unknown := make(map[uuid.UUID]bool)
	for _, d := range dirs {
		for _, at := range d.Partitions {
			if !at.TopicID.IsZero() && img.TopicByID(at.TopicID) == nil {
				unknown[at.TopicID] = true
			}
		}
	}
	return unknown
}

// partitions is what the fates of partitions are made from.
type partitions struct {
	node     int32
	image    *metadata.Image
	removed  map[uuid.UUID]bool
	putAside bool // instead of leaving alone

	paths  map[topic.Partition]int // how many directories have the name
	claims map[claim]claimants     // which directories have the id
}

// claimants are how many directories there are, and the first.
type claimants struct {
	count int
	first string
}

type claim struct {
	id        uuid.UUID
	partition int32
}

func newPartitions(e *Evidence, putAside bool) *partitions {
	p := &partitions{
		node: e.Logs.NodeID, image: e.Image, removed: e.Removed, putAside: putAside,
		paths: make(map[topic.Partition]int), claims: make(map[claim]claimants),
	}
	for _, d := range e.Logs.Dirs {
		for _, at := range d.Partitions {
			p.paths[at.Partition]++
			c := claim{at.TopicID, at.Partition.Partition}
			if p.claims[c].count == 0 {
				p.claims[c] = claimants{1, at.Path}
				continue
			}
			p.claims[c] = claimants{p.claims[c].count + 1, p.claims[c].first}
		}
	}
	return p
}

// fate decides about one partition.
func (p *partitions) fate(at logdir.FoundPartition) logdir.Decision {
	d := p.known(at)
	if d.Fate == logdir.LeaveAlone && p.putAside {
		d.Fate = logdir.PutAside
	}
	return d
}

// known decides about a partition by what the metadata knows.
func (p *partitions) known(at logdir.FoundPartition) logdir.Decision {
	t := p.image.Topic(at.Partition.Topic)
	missing, damaged := errors.Is(at.IDErr, fs.ErrNotExist), errors.Is(at.IDErr, checkpoint.ErrCorrupt)
	switch {
	case at.IDErr != nil && !missing && !damaged:
		return logdir.Decision{Fate: logdir.Keep} // loading meets the same error of the disk
	case p.removed[at.TopicID]:
		return Deleted(at)
	case t == nil:
		return p.nameless(at)
	case int(at.Partition.Partition) >= len(t.Partitions):
		return decide(logdir.LeaveAlone, "topic %s has only %d partitions", t.Name, len(t.Partitions))
	case !slices.Contains(t.Partitions[at.Partition.Partition].Replicas, p.node):
		if at.TopicID == t.ID || missing {
			return decide(logdir.PutAside, "its replicas are on nodes %s, not on %d", ids(t.Partitions[at.Partition.Partition].Replicas), p.node)
		}
		return decide(logdir.LeaveAlone, "its topic id is not known for certain, and its replicas are not here")
	case at.TopicID == t.ID, missing:
		return logdir.Decision{Fate: logdir.Keep}
	}
	return p.otherID(at, t, damaged)
}

// Deleted is the fate of a partition whose topic was removed.
func Deleted(at logdir.FoundPartition) logdir.Decision {
	return decide(logdir.PutAside, "its topic, id %s, was deleted", at.TopicID)
}

// nameless decides about a partition of whose name there is no topic.
func (p *partitions) nameless(at logdir.FoundPartition) logdir.Decision {
	if other := p.image.TopicByID(at.TopicID); other != nil {
		return decide(logdir.PutAside, "its id %s is that of topic %s", at.TopicID, other.Name)
	}
	return decide(logdir.LeaveAlone, "the metadata knows neither topic %s nor the id %s", at.Partition.Topic, at.TopicID)
}

// otherID decides about a partition of a topic that is here, whose file has another id.
func (p *partitions) otherID(at logdir.FoundPartition, t *metadata.Topic, damaged bool) logdir.Decision {
	other := p.image.TopicByID(at.TopicID)
	others := p.claims[claim{t.ID, at.Partition.Partition}]
	alone := p.paths[at.Partition] <= 1 && (others.count == 0 || others.count == 1 && others.first == at.Path) // it had the id at the last stop
	heal := func(reason string) logdir.Decision {
		return logdir.Decision{Fate: logdir.Heal, TopicID: t.ID, Reason: reason}
	}
	switch {
	case !alone:
		return decide(logdir.LeaveAlone, "its id is %s, the topic's %s, and another directory claims to be the partition", at.TopicID, t.ID)
	case damaged:
		return heal("the file makes no sense, and no other directory is the partition's")
	case nearlyEqual(at.TopicID, t.ID):
		return heal("a few characters differ, and no other directory is the partition's")
	case other != nil:
		return heal("the id is that of topic " + other.Name + ", and no other directory is the partition's")
	}
	return decide(logdir.LeaveAlone, "its id is %s, the topic's %s: it may be of an earlier topic of the name, or of a later one that the metadata has lost", at.TopicID, t.ID)
}

func decide(fate logdir.Fate, reason string, args ...any) logdir.Decision {
	return logdir.Decision{Fate: fate, Reason: fmt.Sprintf(reason, args...)}
}

// nearlyEqual reports whether an id is a damaged copy of another: more than half of the characters of
// their texts are the same, which in ids that were made apart has a chance of one in 10^14.
func nearlyEqual(a, b uuid.UUID) bool {
	x, y := a.String(), b.String()
	same := 0
	for i := range x {
		if x[i] == y[i] {
			same++
		}
	}
	return 2*same > len(x)
}

// A count is how many partitions have a fate that needs a reason, with an example.
type count struct {
	all, unknown, stray      int
	firstUnknown, firstStray string
}

// count counts all partitions. Those of removed topics are not counted as strays: that a crash came
// between the removal and the renaming of their directories is nothing strange, however many they are.
func (p *partitions) count(e *Evidence) (c count) {
	for _, d := range e.Logs.Dirs {
		for _, at := range d.Partitions {
			c.all++
			switch decision := p.known(at); {
			case decision.Fate == logdir.PutAside && !p.removed[at.TopicID]:
				if c.stray++; c.stray == 1 {
					c.firstStray = at.Path + ": " + decision.Reason
				}
			case decision.Fate == logdir.LeaveAlone && !at.Accepted && !errors.Is(at.IDErr, fs.ErrNotExist):
				if c.unknown++; c.unknown == 1 {
					c.firstUnknown = at.Path + ": " + decision.Reason
				}
			}
		}
	}
	return c
}

func (c count) tooMany(n int) bool { return n > max(shareMin, c.all/shareDivisor) }

// unknownRefusals: so many partitions that the metadata does not know show that some of it is lost. A
// directory of a broker with ZooKeeper is expected to have them.
func (c count) unknownRefusals(e *Evidence) []error {
	if _, zooKeeper := versions(e); !c.tooMany(c.unknown) || zooKeeper {
		return nil
	}
	return []error{fmt.Errorf("%w: %d of %d partitions are not known to the metadata, as %s; some of it may be lost. To leave them where they are and go on: %s. To put them aside: %s",
		ErrRefused, c.unknown, c.all, c.firstUnknown, acceptLossFlag, putAsideFlag)}
}

func (c count) strayRefusals() []error {
	if !c.tooMany(c.stray) {
		return nil
	}
	return []error{fmt.Errorf("%w: %d of %d partitions would be put aside as strays, as %s; more than a fifth at one start needs %s",
		ErrRefused, c.stray, c.all, c.firstStray, putAsideFlag)}
}
