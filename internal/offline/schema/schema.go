package schema

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/metadata/fieldtable"
)

//go:embed coordinator.txt
var coordinatorTables string

// A structure is a record or a part of one, and knows how it is read.
type structure fieldtable.Struct

// A field is one of a structure.
type field fieldtable.Field

// schemas are all tables, by topic where there are keys.
type schemas struct {
	offsets, transactions, shares coordinator
	metadata                      map[int16]*fieldtable.Record // by API key
	data                          map[string]*fieldtable.Record
}

// A coordinator has the schemas of one internal topic, by the type that begins a key.
type coordinator struct {
	keys, values map[int16]*fieldtable.Record
}

// tables parses the embedded tables once.
var tables = sync.OnceValue(func() *schemas {
	all := &schemas{metadata: map[int16]*fieldtable.Record{}, data: map[string]*fieldtable.Record{}}
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
				if s.Kind == "metadata" {
					all.metadata[s.Key] = s
				} else {
					all.data[s.Name] = s
				}
			}
		}
	}
	return all
})

func newCoordinator(list []*fieldtable.Record) coordinator {
	c := coordinator{keys: map[int16]*fieldtable.Record{}, values: map[int16]*fieldtable.Record{}}
	for _, s := range list {
		if s.Kind == "coordinator-key" {
			c.keys[s.Key] = s
		} else {
			c.values[s.Key] = s
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

// parseTables returns the records of a text, with the names that their fields have in JSON.
func parseTables(text string) ([]*fieldtable.Record, error) {
	list, err := fieldtable.Parse(text)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		nameFields(&r.Struct, map[*fieldtable.Struct]bool{})
	}
	return list, nil
}

func nameFields(s *fieldtable.Struct, done map[*fieldtable.Struct]bool) {
	if done[s] {
		return
	}
	done[s] = true
	for _, f := range s.Fields {
		f.Name = jsonName(f.Name)
		if f.Sub != nil {
			nameFields(f.Sub, done)
		}
	}
}

func jsonName(s string) string { return string(unicode.ToLower(rune(s[0]))) + s[1:] }
