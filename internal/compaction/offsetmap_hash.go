package compaction

import (
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/gregor-kafka/gregor/internal/random"
)

// A digest stands for a key. Two keys with the same digest are taken for the same key, so it
// must not happen: the loser's record would be lost.
type digest struct{ hi, lo uint64 }

// A hasher makes digests with a secret key, drawn for each run. A key of n bytes is a list of
// 64-bit words, its length first and zeros behind its last byte:
//
//	digest = sum of word(i) * r(i mod 9), and every 8 words times R, modulo 2^127-1
//
// For two different keys that is a polynomial which is not zero, and the chance that the
// secret numbers make it so is below 2^-120 for keys of up to 256 bytes, whatever the keys
// are: nobody can choose keys that collide without knowing the numbers, which never leave the
// process. Of 10^9 keys any two collide with a chance of 2^-61. The sum is then mixed, one to
// one, so that keys that are alike spread over the map. (Carter and Wegman's universal
// hashing; Kafka has MD5, which costs four times as much.)
type hasher struct {
	r [9][2]uint64 // low and high half, below 2^123
	R [2]uint64    // below 2^127
}

func newHasher(source io.Reader) *hasher {
	var seed [160]byte
	random.Fill(source, seed[:])
	h := &hasher{}
	for i := range h.r {
		h.r[i] = [2]uint64{binary.LittleEndian.Uint64(seed[16*i:]), binary.LittleEndian.Uint64(seed[16*i+8:]) >> 5}
	}
	h.R = [2]uint64{binary.LittleEndian.Uint64(seed[144:]), binary.LittleEndian.Uint64(seed[152:]) >> 1}
	return h
}

// hash returns the digest of a key. It is never that of an empty slot.
func (h *hasher) hash(key []byte) digest {
	var s sum192
	s.add(uint64(len(key)), &h.r[8])
	i := 0
	for len(key) >= 8 {
		if i == 8 {
			s = h.step(s)
			i = 0
		}
		s.add(binary.LittleEndian.Uint64(key), &h.r[i])
		key = key[8:]
		i++
	}
	if len(key) > 0 {
		if i == 8 {
			s = h.step(s)
			i = 0
		}
		s.add(tail(key), &h.r[i])
	}
	lo, hi := s.fold()
	d := digest{hi ^ mix(lo), lo}
	if d == (digest{}) {
		d.lo = 1
	}
	return d
}

// step makes room for another 8 words.
func (h *hasher) step(s sum192) sum192 {
	lo, hi := s.fold()
	hi1, lo1 := bits.Mul64(lo, h.R[0])
	hi2, lo2 := bits.Mul64(lo, h.R[1])
	hi3, lo3 := bits.Mul64(hi, h.R[0])
	hi4, lo4 := bits.Mul64(hi, h.R[1])
	m1, c1 := bits.Add64(hi1, lo2, 0)
	m1, c2 := bits.Add64(m1, lo3, 0)
	m2, c3 := bits.Add64(hi2, hi3, c1)
	m2, c4 := bits.Add64(m2, lo4, c2)
	m3 := hi4 + c3 + c4
	// 2^127 is 1: what is above bit 126 comes down.
	low := [2]uint64{lo1, m1 &^ (1 << 63)}
	high := [2]uint64{m1>>63 | m2<<1, m2>>63 | m3<<1}
	a, carry := bits.Add64(low[0], high[0], 0)
	b, carry := bits.Add64(low[1], high[1], carry)
	return sum192{a, b, carry}
}

// A sum192 is a sum of products.
type sum192 struct{ a, b, c uint64 }

func (s *sum192) add(word uint64, r *[2]uint64) {
	hi0, lo0 := bits.Mul64(word, r[0])
	hi1, lo1 := bits.Mul64(word, r[1])
	mid, carry := bits.Add64(hi0, lo1, 0)
	hi1 += carry
	s.a, carry = bits.Add64(s.a, lo0, 0)
	s.b, carry = bits.Add64(s.b, mid, carry)
	s.c += hi1 + carry
}

// fold returns a number below 2^128 that is the same modulo 2^127-1, always the same one for
// the same sum.
func (s *sum192) fold() (lo, hi uint64) {
	// The sum is below 2^127 + 2^127 * 2^65, so the part above has 65 bits.
	up0, up1 := s.b>>63|s.c<<1, s.c>>63
	lo, carry := bits.Add64(s.a, up0, 0)
	hi = s.b&^(1<<63) + up1 + carry
	return lo, hi
}

// tail returns the last bytes of a key, less than 8, as a word.
func tail(p []byte) uint64 {
	switch n := len(p); {
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(p)) | uint64(binary.LittleEndian.Uint32(p[n-4:]))<<(8*(n-4))
	case n >= 2:
		return uint64(binary.LittleEndian.Uint16(p)) | uint64(binary.LittleEndian.Uint16(p[n-2:]))<<(8*(n-2))
	}
	return uint64(p[0])
}

// mix spreads the bits of a word (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
