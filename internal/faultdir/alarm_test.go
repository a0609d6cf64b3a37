package faultdir

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/check"
)

// Check finds no damage in what a broker leaves: of each directory it has taken over, when it is
// killed behind an append, stopped cleanly, and stopped after the start that recovers.
func TestCheckRaisesNoAlarm(t *testing.T) {
	for _, s := range allSubjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if err := s.Prepare(); err != nil {
				t.Fatal(err)
			}
			killed, stopped := leave(t, s, s.Tree)
			quiet(t, s, "killed", killed)
			quiet(t, s, "stopped", stopped)
			killed, stopped = leave(t, s, killed)
			quiet(t, s, "killed again", killed)
			quiet(t, s, "recovered and stopped", stopped)
		})
	}
}

// leave starts a broker, appends and returns what it leaves when it is killed, and when it stops.
func leave(t *testing.T, s *Subject, tree *Tree) (killed, stopped *Tree) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	fs, err := tree.Mem()
	must(err)
	b, err := start(fs, s.Dirs, s.Set, limit)
	must(err)
	reading, err := b.read(s.truth)
	must(err)
	_, err = b.append(reading)
	must(err)
	killed, err = b.tree()
	must(err)
	must(b.stop(limit))
	stopped, err = b.tree()
	must(err)
	return killed, stopped
}

func quiet(t *testing.T, s *Subject, what string, tree *Tree) {
	t.Helper()
	findings, err := checkTree(tree, s.Dirs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Severity == check.Damage && !s.findings[f.String()] {
			t.Errorf("%s: %v", what, f)
		}
	}
}
