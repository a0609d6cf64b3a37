package faultdir

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	seed    = flag.Uint64("faults.seed", 1, "of the first fault")
	count   = flag.Int("faults.count", 60, "how many faults")
	atOnce  = flag.Int("faults.atonce", 1, "faults at once")
	workers = flag.Int("faults.workers", 2, "at the same time")
	only    = flag.String("faults.subject", "", "subjects whose name has this")
	files   = flag.String("faults.files", "", "kinds of files, with commas between them")
	one     = flag.String("faults.one", "", "SUBJECT: FAULT[: FAULT]")
)

// made are all subjects, once they have been made.
var made []*Subject

// allSubjects are gregor's own and Kafka's. The race detector, ten times slower, gets a few.
func allSubjects(t *testing.T) []*Subject {
	t.Helper()
	if made != nil {
		return made
	}
	made = append(ownSubjects(t), goldenSubjects(t)...)
	if raceDetector {
		made = slices.DeleteFunc(made, func(s *Subject) bool {
			return !strings.HasPrefix(s.Name, "gregor") && !strings.HasPrefix(s.Name, "kafka-4.4.0-kraft-dynamic")
		})
	}
	return made
}

// subjects are prepared, two at a time and once for all tests.
func subjects(t *testing.T) (list []*Subject) {
	t.Helper()
	var preparing sync.WaitGroup
	slots := make(chan bool, 2)
	for _, s := range allSubjects(t) {
		if !strings.Contains(s.Name, *only) {
			continue
		}
		list = append(list, s)
		preparing.Go(func() {
			slots <- true
			defer func() { <-slots }()
			if err := s.Prepare(); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		})
	}
	if preparing.Wait(); t.Failed() {
		t.FailNow()
	}
	return list
}

func TestFaults(t *testing.T) {
	if *one != "" {
		*only, _, _ = strings.Cut(*one, ": ")
	}
	list := subjects(t)
	if *one != "" {
		again(t, list, *one)
		return
	}
	if raceDetector {
		*count /= 5
	}
	m := &Machine{Subjects: list, Seed: *seed, Count: *count, Faults: *atOnce, Workers: *workers, Out: os.Stdout}
	for kind := range strings.SplitSeq(*files, ",") {
		if kind != "" {
			m.Files = append(m.Files, FileKind(kind))
		}
	}
	for _, run := range m.All() {
		t.Errorf("make faults FAULT='%s'", run)
	}
	if testing.Verbose() {
		m.Summary(os.Stdout)
	}
}

// again makes one fault again, and says all about it.
func again(t *testing.T, list []*Subject, run string) {
	words := strings.Split(run, ": ")
	for _, s := range list {
		if s.Name != words[0] {
			continue
		}
		var faults []Fault
		for _, w := range words[1:] {
			f, err := ParseFault(w)
			if err != nil {
				t.Fatal(err)
			}
			faults = append(faults, f)
		}
		r, err := s.Run(faults...)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings[:min(10, len(r.Findings))] {
			t.Log("check: " + f)
		}
		for _, w := range r.Warnings {
			t.Log("log: " + strings.TrimSpace(w))
		}
		for _, n := range r.Noted {
			t.Log("noticed: " + n)
		}
		for _, o := range r.Objections {
			t.Error(o)
		}
		return
	}
	t.Fatalf("no subject %q", words[0])
}
