package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// imported is one import declaration.
type imported struct {
	pkg      string // directory of the importing package in the module, "." for the root
	path     string // import path
	position token.Position
}

// check says what is wrong with the import, or "".
func (i imported) check() string {
	from, fromLayer := place(i.pkg)
	if from == "" {
		return i.pkg + " has no place in the order"
	}
	if within(i.path, module) {
		return i.checkInternal(from, fromLayer)
	}
	if isStandard(i.path) {
		return ""
	}
	if slices.Contains(storage, from) && !withinAny(i.path, storageLibraries) {
		return "a storage package imports only " + join(storageLibraries)
	}
	for library, allowed := range importers {
		if within(i.path, library) && !slices.Contains(allowed, from) {
			return "only packages of " + join(allowed) + " import " + library
		}
	}
	return ""
}

func (i imported) checkInternal(from string, fromLayer int) string {
	target := "."
	if i.path != module {
		target = strings.TrimPrefix(i.path, module+"/")
	}
	to, toLayer := place(target)
	only, narrowed := onlyImports[from]
	switch {
	case to == "":
		return target + " has no place in the order"
	case from == to || slices.Contains(beside[from], to):
		return ""
	case toLayer >= fromLayer:
		return to + " is not below " + from
	case narrowed && !slices.Contains(only, to):
		return from + " imports only " + join(only)
	}
	return ""
}

// place finds the entry of the order that pkg belongs to, and its layer.
func place(pkg string) (entry string, layer int) {
	for layer, entries := range order {
		for _, entry := range entries {
			if within(pkg, entry) {
				return entry, layer
			}
		}
	}
	return "", 0
}

// within reports whether path is parent or lies below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '/')
}

func withinAny(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(path, parent) })
}

// isStandard: paths of the standard library have no dot in their first element.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func join(list []string) string { return fmt.Sprint(list) }

// moduleImports reads the imports of every Go file of the module at root, for all
// platforms. Tests are left out: they may use what they like.
func moduleImports(root string) ([]imported, error) {
	var found []imported
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && isForeign(path):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			target, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found = append(found, imported{filepath.ToSlash(pkg), target, files.Position(spec.Pos())})
		}
		return nil
	})
	return found, err
}

// isForeign reports whether the go command would not look into the directory: hidden,
// test data, or another module.
func isForeign(dir string) bool {
	name := filepath.Base(dir)
	if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "vendor" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
