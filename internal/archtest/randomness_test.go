package archtest

import (
	"slices"
	"testing"
)

// randomOfProcess lists the names of packages that draw from the randomness of the process. Nil is all.
var randomOfProcess = map[string]func(name string) bool{
	"crypto/rand":               func(string) bool { return true },
	"math/rand":                 isGlobalRandom,
	"math/rand/v2":              isGlobalRandom,
	"hash/maphash":              func(name string) bool { return name == "MakeSeed" || name == "Hash" },
	module + "/internal/uuid":   func(name string) bool { return name == "New" },
	module + "/internal/random": func(name string) bool { return name == "Host" },
}

// isGlobalRandom: what draws from a source that the caller has made is not global.
func isGlobalRandom(name string) bool {
	return !slices.Contains([]string{"New", "NewPCG", "NewChaCha8", "NewSource", "Rand", "Source", "PCG", "ChaCha8"}, name)
}

// drawsFromProcess lists the functions and variables that may, and why.
var drawsFromProcess = map[string]string{
	"internal/random.Host":                    "is where the randomness of the process comes in",
	"internal/broker.World.complete":          "a broker on the host has the host's",
	"internal/api.newServer":                  hostsByDefault,
	"internal/compaction.New":                 hostsByDefault,
	"internal/controller.New":                 hostsByDefault,
	"internal/coordinator/group.New":          hostsByDefault,
	"internal/logdir.Config.complete":         hostsByDefault,
	"internal/replica.NewSessions":            hostsByDefault,
	"internal/api.twiceSeed":                  placesOnly,
	"internal/metadata.cowEdit.shard":         placesOnly,
	"internal/replica.topics.init":            placesOnly,
	"internal/uuid.New":                       "for tests",
	"internal/offline/offlinetest.NewFixture": "for tests",
}

const (
	hostsByDefault = "for tests and programs without a broker; package broker gives its own"
	placesOnly     = "says where in memory an entry is, so that nobody can choose names that all lie in one place; nothing else depends on it"
)

// TestRandomnessIsGiven: two runs of a broker with the same seed decide the same.
func TestRandomnessIsGiven(t *testing.T) {
	c := checkModule(t)
	found := map[string]bool{}
	for _, p := range c.packages {
		for _, d := range c.uses(p, isDraw) {
			if drawsFromProcess[d.by] == "" {
				t.Errorf("%s: %s draws from the randomness of the process (%s): let a broker's World give it, or say in %q why not", d.at, d.by, d.name, "drawsFromProcess")
			}
			found[d.by] = true
		}
	}
	for name := range drawsFromProcess {
		if !found[name] {
			t.Errorf("%s draws nothing from the process, it needs no exception", name)
		}
	}
}

func isDraw(importPath, name string) bool {
	draws := randomOfProcess[importPath]
	return draws != nil && draws(name)
}

// What the test sees.
func TestDraws(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		c := newChecker("../..")
		p, err := c.checkSource("package example\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range c.uses(p, isDraw) {
			got = append(got, d.by+" "+d.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f(`import "math/rand/v2"; func f() int { return rand.IntN(3) }`, "example.f rand.IntN")
	f(`import "math/rand/v2"; func f() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }`)
	f(`import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(3) }`)
	f(`import other "math/rand"; var x, y = 1, other.Int()`, "example.x other.Int")
	f(`import "crypto/rand"; type T[K any] struct{}; func (t *T[K]) f() { func() { rand.Read(nil) }() }`, "example.T.f rand.Read")
	f(`import "hash/maphash"; func f() uint64 { return maphash.String(maphash.Seed{}, "") }`)
	f(`import "hash/maphash"; var s = maphash.MakeSeed()`, "example.s maphash.MakeSeed")
	f(`import "hash/maphash"; type T struct { h maphash.Hash }`, "example.? maphash.Hash")
	f(`import "github.com/gregor-kafka/gregor/internal/uuid"; func f() uuid.UUID { return uuid.New() }`, "example.f uuid.New")
	f(`import "github.com/gregor-kafka/gregor/internal/random"; func f() { _ = random.Host }`, "example.f random.Host")
}
