// Command gen turns the field tables of records.txt into Go structs and their codecs:
//
//	go run ./gen records.txt records_gen.go
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: gen TABLES OUTPUT")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	messages, err := parse(string(text))
	if err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	source, err := format.Source(generate(messages))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[2], source, 0o644); err != nil {
		log.Fatal(err)
	}
}

// A message is a record with its own key, or a control record without one.
type message struct {
	name       string
	kind       string // "metadata" or "data"
	key        string
	maxVersion int
	root       *structure
}

type structure struct {
	name   string
	fields []*field
}

type field struct {
	name     string
	typ      string // schema type without "[]"
	array    bool
	min      int // first version that has the field
	tag      int // -1: not tagged
	nullable bool
	def      string // default in the table, or ""
	sub      *structure
}

func parse(text string) ([]*message, error) {
	var messages []*message
	var stack []*structure // stack[i] takes the fields indented by i+1 steps
	used := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		if depth == 0 {
			m, err := parseMessage(words)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			messages = append(messages, m)
			stack = []*structure{m.root}
			used[m.name] = true
			continue
		}
		m := messages[len(messages)-1]
		if words[0] == "struct" { // a definition shared by arrays above it
			s := m.find(words[1])
			stack = append(stack[:depth], s)
			continue
		}
		f, err := parseField(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		stack = stack[:depth]
		stack[depth-1].fields = append(stack[depth-1].fields, f)
		if f.isStruct() {
			if f.sub = m.find(f.typ); f.sub == nil {
				name := f.typ
				if used[name] {
					name = m.name + name
				}
				used[name] = true
				f.sub = &structure{name: name}
			}
			stack = append(stack, f.sub)
		}
	}
	return messages, nil
}

// find returns the structure of m that the table calls name.
func (m *message) find(name string) *structure {
	var in func(s *structure) *structure
	in = func(s *structure) *structure {
		for _, f := range s.fields {
			if f.sub != nil && f.typ == name {
				return f.sub
			}
			if f.sub != nil {
				if found := in(f.sub); found != nil {
					return found
				}
			}
		}
		return nil
	}
	return in(m.root)
}

func parseMessage(words []string) (*message, error) {
	m := &message{kind: words[0], name: words[1], root: &structure{name: words[1]}}
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "key":
			m.key = value
		case "versions":
			_, last, ok := strings.Cut(value, "-")
			if !ok {
				last = value
			}
			v, err := strconv.Atoi(last)
			if err != nil {
				return nil, err
			}
			m.maxVersion = v
		case "flexible":
			if value != "0+" {
				return nil, fmt.Errorf("%s: only records that are flexible from version 0 on are known here", m.name)
			}
		}
	}
	return m, nil
}

func parseField(words []string) (*field, error) {
	f := &field{name: goName(words[1]), typ: strings.TrimPrefix(words[2], "[]"), tag: -1}
	f.array = f.typ != words[2]
	var err error
	if f.min, err = strconv.Atoi(strings.TrimSuffix(words[0], "+")); err != nil {
		return nil, err
	}
	for _, w := range words[3:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "tag":
			f.tag, err = strconv.Atoi(value)
		case "nullable":
			f.nullable = true
		case "default":
			f.def = value
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// goName spells Kafka's field names as Go does.
func goName(s string) string {
	for _, r := range [][2]string{{"Ids", "IDs"}, {"Id", "ID"}, {"Isr", "ISR"}, {"Elr", "ELR"}} {
		if rest, ok := strings.CutSuffix(s, r[0]); ok {
			return rest + r[1]
		}
	}
	return s
}

// scalars maps a schema type to its Go type and the name of its codec functions.
var scalars = map[string][2]string{
	"bool": {"bool", "Bool"}, "int8": {"int8", "Int8"}, "int16": {"int16", "Int16"}, "uint16": {"uint16", "Uint16"},
	"int32": {"int32", "Int32"}, "int64": {"int64", "Int64"}, "float64": {"float64", "Float64"},
	"uuid": {"uuid.UUID", "UUID"}, "string": {"string", "String"}, "bytes": {"[]byte", "Bytes"},
}

func (f *field) isStruct() bool { _, ok := scalars[f.typ]; return !ok }

func (f *field) goType() string {
	t := scalars[f.typ][0]
	if f.isStruct() {
		t = f.sub.name
	}
	switch {
	case f.array:
		return "[]" + t
	case f.nullable && f.typ == "string":
		return "*string"
	}
	return t
}

// zeroDefault reports whether the default is Go's zero value.
func (f *field) zeroDefault() bool {
	return f.def == "" || f.def == "0" || f.def == "false" || f.def == "null"
}

func generate(messages []*message) []byte {
	g := &generator{}
	g.p("// Code generated by gen from records.txt; DO NOT EDIT.\n\npackage metadata\n")
	g.p("import \"github.com/gregor-kafka/gregor/internal/uuid\"\n")
	g.p("// newRecord returns an empty record for an API key, with Kafka's defaults, or nil.")
	g.p("func newRecord(key int16) Record {\nswitch key {")
	for _, m := range messages {
		if m.kind == "metadata" {
			g.p("case %s: return New%s()", m.key, m.name)
		}
	}
	g.p("}\nreturn nil\n}\n")
	for _, m := range messages {
		g.message(m)
	}
	return g.Bytes()
}

type generator struct{ bytes.Buffer }

func (g *generator) p(format string, args ...any) { fmt.Fprintf(&g.Buffer, format+"\n", args...) }

func (g *generator) message(m *message) {
	if m.kind == "metadata" {
		g.p("// %s is the record with API key %s, versions 0 to %d.", m.name, m.key, m.maxVersion)
	} else {
		g.p("// %s is the value of a control record, versions 0 to %d.", m.name, m.maxVersion)
	}
	g.structure(m.root)
	g.p("// New%s returns a record with Kafka's defaults.", m.name)
	g.p("func New%s() *%s { r := new(%s); r.setDefaults(); return r }\n", m.name, m.name, m.name)
	if m.kind == "metadata" {
		g.p("// APIKey returns %s.", m.key)
		g.p("func (*%s) APIKey() int16 { return %s }\n", m.name, m.key)
	}
	g.p("// MaxVersion returns %d.", m.maxVersion)
	g.p("func (*%s) MaxVersion() int16 { return %d }\n", m.name, m.maxVersion)
	g.codecs(m.root, map[string]bool{})
}

// structure declares the Go types of s and of what it holds.
func (g *generator) structure(s *structure) {
	g.p("type %s struct {", s.name)
	seen := map[string]bool{}
	var subs []*structure
	for _, f := range s.fields {
		comment := ""
		if f.min > 0 {
			comment = fmt.Sprintf("from version %d", f.min)
		}
		if f.nullable {
			comment = strings.TrimPrefix(comment+", nil is null", ", ")
		}
		if !f.zeroDefault() {
			comment = strings.TrimPrefix(comment+", default "+f.def, ", ")
		}
		if comment != "" {
			comment = " // " + comment
		}
		g.p("%s %s%s", f.name, f.goType(), comment)
		if f.sub != nil && !seen[f.sub.name] {
			seen[f.sub.name] = true
			subs = append(subs, f.sub)
		}
	}
	g.p("}\n")
	for _, sub := range subs {
		g.p("// %s is an element of %s.", sub.name, s.name)
		g.structure(sub)
	}
}

func (g *generator) codecs(s *structure, done map[string]bool) {
	if done[s.name] {
		return
	}
	done[s.name] = true
	g.p("func (r *%s) setDefaults() {\n*r = %s{", s.name, s.name)
	for _, f := range s.fields {
		if !f.zeroDefault() {
			g.p("%s: %s,", f.name, f.def)
		}
	}
	g.p("}\n}\n")
	g.appendTo(s)
	g.decode(s)
	for _, f := range s.fields {
		if f.sub != nil {
			g.codecs(f.sub, done)
		}
	}
}

// guarded writes body under a version test where the field needs one.
func (g *generator) guarded(f *field, body func()) {
	if f.min > 0 {
		g.p("if version >= %d {", f.min)
	}
	body()
	if f.min > 0 {
		g.p("}")
	}
}

func (g *generator) appendTo(s *structure) {
	g.p("func (r *%s) appendTo(b []byte, version int16) []byte {", s.name)
	for _, f := range s.fields {
		if f.tag < 0 {
			g.guarded(f, func() { g.appendValue(f, "b") })
		}
	}
	if !hasTags(s) {
		g.p("return append(b, 0) // no tagged fields\n}\n")
		return
	}
	g.p("var tags tagSection")
	for _, f := range tagged(s) {
		g.guarded(f, func() {
			g.p("if %s {", f.present())
			g.p("body := tags.begin()")
			g.appendValue(f, "body")
			g.p("tags.end(%d, body)\n}", f.tag)
		})
	}
	g.p("return tags.appendTo(b)\n}\n")
}

// present is the condition under which a tagged field is written: it differs from its default.
func (f *field) present() string {
	switch {
	case f.array && f.nullable:
		return "r." + f.name + " != nil"
	case f.array:
		return "len(r." + f.name + ") > 0"
	case f.nullable && f.typ == "string":
		return "r." + f.name + " != nil"
	case f.def == "":
		return "r." + f.name + " != 0"
	}
	return "r." + f.name + " != " + f.def
}

func (g *generator) appendValue(f *field, b string) {
	codec, v := scalars[f.typ][1], "r."+f.name
	switch {
	case f.array && f.isStruct():
		g.p("%s = appendLength(%s, len(%s), %s)", b, b, v, nilExpr(f))
		g.p("for i := range %s {\n%s = %s[i].appendTo(%s, version)\n}", v, b, v, b)
	case f.array:
		g.p("%s = appendArray(%s, %s, %t, append%s)", b, b, v, f.nullable, codec)
	case f.isStruct():
		g.p("%s = %s.appendTo(%s, version)", b, v, b)
	case f.nullable && f.typ == "string":
		g.p("%s = appendNullableString(%s, %s)", b, b, v)
	default:
		g.p("%s = append%s(%s, %s)", b, codec, b, v)
	}
}

func nilExpr(f *field) string {
	if f.nullable {
		return "r." + f.name + " == nil"
	}
	return "false"
}

func (g *generator) decode(s *structure) {
	g.p("func (r *%s) decode(d *decoder, version int16) {", s.name)
	for _, f := range s.fields {
		if f.tag < 0 {
			g.guarded(f, func() { g.decodeValue(f) })
		}
	}
	if !hasTags(s) {
		g.p("d.skipTags()\n}\n")
		return
	}
	g.p("for tag := range d.tags() {\nswitch tag {")
	for _, f := range tagged(s) {
		g.p("case %d:", f.tag)
		g.guarded(f, func() { g.decodeValue(f) })
	}
	g.p("}\n}\n}\n")
}

func (g *generator) decodeValue(f *field) {
	codec, v := scalars[f.typ][1], "r."+f.name
	decodeFunc := "(*decoder).read" + codec
	switch {
	case f.array && f.isStruct():
		g.p("%s = makeStructs[%s](d)", v, f.sub.name)
		g.p("for i := range %s {\n%s[i].setDefaults()\n%s[i].decode(d, version)\n}", v, v, v)
	case f.array:
		g.p("%s = readArray(d, %t, %s)", v, f.nullable, decodeFunc)
	case f.isStruct():
		g.p("%s.setDefaults()\n%s.decode(d, version)", v, v)
	case f.nullable && f.typ == "string":
		g.p("%s = d.readNullableString()", v)
	default:
		g.p("%s = d.read%s()", v, codec)
	}
}

func hasTags(s *structure) bool { return len(tagged(s)) > 0 }

// tagged returns the tagged fields of s in the order in which they are written.
func tagged(s *structure) []*field {
	list := slices.DeleteFunc(slices.Clone(s.fields), func(f *field) bool { return f.tag < 0 })
	slices.SortFunc(list, func(a, b *field) int { return cmp.Compare(a.tag, b.tag) })
	return list
}
