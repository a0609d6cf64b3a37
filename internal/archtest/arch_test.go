package archtest

import (
	"path/filepath"
	"slices"
	"testing"
)

// module is the path that go.mod declares.
const module = "github.com/gregor-kafka/gregor"

// order lists the packages from the lowest layer up. A package imports packages of lower
// layers only, never one beside or above it. What lies in a directory below a listed
// package (vfs/vfstest, coordinator/group) belongs to its layer and may import it.
var order = [][]string{
	{"internal/random", "internal/crc32c", "internal/topic", "internal/human", "internal/properties", "vfs", "internal/purgatory", "internal/throttle", "internal/metrics", "internal/memnet", "internal/peer", "internal/archtest"},
	{"internal/uuid"},
	{"internal/golden", "internal/cputime"}, // only tests import them
	{"internal/record", "internal/checkpoint", "internal/config", "internal/client"},
	{"internal/segment", "internal/logtest"}, // only tests import logtest
	{"internal/commitlog"},
	{"internal/compaction"},
	{"internal/logdir", "internal/cleaner"},
	{"internal/metadata"},
	{"internal/quorum", "internal/offline/files", "internal/offline/text"},
	{"internal/offline/schema", "internal/offline/check", "internal/offline/offlinetest"}, // only tests import offlinetest
	{"internal/offline/dump"},
	{"internal/ownership"},
	{"internal/controller"},
	{"internal/replica"},
	{"internal/wire"},
	{"internal/coordinator", "internal/leader"},
	{"internal/api"},
	{"internal/web"},
	{"internal/broker"},
	{"internal/faultdir"}, // only tests run it
	{"record"},            // public, on top of internal/record
	{"segment"},           // public, on top of internal/segment
	{".", "gregortest"},   // "." is the package gregor itself
	{"cmd", "conformance", "bench", "doc/examples"},
}

// beside lists the imports that the order forbids and we want.
var beside = map[string][]string{
	"gregortest": {"."},
}

// onlyImports narrows the order: these packages import of the module what is listed.
var onlyImports = map[string][]string{
	"internal/metadata": {"internal/uuid", "internal/topic"},
}

// storage lists the packages that keep bytes. They import each other, the standard
// library and storageLibraries.
var storage = []string{
	"internal/random", "internal/uuid", "internal/crc32c", "internal/topic", "internal/properties", "internal/throttle", "internal/metrics", "vfs", "internal/record", "record", "segment",
	"internal/checkpoint", "internal/config", "internal/segment", "internal/commitlog", "internal/logdir", "internal/compaction", "internal/cleaner",
}

var storageLibraries = []string{
	"github.com/klauspost/compress",
	"github.com/pierrec/lz4/v4",
	"golang.org/x/sys",
}

// importers says who may import a library, where not everybody above storage may.
var importers = map[string][]string{
	"github.com/twmb/franz-go/pkg/kmsg": speaksKafka,
	"github.com/twmb/franz-go/pkg/kerr": knowsCodes,
	"github.com/hashicorp/raft":         {"internal/quorum"},
	"github.com/spf13/cobra":            {"cmd"},
}

// knowsCodes lists the packages that know the protocol's error codes: the one that answers, and clients.
var knowsCodes = []string{"internal/api", "internal/leader", "internal/client", "internal/faultdir", "conformance", "bench"}

// speaksKafka lists the packages that know the protocol's structs.
var speaksKafka = []string{
	"internal/peer", "internal/leader", "internal/replica", "internal/wire", "internal/coordinator", "internal/api", "internal/web", "internal/broker",
	"internal/client", "internal/faultdir", ".", "gregortest", "cmd", "conformance", "bench",
}

func TestImports(t *testing.T) {
	imports, err := moduleImports("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(imports) == 0 {
		t.Fatal("no package found")
	}
	for _, i := range imports {
		if problem := i.check(); problem != "" {
			t.Errorf("%s: %s", i.position, problem)
		}
	}
}

func TestCheck(t *testing.T) {
	f := func(pkg, path, want string) {
		t.Helper()
		if got := (imported{pkg: pkg, path: path}).check(); got != want {
			t.Errorf("%s imports %s: got %q, want %q", pkg, path, got, want)
		}
	}
	f("internal/segment", module+"/internal/record", "")
	f("segment", module+"/record", "")
	f("internal/segment", "golang.org/x/sys/unix", "")
	f("internal/segment", "io/fs", "")
	f("vfs/vfstest", module+"/vfs", "")
	f("internal/api", "github.com/twmb/franz-go/pkg/kmsg", "")
	f("gregortest", module, "")
	f("cmd/gregor", module, "")
	f("internal/coordinator/group", module+"/internal/coordinator", "")
	f("internal/quorum", "github.com/hashicorp/raft", "")
	f("internal/metadata", module+"/internal/topic", "")

	f("internal/record", module+"/internal/segment", "internal/segment is not below internal/record")
	f("internal/commitlog", module+"/segment", "segment is not below internal/commitlog")
	f("internal/logdir", module+"/internal/cleaner", "internal/cleaner is not below internal/logdir")
	f("internal/util", "fmt", "internal/util has no place in the order")
	f("internal/segment", module+"/internal/util", "internal/util has no place in the order")
	f("internal/broker", module, ". is not below internal/broker")
	f("internal/metadata", module+"/internal/record", "internal/metadata imports only [internal/uuid internal/topic]")
	f("internal/segment", "github.com/klauspost/compressor", "a storage package imports only [github.com/klauspost/compress github.com/pierrec/lz4/v4 golang.org/x/sys]")
	f("internal/controller", "github.com/twmb/franz-go/pkg/kmsg/x", "only packages of "+join(speaksKafka)+" import github.com/twmb/franz-go/pkg/kmsg")
}

// What is in the order is there.
func TestOrderNamesPackages(t *testing.T) {
	for _, layer := range order {
		for _, entry := range layer {
			if files, err := filepath.Glob(filepath.Join("../..", entry, "*")); err != nil || len(files) == 0 {
				t.Errorf("there is no %s", entry)
			}
		}
	}
}

// Names in the rules that are not in the order would never match.
func TestRulesNamePackages(t *testing.T) {
	names := slices.Concat(storage, speaksKafka, knowsCodes)
	for pkg, list := range onlyImports {
		names = append(append(names, pkg), list...)
	}
	for pkg, list := range beside {
		names = append(append(names, pkg), list...)
	}
	for _, list := range importers {
		names = append(names, list...)
	}
	for _, name := range names {
		if entry, _ := place(name); entry != name {
			t.Errorf("%s is not in the order", name)
		}
	}
}
