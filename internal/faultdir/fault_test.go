package faultdir

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func someTree() *Tree {
	at := time.Unix(1_700_000_000, 0)
	files := map[string]File{}
	for name, data := range map[string]string{
		"d/a-0/00000000000000000000.log": "0123456789", "d/a-0/00000000000000000007.log": "abc", "d/b-0/00000000000000000000.log": "other",
		"d/meta.properties": "version=1\n", "d/a-0/partition.metadata": "version: 0\n",
	} {
		files[name] = File{[]byte(data), at}
	}
	return &Tree{files, map[string]time.Time{"d": at, "d/a-0": at, "d/b-0": at}}
}

func TestFaultApply(t *testing.T) {
	const log = "d/a-0/00000000000000000000.log"
	older := func(string) ([]byte, bool) { return []byte("01"), true }
	f := func(text, name, want string) {
		t.Helper()
		fault, err := ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		if fault.String() != text {
			t.Errorf("%q reads as %q", text, fault)
		}
		before := someTree()
		after, err := fault.Apply(before, older)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(after.Files[name].Data); got != want {
			t.Errorf("%s: %q in %s, want %q", text, got, name, want)
		}
		if diff := cmp.Diff(someTree(), before); diff != "" {
			t.Errorf("%s changed the tree itself: %s", text, diff)
		}
		if after.Dirs["d/a-0"].Equal(before.Dirs["d/a-0"]) != (fault.Quiet || fault.Kind != Missing && fault.Kind != Beside && fault.Kind != Swapped) {
			t.Errorf("%s: the directory is of %v", text, after.Dirs["d/a-0"])
		}
	}
	f("flip "+log+" 1 1", log, "0323456789")
	f("cut "+log+" 3", log, "012")
	f("zero "+log+" 2 3", log, "01\x00\x00\x0056789")
	f("missing "+log, log, "")
	f("missing "+log+" quietly", log, "")
	f("empty "+log, log, "")
	f("doubled "+log, log, "01234567890123456789")
	f("beside "+log+" d/a-0/00000000000000000003.log", "d/a-0/00000000000000000003.log", "0123456789")
	f("swapped "+log+" d/b-0/00000000000000000000.log", log, "other")
	f("older "+log, log, "01")
	for _, bad := range []string{"", "flip", "flip x 1", "cut x", "broken x", "swapped x y z"} {
		if fault, err := ParseFault(bad); err == nil {
			t.Errorf("%q is %v", bad, fault)
		}
	}
}

// A seed always makes the same fault, which changes something.
func TestChooseIsDeterministic(t *testing.T) {
	older := func(string) ([]byte, bool) { return nil, false }
	kinds := map[Kind]bool{}
	for seed := range uint64(300) {
		choose := func() Fault { return newChooser(someTree(), older).choose(rand.New(rand.NewPCG(seed, 0))) }
		fault := choose()
		if again := choose(); again != fault {
			t.Fatalf("seed %d: %v, then %v", seed, fault, again)
		}
		after, err := fault.Apply(someTree(), older)
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(after.Files, someTree().Files) {
			t.Errorf("%v changes nothing", fault)
		}
		kinds[fault.Kind] = true
	}
	if len(kinds) != 8 {
		t.Errorf("only kinds %v", kinds)
	}
}
