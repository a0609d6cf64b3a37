package api

import (
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// The first append to a partition waits for the disk, for the id of its topic and the epoch of its
// leader. A request that begins thousands of partitions would wait thousands of times. From the first
// such record set on, those of a request are appended beside each other: the disk takes up many
// syncs with one commit of its journal.

// An aheadResult is what became of a record set that was appended before its turn.
type aheadResult struct {
	done      bool // false: its turn is still to come
	info      commitlog.AppendInfo
	partition *replica.Partition
	err       error
}

// An aheadSet is a record set that is appended before its turn.
type aheadSet struct {
	topic     produceTopic
	partition int32
	set       []byte
	place     int
}

// helpersPerRequest and helpersMax bound the goroutines that append for one request and for all.
const (
	helpersPerRequest = 32
	helpersMax        = 64
)

// isCold reports whether an append to a partition of the present topic will wait for the disk.
func (p *produceWork) isCold(i int32) bool {
	if p.topic.hosted == nil {
		return false
	}
	partition := p.topic.hosted.Partition(i)
	return partition != nil && partition.IsCold()
}

// appendAhead appends what is cold in the rest of a request: some partitions of the present topic, and
// other topics. No partition is there twice (see check).
func (p *produceWork) appendAhead(d wire.Decoder, partitions, topics int) {
	present, place := p.topic, p.place
	var sets []aheadSet
	for {
		for range partitions {
			i, set := p.readSet(&d)
			if p.isCold(i) {
				sets = append(sets, aheadSet{p.topic, i, set, place})
			}
			place++
		}
		if p.flexible {
			d.SkipTags()
		}
		if topics == 0 {
			break
		}
		topics--
		p.readTopic(&d)
		partitions = d.ArrayLen(p.flexible, 5)
	}
	p.topic, p.ahead = present, make([]aheadResult, place)
	if len(sets) < 2 {
		return
	}
	p.s.beside(len(sets), func(n int) {
		s := &sets[n]
		r := &p.ahead[s.place]
		r.info, r.partition, r.err = p.append(&s.topic, s.partition, s.set, n == 0)
		r.done = true
	})
}

// beside calls do with 0 to n-1, the first one first, and returns when all calls have. There are as
// many at once as there are helpers to be had.
func (s *Server) beside(n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			do(int(i))
		}
	}
	var helpers sync.WaitGroup
	defer helpers.Wait()
	for range min(n-1, helpersPerRequest) {
		select {
		case s.helpers <- struct{}{}:
			helpers.Go(func() {
				defer func() { <-s.helpers }()
				work()
			})
		default:
		}
	}
	work()
}
