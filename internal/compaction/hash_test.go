package compaction

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/gregor-kafka/gregor/internal/random"
)

// The digest is what its definition says, computed with big numbers.
func TestHashDefinition(t *testing.T) {
	h := newHasher(random.Host("test"))
	for n := range 200 {
		key := make([]byte, n)
		for i := range key {
			key[i] = byte(i*7 + n)
		}
		if got, want := h.hash(key), h.slow(key); got != want {
			t.Fatalf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}

func (h *hasher) slow(key []byte) digest {
	number := func(r [2]uint64) *big.Int {
		x := new(big.Int).SetUint64(r[1])
		return x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(r[0]))
	}
	p := new(big.Int).Lsh(big.NewInt(1), 127)
	p.Sub(p, big.NewInt(1))
	sum := new(big.Int).Mul(big.NewInt(int64(len(key))), number(h.r[8]))
	for i := 0; i*8 < len(key); i++ {
		if i > 0 && i%8 == 0 {
			sum.Mul(sum, number(h.R))
		}
		word := new(big.Int)
		for k := min(len(key), i*8+8) - 1; k >= i*8; k-- {
			word.Lsh(word, 8).Or(word, big.NewInt(int64(key[k])))
		}
		sum.Add(sum, word.Mul(word, number(h.r[i%8])))
	}
	sum.Mod(sum, p)
	lo := new(big.Int).And(sum, new(big.Int).SetUint64(1<<64-1)).Uint64()
	hi := sum.Rsh(sum, 64).Uint64()
	if hi == 0 && lo == 0 {
		return digest{lo: 1} // the empty key
	}
	return digest{hi ^ mix(lo), lo}
}

// Keys that are alike, in length, zeros and order, have different digests, and spread.
func TestHashSpreads(t *testing.T) {
	h := newHasher(random.Host("test"))
	seen := map[digest]string{}
	buckets := make([]int, 256)
	add := func(key []byte) {
		d := h.hash(key)
		if other, ok := seen[d]; ok {
			t.Fatalf("%q and %q have the same digest", other, key)
		}
		seen[d] = string(key)
		buckets[d.hi>>56]++
	}
	for n := range 40 {
		add(make([]byte, n))
	}
	for i := range 20000 {
		add([]byte(fmt.Sprintf("user-%d", i)))
		add([]byte{0, 0, 0, 0, byte(i >> 8), byte(i), 0, 0, 1})
	}
	for i, n := range buckets {
		if want := len(seen) / len(buckets); n < want/2 || n > want*2 {
			t.Errorf("bucket %d has %d digests, want about %d", i, n, want)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{8, 16, 24, 36, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h, key := newHasher(random.Host("test")), make([]byte, n)
			var sink uint64
			for b.Loop() {
				key[0]++
				sink ^= h.hash(key).hi
			}
			_ = sink
		})
	}
}
