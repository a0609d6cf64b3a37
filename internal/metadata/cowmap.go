package metadata

import (
	"hash/maphash"
	"iter"
	"maps"
)

const cowShards = 256

// A cowMap is an immutable map in shards: a change copies the shards that it touches. The zero
// value is empty. With n entries a change of one costs n/256 plus the array of shards; a change
// of many copies each shard once.
type cowMap[K comparable, V any] struct {
	shards *[cowShards]map[K]V
	seed   maphash.Seed // of the shards, if there are any
	size   int
}

func (m *cowMap[K, V]) shardOf(k K) uint8 { return uint8(maphash.Comparable(m.seed, k)) }

// at returns the value of k, or the zero value.
func (m cowMap[K, V]) at(k K) V {
	if m.shards == nil {
		var zero V
		return zero
	}
	return m.shards[m.shardOf(k)][k]
}

// all walks the entries in no order.
func (m cowMap[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.shards == nil {
			return
		}
		for _, shard := range m.shards {
			for k, v := range shard {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// A cowEdit collects changes to a cowMap. It may be used by one goroutine, until done.
type cowEdit[K comparable, V any] struct {
	cowMap[K, V]
	shared bool            // shards is still that of the original
	owned  [cowShards]bool // shards that were copied
}

func (m cowMap[K, V]) edit() cowEdit[K, V] { return cowEdit[K, V]{cowMap: m, shared: true} }

func (e *cowEdit[K, V]) shard(k K) map[K]V {
	if e.shared {
		shards := new([cowShards]map[K]V)
		if e.shards != nil {
			*shards = *e.shards
		} else {
			e.seed = maphash.MakeSeed()
		}
		e.shards, e.shared = shards, false
	}
	i := e.shardOf(k)
	if !e.owned[i] {
		e.owned[i] = true
		if e.shards[i] = maps.Clone(e.shards[i]); e.shards[i] == nil {
			e.shards[i] = make(map[K]V)
		}
	}
	return e.shards[i]
}

func (e *cowEdit[K, V]) put(k K, v V) {
	shard := e.shard(k)
	before := len(shard)
	shard[k] = v
	e.size += len(shard) - before
}

func (e *cowEdit[K, V]) remove(k K) {
	shard := e.shard(k)
	before := len(shard)
	delete(shard, k)
	e.size += len(shard) - before
}
