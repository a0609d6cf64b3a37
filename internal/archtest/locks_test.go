package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// slow lists calls that may take as long as the network or a commit: none is made under a mutex. What
// is hidden behind another function is not found.
var slow = []string{
	// Commits of metadata.
	"Propose", "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "AllocateProducerIDs", "RegisterBroker",
	"AssignDirectories", "DirectoriesOffline", "CordonDirectories",
	// Names and connections.
	"LookupNetIP", "LookupIPAddr", "LookupIP", "LookupHost", "LookupAddr", "lookup", "Dial", "DialContext", "DialTimeout",
}

// underLock returns the slow calls of a file that are made between Lock and Unlock of one function, in
// the order of the text, or in a function whose name says that its caller holds one.
func underLock(fset *token.FileSet, file *ast.File) (found []string) {
	var walk func(body ast.Node, held []string)
	walk = func(body ast.Node, held []string) {
		deferred := map[*ast.CallExpr]bool{}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				if n.Body != body {
					walk(n.Body, nil) // it may run when the lock is gone
					return false
				}
			case *ast.DeferStmt:
				deferred[n.Call] = true
			case *ast.CallExpr:
				call, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				switch on := types.ExprString(call.X); {
				case call.Sel.Name == "Lock" || call.Sel.Name == "RLock":
					held = append(held, on)
				case (call.Sel.Name == "Unlock" || call.Sel.Name == "RUnlock") && !deferred[n]:
					held = slices.DeleteFunc(held, func(h string) bool { return h == on })
				case len(held) > 0 && slices.Contains(slow, call.Sel.Name):
					found = append(found, fmt.Sprintf("%v: %s.%s while %s is locked", fset.Position(n.Pos()), on, call.Sel.Name, held[0]))
				}
			}
			return true
		})
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		var held []string
		if strings.HasSuffix(f.Name.Name, "Locked") {
			held = []string{"what " + f.Name.Name + " is called under"}
		}
		walk(f.Body, held)
	}
	return found
}

func TestNothingSlowUnderMutex(t *testing.T) {
	fset, files := token.NewFileSet(), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, found := range underLock(fset, file) {
			t.Error(found)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files read: %v", files, err)
	}
}

func TestUnderLock(t *testing.T) {
	f := func(body string, want int) {
		t.Helper()
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", "package x\n"+body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := underLock(fset, file); len(got) != want {
			t.Errorf("%s: found %q, want %d", body, got, want)
		}
	}
	f("func a() { m.Lock(); defer m.Unlock(); q.Propose() }", 1)
	f("func a() { m.mu.RLock(); q.Propose(); m.mu.RUnlock() }", 1)
	f("func a() { m.Lock(); m.Unlock(); q.Propose() }", 0)
	f("func a() { n.Lock(); m.Lock(); m.Unlock(); net.LookupHost() }", 1)
	f("func a() { q.Propose(); m.Lock() }", 0)
	f("func a() { m.Lock(); go func() { q.Propose() }() }", 0)
	f("func a() { go func() { m.Lock(); q.Propose() }() }", 1)
	f("func aLocked() { q.Propose() }", 1)
}
