// Package fieldtable reads the tables of fields from which records are generated and shown (records.txt
// of package metadata has the syntax).
package fieldtable

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NotFlexible is above every version.
const NotFlexible = 1<<15 - 1

// Scalars are the types that are not structures.
var Scalars = []string{"bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid", "string", "bytes"}

// A Record is the layout of one kind of record.
type Record struct {
	Struct
	Kind     string // the first word of its line: "metadata", "data", "coordinator-key" or "coordinator-value"
	Key      int16  // 0: none
	Max      int16  // last version
	Flexible int16  // first flexible version, or NotFlexible
}

// A Struct is a record or a part of one.
type Struct struct {
	Name   string
	Fields []*Field
}

// A Field is one of a Struct.
type Field struct {
	Name     string
	Type     string // without "[]"
	Array    bool
	Min, Max int16   // versions that have it
	Tag      int     // -1: not tagged
	Nullable int16   // first version in which it may be null, or NotFlexible
	Default  string  // in the table, or ""
	Sub      *Struct // nil: a scalar
}

// Parse returns the records of a text in order.
func Parse(text string) ([]*Record, error) {
	p := &parser{}
	for n, line := range strings.Split(text, "\n") {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return p.records, nil
}

type parser struct {
	records []*Record
	stack   []*Struct          // stack[i] takes the fields indented by i+1 steps
	structs map[string]*Struct // of the record at hand, defined or only mentioned
}

func (p *parser) line(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || words[0][0] == '#' {
		return nil
	}
	depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
	switch {
	case len(words) < 2 || depth > len(p.stack):
		return fmt.Errorf("%q has no place", line)
	case depth == 0:
		r, err := parseRecord(words)
		p.records, p.stack, p.structs = append(p.records, r), []*Struct{&r.Struct}, map[string]*Struct{}
		return err
	case words[0] == "struct": // shared by several fields
		p.stack = append(p.stack[:depth], p.named(words[1]))
		return nil
	}
	f, err := parseField(words)
	if err != nil {
		return err
	}
	p.stack = p.stack[:depth]
	p.stack[depth-1].Fields = append(p.stack[depth-1].Fields, f)
	if !slices.Contains(Scalars, f.Type) {
		f.Sub = p.named(f.Type)
		p.stack = append(p.stack, f.Sub)
	}
	return nil
}

func (p *parser) named(name string) *Struct {
	if p.structs[name] == nil {
		p.structs[name] = &Struct{Name: name}
	}
	return p.structs[name]
}

func parseRecord(words []string) (*Record, error) {
	r := &Record{Kind: words[0], Struct: Struct{Name: words[1]}, Flexible: NotFlexible}
	var err error
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "key":
			r.Key, err = parseVersion(value)
		case "versions":
			_, r.Max, err = parseVersions(value)
		case "flexible":
			if value != "none" {
				r.Flexible, _, err = parseVersions(value)
			}
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func parseField(words []string) (*Field, error) {
	if len(words) < 3 {
		return nil, fmt.Errorf("field %v: want versions, name and type", words)
	}
	f := &Field{Name: words[1], Type: strings.TrimPrefix(words[2], "[]"), Tag: -1, Nullable: NotFlexible}
	f.Array = f.Type != words[2]
	var err error
	if f.Min, f.Max, err = parseVersions(words[0]); err != nil {
		return nil, err
	}
	for _, w := range words[3:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "tag":
			f.Tag, err = strconv.Atoi(value)
		case "nullable":
			f.Nullable, _, err = parseVersions(value)
		case "default":
			f.Default = value
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
		return first, NotFlexible, err
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
