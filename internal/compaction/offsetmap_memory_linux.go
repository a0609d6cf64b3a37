package compaction

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A memory is bytes outside of the heap: they cost the garbage collector nothing, are there
// when they are touched, and go back to the operating system at once.
type memory []byte

// allocate returns size zero bytes, in huge pages where the kernel has them.
func allocate(size int) (memory, error) {
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // a kernel without them is as good, and slower
	return m, nil
}

func (m memory) free() {
	if m != nil {
		_ = unix.Munmap(m) // fails for what was not mapped only
	}
}

// slotsOf is a view of memory.
func slotsOf(m memory, n int) []slot { return unsafe.Slice((*slot)(unsafe.Pointer(&m[0])), n) }

func versionsOf(m memory, n int) []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(&m[0])), n) }
