package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Severity says what a finding means.
type Severity string

// Damage is something that is wrong: bytes are lost or not what was written. A Note is what a
// crash leaves and the next start repairs, or has an innocent explanation.
const (
	Damage Severity = "damage"
	Note   Severity = "note"
)

// A Finding is one thing that a check has to say about a file or a directory.
type Finding struct {
	File     string   `json:"file"`
	Position int64    `json:"position"` // byte in the file, -1 if it is about the whole
	Offset   int64    `json:"offset"`   // the log's offset, -1 if there is none
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
}

func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Severity, f.File)
	if f.Position >= 0 {
		fmt.Fprintf(&b, ": byte %d", f.Position)
	}
	if f.Offset >= 0 {
		fmt.Fprintf(&b, " (offset %d)", f.Offset)
	}
	return b.String() + ": " + f.Message
}

// findingsMax bounds the findings of one partition: a file of noise has one for every few
// bytes.
const findingsMax = 1000

// A collector gathers findings. Its methods may be called concurrently.
type collector struct {
	mu       sync.Mutex
	findings []Finding
	dropped  int
}

func (c *collector) add(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.findings) >= findingsMax {
		c.dropped++
		return
	}
	c.findings = append(c.findings, f)
}

func (c *collector) damage(file string, position, offset int64, format string, args ...any) {
	c.add(Finding{file, position, offset, Damage, fmt.Sprintf(format, args...)})
}

func (c *collector) note(file string, position, offset int64, format string, args ...any) {
	c.add(Finding{file, position, offset, Note, fmt.Sprintf(format, args...)})
}

// take returns what was found, by file and position.
func (c *collector) take(dir string) []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped > 0 {
		c.findings = append(c.findings, Finding{dir, -1, -1, Damage, fmt.Sprintf("and %d more findings", c.dropped)})
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Position, b.Position))
	})
	return c.findings
}
