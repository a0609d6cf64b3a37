package faultdir

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/gregor-kafka/gregor/internal/record"
)

// kindsOf are the faults that a kind of file can have.
func kindsOf(k FileKind) []Kind {
	switch k {
	case PartitionDir, MetadataDir:
		return []Kind{Missing}
	}
	return []Kind{Flip, Flip, Cut, Cut, Zero, Missing, Empty, Doubled, Beside, Swapped, Swapped, Older}
}

// weight is how often a kind of file is chosen, compared with others.
func weight(k FileKind) int {
	switch k {
	case LogFile:
		return 20
	case MetadataLog, TxnIndex:
		return 8
	case PartitionDir, MetadataDir, OtherFile, MetadataCompanion:
		return 2
	}
	return 5
}

// A chooser makes faults of a tree.
type chooser struct {
	tree   *Tree
	older  func(name string) ([]byte, bool)
	byKind map[FileKind][]string
	kinds  []FileKind // by weight
}

func newChooser(t *Tree, older func(string) ([]byte, bool)) *chooser {
	c := &chooser{tree: t, older: older, byKind: map[FileKind][]string{}}
	for _, name := range t.Names() {
		k := kindOf(name)
		c.byKind[k] = append(c.byKind[k], name)
	}
	for _, dir := range slices.Sorted(maps.Keys(t.Dirs)) {
		if path.Base(dir) == metadataDir {
			c.byKind[MetadataDir] = append(c.byKind[MetadataDir], dir)
		} else if _, ok := partitionOf(dir + "/x"); ok {
			c.byKind[PartitionDir] = append(c.byKind[PartitionDir], dir)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.byKind)) {
		for range weight(k) {
			c.kinds = append(c.kinds, k)
		}
	}
	return c
}

// choose makes a fault that changes something.
func (c *chooser) choose(rng *rand.Rand) Fault {
	for {
		k := pick(rng, c.kinds)
		f := Fault{Kind: pick(rng, kindsOf(k)), Path: pick(rng, c.byKind[k]), Quiet: rng.IntN(4) == 0}
		if c.fill(rng, k, &f) {
			return f
		}
	}
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// fill chooses the rest of a fault. It returns false where there is none of the kind.
func (c *chooser) fill(rng *rand.Rand, k FileKind, f *Fault) bool {
	data := c.tree.Files[f.Path].Data
	size := int64(len(data))
	switch f.Kind {
	case Flip:
		if size == 0 {
			return false
		}
		f.At, f.Size, f.Quiet = rng.Int64N(c.used(data)), rng.Int64N(8), false
	case Zero:
		if size == 0 {
			return false
		}
		f.At = rng.Int64N(c.used(data))
		f.Size = 1 + rng.Int64N(min(4096, size-f.At))
		f.Quiet = false
		return strings.Trim(string(data[f.At:f.At+f.Size]), "\x00") != ""
	case Cut:
		f.At, f.Quiet = c.cut(rng, k, data), false
		return size > 0 && f.At < size
	case Empty, Doubled:
		f.Quiet = false
		return size > 0
	case Beside:
		f.Other, f.Quiet = c.beside(rng, k, f.Path), false
		_, exists := c.tree.Files[f.Other]
		return !exists
	case Swapped:
		f.Other = c.sibling(rng, k, f.Path)
		return f.Other != "" && string(c.tree.Files[f.Other].Data) != string(data)
	case Older:
		f.Quiet = false
		old, ok := c.older(f.Path)
		return ok && string(old) != string(data)
	}
	return true
}

// used is the size of a file without most of the zeros behind it.
func (c *chooser) used(data []byte) int64 {
	n := len(data)
	for n > 0 && data[n-1] == 0 {
		n--
	}
	return int64(min(len(data), n+24))
}

// cut is where a file is cut: anywhere, or, in a .log file, where a batch begins or in its header.
func (c *chooser) cut(rng *rand.Rand, k FileKind, data []byte) int64 {
	if spans := spansOf(data, 0); (k == LogFile || k == MetadataLog) && len(spans) > 0 && rng.IntN(3) > 0 {
		at := pick(rng, spans).from
		if rng.IntN(2) == 0 {
			at += rng.Int64N(record.HeaderSize)
		}
		return at
	}
	return rng.Int64N(c.used(data) + 1)
}

// beside is the name of a copy.
func (c *chooser) beside(rng *rand.Rand, k FileKind, name string) string {
	dir, base := path.Dir(name), path.Base(name)
	options := []string{base + ".bak", base + ".tmp", base + "~", "copy-of-" + base}
	if ext := path.Ext(base); len(base) == 20+len(ext) && kindOf(name) != OtherFile {
		n := offsetIn(base)
		for _, other := range []int64{n + 1, n + 1 + rng.Int64N(100), n + 1000, n + 1_000_000, 0} {
			options = append(options, segmentName(other, ext), segmentName(other, ext))
		}
		options = append(options, base+".deleted", base+".cleaned", base+".swap")
	}
	return path.Join(dir, pick(rng, options))
}

// sibling is a file of the same kind: in the same directory, or in another.
func (c *chooser) sibling(rng *rand.Rand, k FileKind, name string) string {
	var near, far []string
	for _, other := range c.byKind[k] {
		switch {
		case other == name:
		case path.Dir(other) == path.Dir(name):
			near = append(near, other)
		default:
			far = append(far, other)
		}
	}
	if len(near) > 0 && (len(far) == 0 || rng.IntN(2) == 0) {
		return pick(rng, near)
	}
	if len(far) > 0 {
		return pick(rng, far)
	}
	return ""
}
