package schema

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

//go:embed coordinator.txt
var coordinatorTables string

// A schema is the layout of one kind of record, as a table has it.
type schema struct {
	name     string
	kind     string // "coordinator-key", "coordinator-value", "metadata" or "data"
	key      int16
	max      int16 // last version
	flexible int16 // first flexible version, or notFlexible
	root     structure
}

const notFlexible = 1<<15 - 1

type structure struct{ fields []*field }

type field struct {
	name     string // as in JSON
	typ      string // of the table, without "[]"
	array    bool
	min, max int16 // versions that have it
	tag      int   // -1: not tagged
	nullable int16 // first version in which it may be null, or notFlexible
	sub      *structure
}

// schemas are all tables, by topic where there are keys.
type schemas struct {
	offsets, transactions, shares coordinator
	metadata                      map[int16]*schema // by API key
	data                          map[string]*schema
}

// A coordinator has the schemas of one internal topic, by the type that begins a key.
type coordinator struct {
	keys, values map[int16]*schema
}

// tables parses the embedded tables once.
var tables = sync.OnceValue(func() *schemas {
	all := &schemas{metadata: map[int16]*schema{}, data: map[string]*schema{}}
	for section, text := range sections(coordinatorTables + "\n" + metadata.FieldTables) {
		list, err := parseTables(text)
		if err != nil {
			panic(fmt.Sprintf("BUG: field tables: %s: %v", section, err))
		}
		switch section {
		case "__consumer_offsets":
			all.offsets = newCoordinator(list)
		case "__transaction_state":
			all.transactions = newCoordinator(list)
		case "__share_group_state":
			all.shares = newCoordinator(list)
		default:
			for _, s := range list {
				if s.kind == "metadata" {
					all.metadata[s.key] = s
				} else {
					all.data[s.name] = s
				}
			}
		}
	}
	return all
})

func newCoordinator(list []*schema) coordinator {
	c := coordinator{keys: map[int16]*schema{}, values: map[int16]*schema{}}
	for _, s := range list {
		if s.kind == "coordinator-key" {
			c.keys[s.key] = s
		} else {
			c.values[s.key] = s
		}
	}
	return c
}

// sections splits tables at lines that begin with "## ".
func sections(text string) map[string]string {
	m := map[string]string{}
	for _, part := range strings.Split("\n"+text, "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		m[title] += body
	}
	return m
}

func parseTables(text string) ([]*schema, error) {
	var list []*schema
	var stack []*structure            // stack[i] takes the fields indented by i+1 steps
	var structs map[string]*structure // of the schema at hand, defined or only mentioned
	named := func(name string) *structure {
		if structs[name] == nil {
			structs[name] = new(structure)
		}
		return structs[name]
	}
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		var err error
		switch {
		case depth == 0:
			s, e := parseSchema(words)
			list, stack, err = append(list, s), []*structure{&s.root}, e
			structs = map[string]*structure{}
		case words[0] == "struct": // shared by several fields
			stack = append(stack[:depth], named(words[1]))
		default:
			f, e := parseField(words)
			if err = e; err != nil {
				break
			}
			stack = stack[:depth]
			stack[depth-1].fields = append(stack[depth-1].fields, f)
			if _, scalar := scalars[f.typ]; !scalar {
				f.sub = named(f.typ)
				stack = append(stack, f.sub)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return list, nil
}

func parseSchema(words []string) (*schema, error) {
	s := &schema{kind: words[0], name: words[1], flexible: notFlexible}
	var err error
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "key":
			s.key, err = parseVersion(value)
		case "versions":
			_, s.max, err = parseVersions(value)
		case "flexible":
			if value != "none" {
				s.flexible, _, err = parseVersions(value)
			}
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func parseField(words []string) (*field, error) {
	f := &field{name: jsonName(words[1]), typ: strings.TrimPrefix(words[2], "[]"), tag: -1, nullable: notFlexible}
	f.array = f.typ != words[2]
	var err error
	if f.min, f.max, err = parseVersions(words[0]); err != nil {
		return nil, err
	}
	for _, w := range words[3:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "tag":
			f.tag, err = strconv.Atoi(value)
		case "nullable":
			f.nullable, _, err = parseVersions(value)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// parseVersions reads "2", "2+" or "2-4".
func parseVersions(s string) (first, last int16, err error) {
	if open, ok := strings.CutSuffix(s, "+"); ok {
		first, err = parseVersion(open)
		return first, notFlexible, err
	}
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		to = from
	}
	if first, err = parseVersion(from); err == nil {
		last, err = parseVersion(to)
	}
	return first, last, err
}

func parseVersion(s string) (int16, error) {
	v, err := strconv.ParseInt(s, 10, 16)
	return int16(v), err
}

func jsonName(s string) string { return string(unicode.ToLower(rune(s[0]))) + s[1:] }
