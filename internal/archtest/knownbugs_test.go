package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	bugPackage = regexp.MustCompile("`([a-z/]+)`")
	bugTest    = regexp.MustCompile(`\bTest\w+(/[\w-]+)?`)
)

// Every test that doc/known-bugs.md names exists in the package in front of it.
func TestKnownBugsHaveTheirTests(t *testing.T) {
	text, err := os.ReadFile("../../doc/known-bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	rows := 0
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || !strings.ContainsAny(columns[1], "0123456789") {
			continue
		}
		rows++
		if !bugTest.MatchString(columns[3]) {
			t.Errorf("%s: no test", columns[1])
		}
		pkg := ""
		for _, word := range strings.FieldsFunc(columns[3], func(r rune) bool { return r == ',' || r == ' ' }) {
			if m := bugPackage.FindStringSubmatch(word); m != nil {
				pkg = m[1]
			} else if bugTest.MatchString(word) && !hasTest(t, sources, pkg, word) {
				t.Errorf("%s: there is no %s in %s", columns[1], word, pkg)
			}
		}
	}
	if rows < 40 {
		t.Errorf("got %d rows, want 40 at least", rows)
	}
}

// hasTest looks for a test function of a package, and for the script that a subtest is.
func hasTest(t *testing.T, sources map[string]string, pkg, name string) bool {
	t.Helper()
	name, script, _ := strings.Cut(name, "/")
	if script != "" {
		found, _ := filepath.Glob(filepath.Join("../..", pkg, "testdata/*", script+"*"))
		named := func(path string) bool { return strings.TrimSuffix(filepath.Base(path), ".txtar") == script }
		if !slices.ContainsFunc(found, named) {
			return false
		}
	}
	if _, read := sources[pkg]; !read {
		paths, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sources[pkg] += string(source)
		}
	}
	return strings.Contains(sources[pkg], "\nfunc "+name+"(t *testing.T)")
}
