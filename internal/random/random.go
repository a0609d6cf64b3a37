// Package random is where a broker's randomness comes from: streams of bytes, by what they are for. Each
// part reads a stream of its own, so that what it gets does not depend on what other parts read before.
// With a seed a broker is then the same each time, whatever its goroutines do first.
//
// Nothing else of a broker may use the randomness of the process; internal/archtest lists who does.
package random

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	chacha "math/rand/v2"
	"sync"
)

// Host is the operating system's randomness, whatever it is for.
func Host(string) io.Reader { return rand.Reader }

// Fill fills p from a source that never fails.
func Fill(source io.Reader, p []byte) {
	if _, err := io.ReadFull(source, p); err != nil {
		panic("BUG: a source of randomness fails: " + err.Error())
	}
}

// Uint64 reads a number from a source that never fails.
func Uint64(source io.Reader) uint64 {
	var b [8]byte
	Fill(source, b[:])
	return binary.BigEndian.Uint64(b[:])
}

// A Seeded has streams that depend on its seed and their names only. It is for tests: who knows some of
// a stream may not guess the rest, but knows all with the seed. Methods may be called concurrently.
type Seeded struct {
	seed uint64

	mu struct {
		sync.Mutex
		streams map[string]*stream
	}
}

// NewSeeded returns the streams of a seed, at their beginning.
func NewSeeded(seed uint64) *Seeded {
	s := &Seeded{seed: seed}
	s.mu.streams = map[string]*stream{}
	return s
}

// Stream returns the stream of a name. The same name is the same stream, which goes on: nothing comes
// twice, also when who asks has started again.
func (s *Seeded) Stream(name string) io.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.mu.streams[name]
	if found == nil {
		found = &stream{bytes: chacha.NewChaCha8(s.key(name))}
		s.mu.streams[name] = found
	}
	return found
}

func (s *Seeded) key(name string) [32]byte {
	return sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, s.seed), name...))
}

// A stream has many readers.
type stream struct {
	mu    sync.Mutex
	bytes *chacha.ChaCha8
}

// Read implements io.Reader. It never fails.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Read(p)
}
