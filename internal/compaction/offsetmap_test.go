package compaction

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/gregor-kafka/gregor/internal/random"
)

func testEntry(m *offsetMap, key, offset, version int64) *entry {
	return &entry{digest: m.hash(binary.BigEndian.AppendUint64(nil, uint64(key))), offset: offset, version: version}
}

// TestOffsetMap puts random keys into maps that grow, beside a Go map.
func TestOffsetMap(t *testing.T) {
	for _, versioned := range []bool{false, true} {
		m, err := newOffsetMap(random.Host("test"), 1<<30, 200_000, 0.9, versioned)
		must(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		type winner struct{ offset, version int64 }
		want := map[int64]winner{}
		for offset := range int64(200_000) {
			key, version := rng.Int64N(100_000), rng.Int64N(100)
			if ok, err := m.put(testEntry(m, key, offset, version)); !ok || err != nil {
				t.Fatalf("no room for key %d of %d: %v", key, len(want), err)
			}
			if w, ok := want[key]; !ok || !versioned || version >= w.version {
				want[key] = winner{offset, version}
			}
		}
		if m.count != len(want) {
			t.Errorf("%d keys, want %d", m.count, len(want))
		}
		for key, w := range want {
			if m.beaten(testEntry(m, key, w.offset, w.version)) || !m.beaten(testEntry(m, key, w.offset-1, w.version)) {
				t.Fatalf("key %d: offset %d is not the one that stays", key, w.offset)
			}
		}
		if m.beaten(testEntry(m, -1, 0, 0)) {
			t.Error("an unknown key is beaten")
		}
		if bytes := len(m.memory) + len(m.versionsMemory); bytes > (200_000*10/9+3)*(slotSize+versionSize) {
			t.Errorf("%d bytes", bytes)
		}
		m.close()
	}
}

func TestOffsetMapFull(t *testing.T) {
	f := func(slots int64, loadFactor float64, want int) {
		t.Helper()
		m, err := newOffsetMap(random.Host("test"), slots*slotSize, 1<<40, loadFactor, false)
		must(t, err)
		defer m.close()
		for i := int64(0); ; i++ {
			ok, err := m.put(testEntry(m, i, i, 0))
			must(t, err)
			if !ok {
				break
			}
		}
		if m.count != want {
			t.Errorf("%d slots, load factor %v: %d keys, want %d", slots, loadFactor, m.count, want)
		}
		if ok, _ := m.put(testEntry(m, 0, 99, 0)); !ok || !m.beaten(testEntry(m, 0, 98, 0)) {
			t.Error("a full map refuses a key that it has")
		}
	}
	f(1000, 0.9, 900)
	f(100_000, 0.9, 90_000)
	f(0, 0.9, 1)
	f(2, 1, 1)
	f(10, 1, 9) // one is free, for searches to end
	f(100, 1, 99)
	f(10, 0.01, 1)
	f(100, 0, 90) // what is no load factor is Kafka's 0.9
	f(100, 1.01, 90)
}

func TestOffsetMapRaise(t *testing.T) {
	m, err := newOffsetMap(random.Host("test"), 1<<20, 100, 0.9, true)
	must(t, err)
	defer m.close()
	put := func(key, offset, version int64) { _, _ = m.put(testEntry(m, key, offset, version)) }
	put(1, 10, 5)
	put(2, 11, 5)
	put(3, 12, 5)
	m.raise(testEntry(m, 1, 3, 6))
	m.raise(testEntry(m, 2, 4, 5))
	m.raise(testEntry(m, 3, 5, 4))
	m.raise(testEntry(m, 4, 6, 9))
	f := func(key, offset int64, want bool) {
		t.Helper()
		if got := m.beaten(testEntry(m, key, offset, 0)); got != want {
			t.Errorf("key %d offset %d: beaten %v", key, offset, got)
		}
	}
	f(1, 10, true)
	f(1, 3, false)
	f(2, 11, false)
	f(3, 12, false)
	f(4, 6, false) // not in the map
	if m.count != 3 {
		t.Errorf("%d keys", m.count)
	}
}
