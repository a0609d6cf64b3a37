package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Scope is the kind of thing that a key configures.
type Scope uint8

const (
	ScopeBroker Scope = iota
	ScopeTopic
	ScopeGroup
	ScopeClientMetrics
)

var scopes = map[string]Scope{"broker": ScopeBroker, "topic": ScopeTopic, "group": ScopeGroup, "client-metrics": ScopeClientMetrics}

// Type is the type of a value, with the numbers that DescribeConfigs uses.
type Type int8

const (
	TypeUnknown Type = iota
	TypeBoolean
	TypeString
	TypeInt
	TypeShort
	TypeLong
	TypeDouble
	TypeList
	TypeClass
	TypePassword
)

var types = map[string]Type{
	"boolean": TypeBoolean, "string": TypeString, "int": TypeInt, "short": TypeShort, "long": TypeLong,
	"double": TypeDouble, "list": TypeList, "class": TypeClass, "password": TypePassword,
}

// Dynamic says how far a broker key can be changed while the broker runs.
type Dynamic uint8

const (
	ReadOnly    Dynamic = iota // only server.properties
	PerBroker                  // for one broker
	ClusterWide                // for one broker or for all
)

var dynamics = map[string]Dynamic{"": ReadOnly, "read-only": ReadOnly, "per-broker": PerBroker, "cluster-wide": ClusterWide, "yes": ClusterWide}

// A Key is one row of the table.
type Key struct {
	Name       string
	Scope      Scope
	Type       Type
	Default    string // canonical text; meaningless unless HasDefault
	HasDefault bool
	Valid      string // allowed values in words, "" when the type says it all
	Importance string
	Internal   bool
	Dynamic    Dynamic
	BrokerKey  string // topic keys: the broker key that is the default, or ""
	Doc        string // what gregor does with it, "" when nothing yet
	LastKnown  string // newest Kafka release that knows the key, "" when today's does

	rule rule
}

// Old reports whether today's Kafka no longer knows the key.
func (k *Key) Old() bool { return k.LastKnown != "" }

// Sensitive reports whether the value must not be shown.
func (k *Key) Sensitive() bool { return k.Type == TypePassword }

//go:embed keys.tsv
var keysText string

//go:embed docs.tsv
var docsText string

type table struct {
	byName map[Scope]map[string]*Key
	sorted map[Scope][]*Key // by name, today's keys only
}

var loadTable = sync.OnceValue(newTable)

func newTable() *table {
	docs := make(map[string]string)
	for columns := range rows(docsText, 2) {
		docs[columns[0]] = columns[1]
	}
	t := &table{byName: make(map[Scope]map[string]*Key), sorted: make(map[Scope][]*Key)}
	for _, scope := range scopes {
		t.byName[scope] = make(map[string]*Key)
	}
	for columns := range rows(keysText, 9) {
		k := newKey(columns)
		k.Doc = docs[k.Name]
		t.byName[k.Scope][k.Name] = k
		if !k.Old() {
			t.sorted[k.Scope] = append(t.sorted[k.Scope], k)
		}
	}
	for _, keys := range t.sorted {
		slices.SortFunc(keys, func(a, b *Key) int { return strings.Compare(a.Name, b.Name) })
	}
	return t
}

// rows yields the columns of each line but comments and the heading.
func rows(text string, columns int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		heading := true
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "#") {
				continue
			}
			row := strings.Split(line, "\t")
			if len(row) != columns {
				panic(fmt.Sprintf("BUG: config table: want %d columns in %q", columns, line))
			}
			if heading {
				heading = false
				continue
			}
			if !yield(row) {
				return
			}
		}
	}
}

func newKey(columns []string) *Key {
	importance, internal := strings.CutSuffix(columns[5], ", internal")
	k := &Key{
		Name:       columns[1],
		Scope:      scopes[columns[0]],
		Type:       types[columns[2]],
		Importance: importance,
		Internal:   internal,
		Dynamic:    dynamics[columns[6]],
		BrokerKey:  columns[7],
		LastKnown:  columns[8],
	}
	k.rule = newRule(columns[4])
	k.Valid = k.rule.words
	if columns[3] != "null" && columns[3] != "(required)" {
		k.Default, k.HasDefault = strings.TrimPrefix(columns[3], "class "), true
	}
	return k
}

// Lookup finds a key of today or of an older release. A broker key may carry the prefix
// of a listener, "listener.name.NAME.".
func Lookup(scope Scope, name string) (*Key, bool) {
	k, ok := loadTable().byName[scope][name]
	if !ok && scope == ScopeBroker {
		if base, scoped := listenerBase(name); scoped {
			k, ok = loadTable().byName[scope][base]
		}
	}
	return k, ok
}

// listenerBase cuts "listener.name.NAME." off a key, and the SASL mechanism in front of
// the keys that are set for each mechanism.
func listenerBase(name string) (base string, ok bool) {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return "", false
	}
	if _, base, ok = strings.Cut(rest, "."); !ok {
		return "", false
	}
	for _, k := range []string{"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
		"sasl.server.callback.handler.class", "connections.max.reauth.ms"} {
		if strings.HasSuffix(base, "."+k) {
			return k, true
		}
	}
	return base, true
}

// Keys lists today's keys of a scope by name. The slice is shared: do not change it.
func Keys(scope Scope) []*Key { return loadTable().sorted[scope] }

// Nearest returns the key whose name is most like a misspelt one.
func Nearest(scope Scope, name string) (string, bool) {
	name = strings.ReplaceAll(strings.ToLower(name), "_", ".")
	best, distance := "", max(2, len(name)/6)+1
	for _, k := range Keys(scope) {
		if d := editDistance(name, k.Name, distance); d < distance {
			best, distance = k.Name, d
		}
	}
	return best, best != ""
}

// editDistance counts the insertions, deletions and replacements between a and b, or
// returns limit when there are at least that many.
func editDistance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
