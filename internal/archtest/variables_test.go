package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"testing"
)

// shared lists the variables of packages that change after the program has begun, and why two brokers
// of one process may have them in common.
var shared = map[string]string{
	"internal/api.fetchPool":         freeMemory,
	"internal/api.oldBuffers":        freeMemory,
	"internal/api.producePool":       freeMemory,
	"internal/offline/files.buffers": freeMemory,
	"internal/wire.bufferPools":      freeMemory,
	"internal/record.gunzippers":     freeMemory,
	"internal/record.gzipWriters":    freeMemory,
	"internal/record.lz4Compressors": freeMemory,
	"internal/record.scratches":      freeMemory,
	"internal/record.zstdNow":        "coders that keep nothing between calls, and encode as much at once as there are processors; see record.ForgetZstd for bubbles",
	"internal/segment.blocks":        freeMemory,
	"internal/segment.chunks":        freeMemory,
	"vfs.direntBuffers":              freeMemory,
	"internal/commitlog.noFacts":     neverChanged,
	"internal/commitlog.noPosition":  neverChanged,
	"internal/web.families":          "is filled while the program's variables are made, for the test that writes doc/metrics.md",
	"internal/segment.defaultCaches": "for programs that read segments without a broker; brokers have their own",
	"vfs.locked":                     "the kernel keeps fcntl locks by process",
}

const (
	freeMemory   = "free memory of a sync.Pool: nobody sees who used it before"
	neverChanged = "is compared with, its type can change and it does not"
)

// TestNothingIsShared holds every variable of a package against shared: it changes when something outside of
// init is assigned to it or to a part of it, or when its type has a lock or an atomic.
func TestNothingIsShared(t *testing.T) {
	c := checkModule(t)
	changing := map[string]token.Position{}
	for _, p := range c.packages {
		maps.Copy(changing, c.changing(p))
	}
	for _, name := range slices.Sorted(maps.Keys(changing)) {
		if _, ok := shared[name]; !ok {
			t.Errorf("%s: %s is shared by all brokers of a process and changes: make it a field of what a broker has, or say in %q why it may", changing[name], name, "shared")
		}
	}
	for name := range shared {
		if _, ok := changing[name]; !ok {
			t.Errorf("%s does not change, it needs no exception", name)
		}
	}
}

// changing returns the variables of packages that code of p changes, or whose types are state, with a place of each.
func (c *checker) changing(p *checked) map[string]token.Position {
	found := map[string]token.Position{}
	note := func(v *types.Var, at token.Pos) { found[nameOf(v)] = c.fset.Position(at) }
	for ident, object := range p.info.Defs {
		if v, ok := object.(*types.Var); ok && isOfPackage(v) && isState(v.Type(), map[types.Type]bool{}) {
			note(v, ident.Pos())
		}
	}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			p.stateBySyntax(decl, note)
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name == "init" && f.Recv == nil {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				for _, target := range targets(n) {
					if v := p.root(target); v != nil {
						note(v, target.Pos())
					}
				}
				return true
			})
		}
	}
	return found
}

// stateBySyntax notes the variables in whose declared types a lock or an atomic is written, for types
// that cannot be known, such as an array whose length another module says.
func (p *checked) stateBySyntax(decl ast.Decl, note func(*types.Var, token.Pos)) {
	d, ok := decl.(*ast.GenDecl)
	if !ok || d.Tok != token.VAR {
		return
	}
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		if spec.Type == nil {
			continue
		}
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			if x, ok := n.(*ast.Ident); ok {
				if t, ok := p.info.Uses[x].(*types.TypeName); ok && t.Pkg() != nil && stubs[t.Pkg().Path()] != "" {
					for _, name := range spec.Names {
						note(p.info.Defs[name].(*types.Var), name.Pos())
					}
				}
			}
			return true
		})
	}
}

// targets are the expressions that a node assigns to.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable of a package that an expression is a part of, or nil.
func (p *checked) root(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			v, _ := p.info.Uses[x].(*types.Var)
			if v != nil && isOfPackage(v) {
				return v
			}
			return nil
		case *ast.SelectorExpr:
			if v, ok := p.info.Uses[x.Sel].(*types.Var); ok && isOfPackage(v) {
				return v
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// isOfPackage reports whether a variable is one of a package, not of a function or a struct.
func isOfPackage(v *types.Var) bool {
	return v.Pkg() != nil && v.Parent() == v.Pkg().Scope() && v.Name() != "_"
}

func nameOf(v *types.Var) string {
	dir := v.Pkg().Path()
	if within(dir, module) && dir != module {
		dir = dir[len(module)+1:]
	}
	return fmt.Sprintf("%s.%s", dir, v.Name())
}

// isState reports whether a type has a lock or an atomic, itself or in what it leads to.
func isState(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && stubs[p.Path()] != "" {
			return true
		}
		return isState(t.Underlying(), seen)
	case *types.Alias:
		return isState(types.Unalias(t), seen)
	case *types.Pointer:
		return isState(t.Elem(), seen)
	case *types.Slice:
		return isState(t.Elem(), seen)
	case *types.Array:
		return isState(t.Elem(), seen)
	case *types.Map:
		return isState(t.Elem(), seen)
	case *types.Struct:
		for field := range t.Fields() {
			if isState(field.Type(), seen) {
				return true
			}
		}
	}
	return false
}

// What the test sees, and what it does not.
func TestChanging(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		c := newChecker("../..")
		p, err := c.checkSource("package example\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(c.changing(p))); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f("var x = 1; func f() int { return x }")
	f("var x int; func f() { x = 1 }", "example.x")
	f("var x int; func f() { x++ }", "example.x")
	f("var x int; func f() { x := 1; x++ }")
	f("var x int; func init() { x = 1 }")
	f("var x map[int]int; func f() { x[1] = 1 }", "example.x")
	f("var x map[int]int; func f() { delete(x, 1) }", "example.x")
	f("var x struct{ y *struct{ z int } }; func f() { x.y.z = 1 }", "example.x")
	f("var x *int; func f() { *x = 1 }", "example.x")
	f("type T struct{ x int }; var y T; func (t *T) f() { t.x = 1 }")
	f("var x, y int; func f() { for x = range 3 {} }", "example.x")
	f(`import "sync"; var x struct { y []*struct{ sync.Mutex } }`, "example.x")
	f(`import "sync/atomic"; var x atomic.Pointer[int]`, "example.x")
	f(`import ("sync"; "unknown"); var x [unknown.Length]struct{ sync.Once }`, "example.x")
	f(`import "unknown"; var x = unknown.New(); func f() { unknown.Y = 1 }`)
}
