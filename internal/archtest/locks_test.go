package archtest

import (
	"cmp"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// slow lists methods and functions that may take as long as the network or a commit: none is called under a mutex,
// nor is a function of the module that calls one. What is called by way of an interface or a variable is
// found by its own name only.
var slow = []string{
	// Commits of metadata.
	"Propose", "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "AllocateProducerIDs", "RegisterBroker",
	"AssignDirectories", "DirectoriesOffline", "CordonDirectories",
	// Names and connections.
	"LookupNetIP", "LookupIPAddr", "LookupIP", "LookupHost", "LookupAddr", "lookupNetIP", "Dial", "DialContext", "DialTimeout",
}

// syncs lists those that wait for a disk.
var syncs = []string{"Sync", "SyncDir"}

// acrossSyncs lists the mutexes that are held across a sync somewhere, and why that holds up nobody who should go
// on. All others are not.
var acrossSyncs = map[string]string{
	"internal/cleaner.Manager.choosing":  "who looks for a log to clean waits for who corrects a checkpoint",
	"internal/commitlog.Log.files":       "is for changes of files only",
	"internal/commitlog.Log.mu":          "in the rare places named at the field",
	"internal/commitlog.EpochCache.file": writesOneFile,
	"internal/commitlog.flusher.mu":      "the first sync of a log writes its files of metadata",
	"internal/logdir.dir.changing":       "a stop of the directory, which nothing comes behind",
	"internal/logdir.dir.writing":        writesOneFile,
	"internal/logdir.mover.step":         "a truncation of a log and its copy, which happens together",
	"internal/quorum.metadataLog.mu":     "truncation, of which nobody may see a half",
	"internal/quorum.quorumState.mu":     writesOneFile,
	"internal/replica.Partition.mu":      "the first append of a leader epoch",
	"internal/segment.Segment.flushing":  "is for syncs only",
	"internal/segment.health.mu":         "a .txnindex file is replaced while a segment is opened",
	"internal/segment.Segment.index":     "a .txnindex file is replaced after damage",
}

const writesOneFile = "is for writing one small file only"

// TestNothingSlowUnderMutex looks at every function between Lock and Unlock.
func TestNothingSlowUnderMutex(t *testing.T) {
	c := checkModule(t)
	s := c.slowness(slow)
	if len(s.funcs) == 0 {
		t.Error("no function is slow")
	}
	for _, p := range c.packages {
		for _, l := range s.underLock(p) {
			t.Errorf("%s: %s while %s is locked", l.at, l.via, l.held)
		}
	}
}

// TestSyncsUnderMutex: a mutex is held across a sync where acrossSyncs says so, and nowhere else.
func TestSyncsUnderMutex(t *testing.T) {
	c := checkModule(t)
	s := c.slowness(syncs)
	found := map[string]bool{}
	for _, p := range c.packages {
		for _, l := range s.underLock(p) {
			if l.held == callers {
				continue // who locked it is found
			}
			if acrossSyncs[l.held] == "" {
				t.Errorf("%s: %s while %s is locked: whoever wants it waits for the disk, or say in %q why that is well", l.at, l.via, l.held, "acrossSyncs")
			}
			found[l.held] = true
		}
	}
	for name := range acrossSyncs {
		if !found[name] {
			t.Errorf("%s is held across no sync, it needs no exception", name)
		}
	}
}

// checkModule type-checks all packages.
func checkModule(t *testing.T) *checker {
	t.Helper()
	c := newChecker("../..")
	imports, err := moduleImports("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range imports {
		if _, err := c.Import(path.Join(module, i.pkg)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A slowness knows the functions of the module that are slow, each with what makes it so.
type slowness struct {
	c     *checker
	names []string
	funcs map[*types.Func]string
}

// A lockedCall is a slow call under a mutex.
type lockedCall struct{ at, via, held string }

// callers is what a function holds whose name says that its caller locked something.
const callers = "what it is called under"

// slowness finds the functions that call one of names, and those that call these.
func (c *checker) slowness(names []string, others ...*checked) *slowness {
	s := &slowness{c, names, map[*types.Func]string{}}
	packages := others
	for _, p := range c.packages {
		packages = append(packages, p)
	}
	for found := true; found; {
		found = false
		for _, p := range packages {
			for _, d := range funcs(p) {
				f, ok := p.info.Defs[d.Name].(*types.Func)
				if !ok || s.funcs[f] != "" {
					continue
				}
				if via := s.callIn(p, d.Body); via != "" {
					s.funcs[f] = via
					found = true
				}
			}
		}
	}
	return s
}

func funcs(p *checked) (list []*ast.FuncDecl) {
	for _, file := range p.files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				list = append(list, d)
			}
		}
	}
	return list
}

// callIn returns the first slow call that a body waits for, or "".
func (s *slowness) callIn(p *checked, body ast.Node) (via string) {
	walkCalls(body, func(call *ast.CallExpr) {
		if via == "" {
			via = s.of(p, call)
		}
	})
	return via
}

// of says what makes a call slow, or "".
func (s *slowness) of(p *checked, call *ast.CallExpr) string {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if slices.Contains(s.names, f.Sel.Name) {
			return f.Sel.Name
		}
		name = f.Sel
	case *ast.Ident:
		name = f
	default:
		return ""
	}
	f, ok := p.info.Uses[name].(*types.Func)
	if !ok {
		return ""
	}
	if via := s.funcs[f.Origin()]; via != "" {
		return name.Name + ", which calls " + via
	}
	return ""
}

// walkCalls visits the calls of a body in the order of the text. Functions that are written in it count if they
// are called where they are; others run at another time, and what go begins is not waited for.
func walkCalls(body ast.Node, visit func(*ast.CallExpr)) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.GoStmt:
			for _, arg := range n.Call.Args {
				walkCalls(arg, visit)
			}
			return false
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.FuncLit); ok {
				walkCalls(f.Body, visit)
			}
			visit(n)
		}
		return true
	})
}

// underLock returns the slow calls that are made between Lock and Unlock of one function, or in a function whose
// name says that its caller holds a mutex.
func (s *slowness) underLock(p *checked) (found []lockedCall) {
	for _, d := range funcs(p) {
		var held []string
		if strings.HasSuffix(d.Name.Name, "Locked") {
			held = []string{callers}
		}
		found = append(found, s.underLockIn(p, d.Body, held)...)
	}
	slices.SortFunc(found, func(a, b lockedCall) int { return cmp.Or(strings.Compare(a.at, b.at), strings.Compare(a.held, b.held)) })
	return slices.Compact(found) // what is written where it is called was looked at twice
}

func (s *slowness) underLockIn(p *checked, body ast.Node, held []string) (found []lockedCall) {
	deferred := map[*ast.CallExpr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			deferred[n.Call] = true
		case *ast.FuncLit: // it may run when the lock is gone, unless it locks itself
			found = append(found, s.underLockIn(p, n.Body, nil)...)
			return false
		}
		return true
	})
	walkCalls(body, func(call *ast.CallExpr) {
		if via := s.of(p, call); via != "" {
			for _, h := range held {
				found = append(found, lockedCall{s.c.fset.Position(call.Pos()).String(), via, h})
			}
			return
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		switch f.Sel.Name {
		case "Lock", "RLock":
			held = append(held, p.mutex(f.X))
		case "Unlock", "RUnlock":
			if !deferred[call] {
				held = slices.DeleteFunc(held, func(h string) bool { return h == p.mutex(f.X) })
			}
		}
	})
	return found
}

// mutex names a mutex by the type that it is a field of: l.epochs.file is that of the type of l.epochs.
func (p *checked) mutex(e ast.Expr) string {
	fields := ""
	for {
		if named := p.namedTypeOf(e); named != "" {
			return named + fields
		}
		x, ok := e.(*ast.SelectorExpr)
		if !ok {
			return types.ExprString(e) + fields
		}
		fields = "." + x.Sel.Name + fields
		e = x.X
	}
}

// namedTypeOf returns the name of the type of a variable or a field, if it is one of the module.
func (p *checked) namedTypeOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	x, ok := e.(*ast.Ident)
	if !ok {
		return ""
	}
	v, ok := cmp.Or(p.info.Uses[x], p.info.Defs[x]).(*types.Var)
	if !ok {
		return ""
	}
	t := types.Unalias(v.Type())
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || stubs[named.Obj().Pkg().Path()] != "" {
		return ""
	}
	return strings.TrimPrefix(named.Obj().Pkg().Path(), module+"/") + "." + named.Obj().Name()
}

// What the test sees, and what it does not.
func TestUnderLock(t *testing.T) {
	f := func(body string, want int) {
		t.Helper()
		c := newChecker("../..")
		p, err := c.checkSource(`package x
			import "sync"
			type T struct { mu sync.Mutex; q Q }
			type Q interface { Propose() }
			var m, n sync.RWMutex
			var q Q
			` + body)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.slowness(slow, p).underLock(p); len(got) != want {
			t.Errorf("%s: found %q, want %d", body, got, want)
		}
	}
	f("func a() { m.Lock(); defer m.Unlock(); q.Propose() }", 1)
	f("func a() { m.RLock(); q.Propose(); m.RUnlock() }", 1)
	f("func a() { m.Lock(); m.Unlock(); q.Propose() }", 0)
	f("func a() { n.Lock(); m.Lock(); m.Unlock(); q.Propose() }", 1)
	f("func a() { q.Propose(); m.Lock() }", 0)
	f("func a() { m.Lock(); go func() { q.Propose() }() }", 0)
	f("func a() { m.Lock(); go q.Propose() }", 0)
	f("func a() { go func() { m.Lock(); q.Propose() }() }", 1)
	f("func a() { m.Lock(); func() { q.Propose() }() }", 1)
	f("func a() { func() { m.Lock(); q.Propose() }() }", 1)
	f("func a() { m.Lock(); n.Lock(); q.Propose() }", 2)
	f("func a() { go func() { go func() { m.Lock(); q.Propose() }() }() }", 1)
	f("func aLocked() { q.Propose() }", 1)
	f("func a() { m.Lock(); b() }; func b() { c() }; func c() { q.Propose() }", 1)
	f("func a() { m.Lock(); b() }; func b() { go c() }; func c() { q.Propose() }", 0)
	f("func (t *T) a() { t.mu.Lock(); defer t.mu.Unlock(); t.b() }; func (t *T) b() { t.q.Propose() }", 1)
	f("func a() { m.Lock(); m.Unlock(); b() }; func b() { q.Propose() }", 0)
	f("type G[K any] struct{}; func (g G[K]) b() { q.Propose() }; func a(g G[int]) { m.Lock(); g.b() }", 1)
}

// Mutexes are named by their types, whatever the variables are called.
func TestMutexNames(t *testing.T) {
	c := newChecker("../..")
	p, err := c.checkSource(`package example
		import "sync"
		type T struct { mu struct { sync.Mutex }; u *U; sync.Mutex }
		type U struct { mu sync.RWMutex }
		func (t *T) a(us []*U) {
			t.mu.Lock()
			t.u.mu.RLock()
			t.Lock()
			m := &t.mu
			m.Lock()
			us[0].mu.Lock()
		}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	walkCalls(funcs(p)[0].Body, func(call *ast.CallExpr) { got = append(got, p.mutex(call.Fun.(*ast.SelectorExpr).X)) })
	if want := []string{"example.T.mu", "example.U.mu", "example.T", "m", "us[0].mu"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
