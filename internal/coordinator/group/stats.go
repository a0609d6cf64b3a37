package group

import (
	"context"

	"github.com/gregor-kafka/gregor/internal/coordinator"
)

// Stats counts what a coordinator has in its charge.
type Stats struct {
	Shards  int           // partitions of __consumer_offsets
	Loading int           // of them being read still
	Groups  [Dead + 1]int // by state; none is Dead
	Members int
	Offsets int // committed ones
}

func (s *Stats) add(o Stats) {
	for state, count := range o.Groups {
		s.Groups[state] += count
	}
	s.Members += o.Members
	s.Offsets += o.Offsets
}

// NumGroups returns the number of groups in all states.
func (s *Stats) NumGroups() (n int) {
	for _, count := range s.Groups {
		n += count
	}
	return n
}

// stats counts the groups of a shard.
func (s *Shard) stats() (stats Stats) {
	for _, g := range s.groups {
		stats.Groups[g.state]++
		stats.Members += len(g.members)
		for _, partitions := range g.offsets {
			stats.Offsets += len(partitions)
		}
	}
	return stats
}

// Stats asks all shards at once. A shard that has not answered when ctx ends, as one that
// waits for the disk, is not counted in Groups, Members and Offsets.
func (c *Coordinator) Stats(ctx context.Context) (sum Stats) {
	partitions := c.runtime.Partitions()
	answers := make(chan Stats, len(partitions))
	sum.Shards = len(partitions)
	asked := 0
	for _, p := range partitions {
		err := c.runtime.Submit(p, coordinator.Event[*Shard]{
			Run:  func(s *Shard, _ *coordinator.Turn) { answers <- s.stats() },
			Fail: func(error) { answers <- Stats{} },
		})
		switch err {
		case nil:
			asked++
		case coordinator.ErrLoading:
			sum.Loading++
		}
	}
	for range asked {
		select {
		case a := <-answers:
			sum.add(a)
		case <-ctx.Done():
			return sum
		}
	}
	return sum
}
