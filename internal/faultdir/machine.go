package faultdir

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A Machine makes faults in subjects, one after the other, and counts what comes of them.
type Machine struct {
	Subjects []*Subject
	Seed     uint64
	Count    int
	Faults   int // at once
	Workers  int
	Files    []FileKind // faults are in files of these kinds; none: of all
	Out      io.Writer  // progress and objections; nil: none

	mu     sync.Mutex
	done   int
	counts map[[2]string]*tally
	rules  map[Rule]int
	failed []string
}

// A tally counts the faults of a kind in files of a kind.
type tally struct{ all, refused, apart, heldBack, foreign, noticed, failed int }

// A Run names one fault, so that it can be made again.
type Run struct {
	Seed    uint64
	Subject string
	Faults  []Fault
}

func (r Run) String() string {
	s := r.Subject
	for _, f := range r.Faults {
		s += ": " + f.String()
	}
	return s
}

// run chooses the faults of a seed.
func (m *Machine) run(seed uint64) (*Subject, Run) {
	rng := rand.New(rand.NewPCG(seed, 9))
	s := pick(rng, m.Subjects)
	r := Run{Seed: seed, Subject: s.Name}
	for len(r.Faults) < m.Faults {
		if f := s.chooser.choose(rng); len(m.Files) == 0 || slices.Contains(m.Files, kindOfPath(f.Path, s.Tree)) {
			r.Faults = append(r.Faults, f)
		}
	}
	return s, r
}

// All makes all faults and returns the names of the runs that brought objections.
func (m *Machine) All() []string {
	m.counts, m.rules = map[[2]string]*tally{}, map[Rule]int{}
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range max(1, m.Workers) {
		workers.Go(func() {
			for seed := range seeds {
				m.one(seed)
			}
		})
	}
	began := time.Now()
	for i := range m.Count {
		seeds <- m.Seed + uint64(i)
		if i > 0 && i%500 == 0 {
			m.mu.Lock()
			m.printf("%d of %d faults, %d with objections, %v\n", m.done, m.Count, len(m.failed), time.Since(began).Round(time.Second))
			m.mu.Unlock()
		}
	}
	close(seeds)
	workers.Wait()
	return m.failed
}

func (m *Machine) printf(format string, args ...any) {
	if m.Out != nil {
		fmt.Fprintf(m.Out, format, args...)
	}
}

// one makes the faults of a seed.
func (m *Machine) one(seed uint64) {
	s, run := m.run(seed)
	result, err := s.Run(run.Faults...)
	if err != nil && m.Faults > 1 {
		return // the second fault is in a file that the first has taken away
	}
	if err != nil {
		result = &Result{Fault: run.Faults[0], Scope: &Scope{}, Objections: []Objection{{Fails, err.Error()}}}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	key := [2]string{string(result.Scope.Kind), string(result.Fault.Kind)}
	t := m.counts[key]
	if t == nil {
		t = &tally{}
		m.counts[key] = t
	}
	t.all++
	if result.Refusal != nil {
		t.refused++
	}
	if result.HeldBack {
		t.heldBack++
	}
	if result.Foreign {
		t.foreign++
	}
	if result.LeftAlone {
		t.apart++
	}
	if len(result.Noted) > 0 {
		t.noticed++
	}
	if len(result.Objections) == 0 {
		return
	}
	t.failed++
	m.failed = append(m.failed, run.String())
	m.printf("--- SEED=%d %v\n", seed, run)
	for _, o := range result.Objections {
		m.rules[o.Rule]++
		m.printf("    %v\n", o)
	}
	for _, f := range result.Findings[:min(3, len(result.Findings))] {
		m.printf("      check: %s\n", f)
	}
	for _, w := range result.Warnings[:min(3, len(result.Warnings))] {
		m.printf("      log: %s\n", strings.TrimSpace(w))
	}
}

// always reports whether a rule holds for two faults at once as well.
func (r Rule) always() bool { return r == Wrong || r == Aborted || r == Hangs || r == Fails }

// Summary prints a table by kind of file and kind of fault.
func (m *Machine) Summary(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "file\tfault\tmade\tnoticed by readers\tstart refused\tpartition left alone\ttransaction held open\tforeign .log served\twith objections")
	var sum tally
	for _, key := range slices.SortedFunc(maps.Keys(m.counts), func(a, b [2]string) int {
		return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1])
	}) {
		t := m.counts[key]
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", key[0], key[1], t.all, t.noticed, t.refused, t.apart, t.heldBack, t.foreign, t.failed)
		sum.all += t.all
		sum.noticed += t.noticed
		sum.refused += t.refused
		sum.apart += t.apart
		sum.foreign += t.foreign
		sum.heldBack += t.heldBack
		sum.failed += t.failed
	}
	fmt.Fprintf(tw, "all\t\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", sum.all, sum.noticed, sum.refused, sum.apart, sum.heldBack, sum.foreign, sum.failed)
	tw.Flush()
	for _, r := range slices.Sorted(maps.Keys(m.rules)) {
		fmt.Fprintf(w, "%s: %d\n", r, m.rules[r])
	}
}
