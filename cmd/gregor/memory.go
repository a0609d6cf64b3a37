package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryLimitPercent of the control group's limit is what the heap may take; the rest is
// for stacks, the binary and what the kernel counts as ours.
const memoryLimitPercent = 80

// limitMemory is for a process that is a broker and nothing else: the garbage collector
// works harder when the heap comes near the control group's limit, so that the kernel does
// not end the process. GOMEMLIMIT in the environment wins.
//
// How often the collector runs otherwise is left at Go's default: the hot paths allocate so
// little that a higher GOGC saves no CPU and costs memory (doc/decisions/0003).
func limitMemory() {
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
