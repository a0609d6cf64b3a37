package faultdir

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// A Kind of fault.
type Kind string

// The kinds of faults.
const (
	Flip    Kind = "flip"    // one bit: At is the byte, Size the bit
	Cut     Kind = "cut"     // the file ends at byte At
	Zero    Kind = "zero"    // Size bytes from At on
	Missing Kind = "missing" // the file, or a directory with all that is in it
	Empty   Kind = "empty"
	Doubled Kind = "doubled" // the content stands in it twice
	Beside  Kind = "beside"  // a copy under another name, Other
	Swapped Kind = "swapped" // the content of Path and Other is exchanged, as by renaming
	Older   Kind = "older"   // what it was some time before
)

// A Fault is one thing that is wrong with a Tree.
type Fault struct {
	Kind  Kind
	Path  string
	Other string
	At    int64
	Size  int64
	// Quiet: the directory shows no trace of it in its modification time, as when the file system
	// has lost a name. (What changes bytes in place never shows.)
	Quiet bool
}

// String is what ParseFault reads.
func (f Fault) String() string {
	s := string(f.Kind) + " " + f.Path
	switch f.Kind {
	case Flip, Zero:
		s += fmt.Sprintf(" %d %d", f.At, f.Size)
	case Cut:
		s += fmt.Sprintf(" %d", f.At)
	case Beside, Swapped:
		s += " " + f.Other
	}
	if f.Quiet {
		s += " quietly"
	}
	return s
}

// ParseFault reads what String wrote.
func ParseFault(s string) (f Fault, err error) {
	words := strings.Fields(s)
	if n := len(words); n > 0 && words[n-1] == "quietly" {
		f.Quiet, words = true, words[:n-1]
	}
	if len(words) < 2 {
		return f, fmt.Errorf("%q is no fault", s)
	}
	f.Kind, f.Path = Kind(words[0]), words[1]
	words = words[2:]
	want := map[Kind]int{Flip: 2, Zero: 2, Cut: 1, Beside: 1, Swapped: 1, Missing: 0, Empty: 0, Doubled: 0, Older: 0}
	if n, ok := want[f.Kind]; !ok || n != len(words) {
		return f, fmt.Errorf("%q is no fault", s)
	}
	switch f.Kind {
	case Beside, Swapped:
		f.Other = words[0]
		return f, nil
	case Flip, Zero:
		f.Size, err = strconv.ParseInt(words[1], 10, 64)
	}
	if err == nil && len(words) > 0 {
		f.At, err = strconv.ParseInt(words[0], 10, 64)
	}
	return f, err
}

// touchedAfter is how much newer than all else what shows a fault is.
const touchedAfter = time.Hour

// Apply returns the tree with the fault in it. older gives a file as it was before.
func (f Fault) Apply(t *Tree, older func(name string) ([]byte, bool)) (*Tree, error) {
	next := t.Clone()
	file, ok := next.Files[f.Path]
	if _, isDir := next.Dirs[f.Path]; !ok && !isDir {
		return nil, fmt.Errorf("%v: no such file", f)
	}
	put := func(data []byte) { next.Files[f.Path] = File{data, file.ModTime} }
	size := int64(len(file.Data))
	switch f.Kind {
	case Flip:
		if f.At < 0 || f.At >= size {
			return nil, fmt.Errorf("%v: the file has %d bytes", f, size)
		}
		data := bytes.Clone(file.Data)
		data[f.At] ^= 1 << f.Size
		put(data)
	case Cut:
		put(file.Data[:min(max(f.At, 0), size)])
	case Zero:
		data := bytes.Clone(file.Data)
		clear(data[min(f.At, size):min(f.At+f.Size, size)])
		put(data)
	case Missing:
		next.Remove(f.Path)
	case Empty:
		put(nil)
	case Doubled:
		put(append(bytes.Clone(file.Data), file.Data...))
	case Beside:
		next.Files[f.Other] = file
	case Swapped:
		other, ok := next.Files[f.Other]
		if !ok {
			return nil, fmt.Errorf("%v: no %s", f, f.Other)
		}
		next.Files[f.Path], next.Files[f.Other] = other, file
	case Older:
		data, ok := older(f.Path)
		if !ok {
			return nil, fmt.Errorf("%v: nothing older", f)
		}
		put(data)
	}
	if !f.Quiet {
		f.leaveTrace(t, next)
	}
	return next, nil
}

// leaveTrace sets the time of the directories where names have changed.
func (f Fault) leaveTrace(t, next *Tree) {
	switch f.Kind {
	case Missing, Beside, Swapped:
	default:
		return
	}
	var newest time.Time
	for _, file := range t.Files {
		if file.ModTime.After(newest) {
			newest = file.ModTime
		}
	}
	for _, name := range []string{f.Path, f.Other} {
		dir := path.Dir(name)
		if _, ok := next.Dirs[dir]; ok {
			next.Dirs[dir] = newest.Add(touchedAfter)
		}
	}
}
