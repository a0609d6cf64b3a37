package gregor

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Garbage collection suited to a broker: a small live heap with much short-lived
// garbage. See doc/decisions for the figures.
const (
	gcPercent          = 400
	memoryLimitPercent = 80
)

// TuneGC sets the collector for a process that is a broker and nothing else: a collection
// when the heap has grown fivefold, and a memory limit below the control group's, so that
// the kernel does not end the process first. GOGC and GOMEMLIMIT in the environment win.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := cgroupMemoryLimit("/sys/fs/cgroup/memory.max"); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 100 * memoryLimitPercent)
	}
}

// cgroupMemoryLimit reads a version 2 control group's limit in bytes; 0 for none.
func cgroupMemoryLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return limit
}
