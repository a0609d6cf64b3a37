//go:build !linux

package compaction

import "unsafe"

// A memory is bytes of the heap, on systems where nobody has tried better.
type memory []byte

func allocate(size int) (memory, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), nil
}

func (m memory) free() {}

// slotsOf is a view of memory.
func slotsOf(m memory, n int) []slot { return unsafe.Slice((*slot)(unsafe.Pointer(&m[0])), n) }

func versionsOf(m memory, n int) []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(&m[0])), n) }
