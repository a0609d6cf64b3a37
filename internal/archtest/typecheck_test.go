package archtest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
)

// A checker type-checks the packages of the module. Of all others it knows only what is needed to tell
// what has a lock or an atomic, so that nothing outside has to be there or to be read.
type checker struct {
	root     string
	fset     *token.FileSet
	packages map[string]*checked
}

// A checked is a package with its syntax and what its names mean.
type checked struct {
	dir   string // in the module
	pkg   *types.Package
	files []*ast.File
	info  types.Info
}

// stubs stand for the packages of the standard library whose types are state.
var stubs = map[string]string{
	"sync": `package sync
type Mutex struct{ _ int }
type RWMutex struct{ _ int }
type Once struct{ _ int }
type WaitGroup struct{ _ int }
type Cond struct{ _ int }
type Map struct{ _ int }
type Pool struct{ New func() any }`,
	"sync/atomic": `package atomic
type Bool struct{ _ int }
type Int32 struct{ _ int }
type Int64 struct{ _ int }
type Uint32 struct{ _ int }
type Uint64 struct{ _ int }
type Value struct{ _ int }
type Pointer[T any] struct{ _ *T }`,
}

func newChecker(root string) *checker {
	return &checker{root: root, fset: token.NewFileSet(), packages: map[string]*checked{}}
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if p := c.packages[path]; p != nil {
		return p.pkg, nil
	}
	p := &checked{}
	c.packages[path] = p
	if dir, ok := strings.CutPrefix(path, module); ok {
		return c.check(p, path, strings.TrimPrefix(dir, "/"))
	}
	p.pkg = types.NewPackage(path, guessName(path))
	if text, ok := stubs[path]; ok {
		file, err := parser.ParseFile(c.fset, path, text, 0)
		if err != nil {
			return nil, err
		}
		p.pkg, err = new(types.Config).Check(path, c.fset, []*ast.File{file}, nil)
		return p.pkg, err
	}
	p.pkg.MarkComplete()
	return p.pkg, nil
}

// guessName is the name of a package by its path: the last element that is no version.
func guessName(importPath string) string {
	name := path.Base(importPath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(importPath))
	}
	return name
}

// check checks a package of the module. That names of other modules are unknown is no error.
func (c *checker) check(p *checked, path, dir string) (*types.Package, error) {
	found, err := build.ImportDir(filepath.Join(c.root, dir), 0)
	if err != nil {
		return nil, err
	}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(c.fset, filepath.Join(c.root, dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file)
	}
	p.dir = dir
	p.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: c, Error: func(error) {}, FakeImportC: true}
	p.pkg, _ = config.Check(path, c.fset, p.files, &p.info)
	return p.pkg, nil
}

// checkSource checks one file that is no file of the module.
func (c *checker) checkSource(text string) (*checked, error) {
	file, err := parser.ParseFile(c.fset, "example.go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p := &checked{dir: "example", files: []*ast.File{file}, info: types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	config := types.Config{Importer: c, Error: func(error) {}}
	p.pkg, _ = config.Check("example", c.fset, p.files, &p.info)
	return p, nil
}

// A use is that of a name of another package.
type use struct{ by, name, at string }

// uses returns the uses of names that wanted says yes to.
func (c *checker) uses(p *checked, wanted func(importPath, name string) bool) (list []use) {
	for _, file := range p.files {
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := s.X.(*ast.Ident)
				if !ok {
					return true
				}
				if of, ok := p.info.Uses[x].(*types.PkgName); ok && wanted(of.Imported().Path(), s.Sel.Name) {
					list = append(list, use{p.dir + "." + declName(decl, n), x.Name + "." + s.Sel.Name, c.fset.Position(n.Pos()).String()})
				}
				return true
			})
		}
	}
	return list
}

// declName names the function, the method (T.m) or the variable of a package in whose declaration a node is.
func declName(decl ast.Decl, n ast.Node) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		on := strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
		on, _, _ = strings.Cut(on, "[")
		return on + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && v.Pos() <= n.Pos() && n.End() <= v.End() {
				return v.Names[0].Name
			}
		}
	}
	return "?"
}
