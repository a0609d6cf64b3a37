package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/vfs"
)

// hostWorkers is how many logs are created beside each other: several disks work at the same time then,
// and one takes up what several ask of it. Each holds two or three descriptors for a moment.
const hostWorkers = 8

// A topicChange is a change of a topic, with the partitions that this broker begins to host.
type topicChange struct {
	metadata.TopicChange
	topic     *Topic
	isNew     bool
	newcomers []newcomer // in the order of TopicChange.Partitions
}

// A newcomer is a partition that this broker begins to host.
type newcomer struct {
	topic  *Topic
	number int32
	data   *metadata.Partition

	p   *Partition
	err error // it has no log
}

// prepare makes the new partitions of all topics, with their logs. Nobody sees them yet.
func (m *Manager) prepare(changed []metadata.TopicChange) []topicChange {
	list := make([]topicChange, len(changed))
	var all []newcomer
	for i, c := range changed {
		list[i] = m.topicChange(c)
		all = append(all, list[i].newcomers...)
	}
	m.hostAll(all)
	for i := range list {
		n := len(list[i].newcomers)
		list[i].newcomers, all = all[:n], all[n:]
	}
	return list
}

func (m *Manager) topicChange(c metadata.TopicChange) topicChange {
	change := topicChange{TopicChange: c, topic: m.topics.findID(c.New.ID)}
	if change.isNew = change.topic == nil; change.isNew {
		change.topic = newTopic(c.New.Name, c.New.ID, m)
	}
	for i, p := range c.Partitions() {
		if slices.Contains(p.New.Replicas, m.o.NodeID) && change.topic.Partition(i) == nil {
			change.newcomers = append(change.newcomers, newcomer{topic: change.topic, number: i, data: p.New})
		}
	}
	return change
}

func (m *Manager) hostAll(list []newcomer) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
			n := &list[i]
			n.p, n.err = m.host(n.topic, n.number, n.data)
		}
	}
	var workers sync.WaitGroup
	for range min(hostWorkers, len(list)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
}

// host makes a partition with its log: the one that was loaded, or a new one. With an
// error it has none and is offline.
func (m *Manager) host(t *Topic, i int32, mp *metadata.Partition) (*Partition, error) {
	p := &Partition{topic: t, index: i}
	id := p.ID()
	if log := m.o.Logs.Log(id); log != nil && log.TopicID() == t.ID {
		p.log.Store(log)
		return p, nil
	}
	dir, _ := mp.Directory(m.o.NodeID)
	isNew := mp.PartitionEpoch == 0
	create := func() (*commitlog.Log, error) {
		return m.o.Logs.Create(id, t.ID, m.o.LogConfig(t.Name), dir, isNew)
	}
	log, err := create()
	switch fault := vfs.FaultOf(err); {
	case err == nil:
		p.log.Store(log)
	case fault == vfs.ProcessFault || fault == vfs.SpaceFault:
		p.late = &lateLog{create: create}
	}
	return p, err
}
