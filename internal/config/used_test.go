package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keyLiteral is a string literal that could be a key.
var keyLiteral = regexp.MustCompile(`"([a-z][a-z0-9]*(?:\.[a-z0-9]+)*)"`)

// readHere are keys that this package reads itself.
var readHere = []string{
	"listeners", "advertised.listeners", "listener.security.protocol.map", "controller.listener.names",
	"node.id", "broker.id", "process.roles", "log.dirs", "log.dir", "cordoned.log.dirs", "gregor.http.listener",
	"max.connections.per.ip.overrides", "controller.quorum.voters",
}

// usedKeys finds the keys in the source of the other packages. A topic key brings the
// broker keys behind it.
func usedKeys(t *testing.T) map[string]bool {
	t.Helper()
	used := make(map[string]bool)
	for _, name := range readHere {
		used[name] = true
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "config" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range keyLiteral.FindAllStringSubmatch(string(source), -1) {
			markUsed(used, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func markUsed(used map[string]bool, literal string) {
	used[literal] = true
	if k, ok := Lookup(ScopeTopic, literal); ok && k.BrokerKey != "" {
		used[k.BrokerKey] = true
		for _, m := range families[k.BrokerKey] {
			used[m.name] = true
		}
	}
}

// A key has a sentence in docs.tsv exactly if gregor reads it: the warning about keys
// without effect is made of that.
func TestDocumentedKeysAreTheUsedOnes(t *testing.T) {
	used := usedKeys(t)
	for _, k := range slices.Concat(Keys(ScopeBroker), Keys(ScopeTopic)) {
		switch {
		case k.Doc == "" && used[k.Name]:
			t.Errorf("%s is read and has no sentence in docs.tsv", k.Name)
		case k.Doc != "" && !used[k.Name]:
			t.Errorf("%s has a sentence in docs.tsv and is not read", k.Name)
		}
	}
}
