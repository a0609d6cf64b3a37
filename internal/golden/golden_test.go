package golden

import (
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// Every directory of the list is in its archive, its expected files agree with each other,
// and no file is left over.
func TestSets(t *testing.T) {
	entries, err := files.ReadDir("sets")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, e := range entries {
		left[e.Name()] = true
	}
	for set, dirs := range Sets() {
		fsys := vfs.NewMem()
		Unpack(t, fsys, "root", set)
		if len(Topics(t, set)) == 0 {
			t.Errorf("%s: no topics", set)
		}
		for _, suffix := range []string{".tar.gz", ".topics.json.gz", ".dump.gz"} {
			delete(left, set+suffix)
		}
		for _, d := range dirs {
			if list, err := fsys.ReadDir(path.Join("root", d.Name)); err != nil || len(list) == 0 {
				t.Errorf("%v: %d entries, %v", d, len(list), err)
			}
			if d.Expected {
				checkExpected(t, fsys, d)
			}
			for _, suffix := range []string{"records.jsonl.gz", "offsets.json.gz", "uncommitted.txt"} {
				delete(left, d.name(suffix))
			}
		}
	}
	if len(Damage(t)) != 13 {
		t.Errorf("got %d lines of damage, want 13", len(Damage(t)))
	}
	delete(left, "kafka-4.4.0-torn.damage.txt")
	if len(left) > 0 {
		t.Errorf("nobody knows %v", slices.Sorted(maps.Keys(left)))
	}
}

func checkExpected(t *testing.T, fsys vfs.FS, d Dir) {
	t.Helper()
	records, uncommitted := d.Records(t), d.Uncommitted(t)
	for _, o := range d.Offsets(t) {
		list := records[o.ID()]
		if len(list) != o.Records {
			t.Errorf("%v: %v: %d records, want %d", d, o.ID(), len(list), o.Records)
		}
		if _, err := fsys.Stat(path.Join("root", d.Name, o.ID().String())); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		hidden := uncommitted[o.ID()]
		for _, r := range list {
			if r.Offset >= o.LastStable && !hidden[r.Offset] {
				t.Errorf("%v: %v: offset %d is committed above the last stable offset %d", d, o.ID(), r.Offset, o.LastStable)
			}
		}
		delete(records, o.ID())
	}
	if len(records) > 0 {
		t.Errorf("%v: records of %d unknown partitions", d, len(records))
	}
}
