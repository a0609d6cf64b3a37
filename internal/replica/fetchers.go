package replica

import "sync"

// A fetcherKey names a fetcher: partitions of one leader are spread over num.replica.fetchers.
type fetcherKey struct {
	leader int32
	index  int
}

// fetchers are those that run. (Kafka class ReplicaFetcherManager.)
type fetchers struct {
	m    *Manager
	done sync.WaitGroup

	// mu guards the map, and in every Partition the field that says so. It comes before fetcher.mu.
	mu struct {
		sync.Mutex
		running map[fetcherKey]*runningFetcher
		closed  bool
	}
}

// A runningFetcher ends with its last partition.
type runningFetcher struct {
	*fetcher
	partitions int
}

// follow makes the fetcher fetch a partition that should, and no other.
func (fs *fetchers) follow(p *Partition) {
	if fs.m.o.Follow.Leader == nil {
		return
	}
	s := p.State()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	wants := !s.Removed && !s.Leading && s.Leader >= 0 && s.Leader != fs.m.o.NodeID && !fs.mu.closed
	if old := p.fetcher; old != nil && (!wants || old.key != fs.keyOf(p, s)) {
		fs.leaveLocked(p, old)
	}
	if wants {
		fs.joinLocked(p, s)
	}
}

func (fs *fetchers) leaveLocked(p *Partition, f *runningFetcher) {
	p.fetcher = nil
	f.partitions--
	if f.partitions == 0 {
		f.end()
		delete(fs.mu.running, f.key)
		return
	}
	f.change(followChange{p: p, ends: true})
}

func (fs *fetchers) joinLocked(p *Partition, s *PartitionState) {
	if p.fetcher == nil {
		p.fetcher = fs.fetcherLocked(fs.keyOf(p, s))
		p.fetcher.partitions++
	} else if p.followedIn == s.LeaderEpoch {
		return // it goes on as it does: only who is in sync has changed
	}
	p.followedIn = s.LeaderEpoch
	p.fetcher.change(followChange{p: p, epoch: s.LeaderEpoch})
}

// fetcherLocked returns the fetcher of that name, which runs.
func (fs *fetchers) fetcherLocked(key fetcherKey) *runningFetcher {
	f := fs.mu.running[key]
	if f == nil {
		f = &runningFetcher{fetcher: newFetcher(fs.m, key)}
		if fs.mu.running == nil {
			fs.mu.running = map[fetcherKey]*runningFetcher{}
		}
		fs.mu.running[key] = f
		fs.done.Go(f.run)
	}
	return f
}

// keyOf spreads partitions as Kafka does, by the hash that Java has for names.
func (fs *fetchers) keyOf(p *Partition, s *PartitionState) fetcherKey {
	hash := int32(0)
	for _, c := range []byte(p.topic.Name) {
		hash = 31*hash + int32(c)
	}
	hash = 31*hash + p.index
	return fetcherKey{s.Leader, int(uint32(hash)&0x7fffffff) % max(fs.m.o.Follow.FetchersPerLeader, 1)}
}

// close ends all fetchers and waits for them.
func (fs *fetchers) close() {
	fs.mu.Lock()
	fs.mu.closed = true
	for _, f := range fs.mu.running {
		f.end()
	}
	fs.mu.Unlock()
	fs.done.Wait()
}
