package archtest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write api.txt anew")

// public lists the packages that others may import. What they export is in api.txt: a line that changes there
// or goes is a promise broken, a new one is a promise made.
var public = []string{".", "gregortest", "record", "segment", "vfs", "vfs/vfstest"}

func TestAPI(t *testing.T) {
	var lines []string
	for _, dir := range public {
		a, err := readAPI("../..", dir)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, a.lines()...)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("../../api.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("../../api.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	before := strings.Split(strings.TrimSpace(string(want)), "\n")
	for _, line := range before {
		if !slices.Contains(lines, line) {
			t.Errorf("gone: %s", line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(before, line) {
			t.Errorf("new: %s", line)
		}
	}
	t.Error("api.txt is not what the public packages export: go test ./internal/archtest -run TestAPI -update")
}

// An api is what a package exports.
type api struct {
	root, dir string
	fset      *token.FileSet
	files     []*ast.File
	pkg       *doc.Package
}

func readAPI(root, dir string) (*api, error) {
	found, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	a := &api{root: root, dir: dir, fset: token.NewFileSet()}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(a.fset, filepath.Join(root, dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		a.files = append(a.files, file)
	}
	a.pkg, err = doc.NewFromFiles(a.fset, a.files, module+"/"+dir)
	return a, err
}

// lines returns a line for each name, sorted.
func (a *api) lines() []string {
	var list []string
	values := func(kind string, values []*doc.Value) {
		for _, v := range values {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					list = append(list, kind+" "+name)
				}
			}
		}
	}
	functions := func(functions []*doc.Func) {
		for _, f := range functions {
			list = append(list, a.signature(f.Decl))
		}
	}
	values("const", a.pkg.Consts)
	values("var", a.pkg.Vars)
	functions(a.pkg.Funcs)
	for _, t := range a.pkg.Types {
		values("const", t.Consts)
		values("var", t.Vars)
		functions(t.Funcs)
		list = append(list, a.ofType(t)...)
	}
	for i, line := range list {
		list[i] = a.pkg.Name + ": " + line
	}
	slices.Sort(list)
	return list
}

// ofType returns the lines of a type: those of the type that it is another name for, if it is one.
func (a *api) ofType(t *doc.Type) []string {
	spec := t.Decl.Specs[0].(*ast.TypeSpec)
	if target, ok := spec.Type.(*ast.SelectorExpr); ok && spec.Assign.IsValid() {
		if of, found := a.aliased(target); found != nil {
			return append([]string{"type " + t.Name + " = " + a.text(target)}, of.members(found)...)
		}
	}
	return append([]string{"type " + t.Name + " " + a.kind(spec)}, a.members(t)...)
}

// aliased looks up a type of an internal package that has the name of the public one.
func (a *api) aliased(target *ast.SelectorExpr) (*api, *doc.Type) {
	of, err := readAPI(a.root, filepath.Join("internal", a.text(target.X)))
	if err != nil {
		return nil, nil
	}
	i := slices.IndexFunc(of.pkg.Types, func(t *doc.Type) bool { return t.Name == target.Sel.Name })
	if i < 0 {
		return nil, nil
	}
	return of, of.pkg.Types[i]
}

// kind is struct, interface, or what the type is made of.
func (a *api) kind(spec *ast.TypeSpec) string {
	switch spec.Type.(type) {
	case *ast.StructType:
		return "struct"
	case *ast.InterfaceType:
		return "interface"
	}
	return a.text(spec.Type)
}

// members returns the exported methods and fields of a type.
func (a *api) members(t *doc.Type) (list []string) {
	for _, m := range t.Methods {
		list = append(list, a.signature(m.Decl))
	}
	var fields *ast.FieldList
	word := "field "
	switch of := t.Decl.Specs[0].(*ast.TypeSpec).Type.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields, word = of.Methods, "method "
	default:
		return list
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			if name.IsExported() {
				list = append(list, word+t.Name+"."+name.Name+" "+a.text(field.Type))
			}
		}
	}
	return list
}

func (a *api) signature(f *ast.FuncDecl) string {
	return a.text(&ast.FuncDecl{Recv: f.Recv, Name: f.Name, Type: f.Type})
}

// text prints syntax on one line.
func (a *api) text(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, a.fset, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
