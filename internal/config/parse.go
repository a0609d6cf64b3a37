package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/properties"
)

// Warnings are sentences for whoever started the broker, one for each kind of key that
// has no effect.
type Warnings []string

// propertiesSizeMax bounds what Parse reads.
const propertiesSizeMax = 16 << 20

// A setting is one key as it was given.
type setting struct {
	name, value, where string
}

// Parse reads server.properties (nil: nothing to read; source names it in errors) and
// overrides of the form key=value, which win. The error names the place, the key, its
// value and what is allowed.
func Parse(text io.Reader, source string, overrides []string) (*Broker, Warnings, error) {
	settings, err := readSettings(text, source, overrides)
	if err != nil {
		return nil, nil, err
	}
	b := &Broker{static: make(map[string]string)}
	var problems []error
	var without noEffect
	for _, s := range settings {
		canon, err := without.check(s)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		b.static[s.name] = canon
	}
	b.copyNodeID()
	b.resolveTopics()
	if len(problems) == 0 {
		problems = append(problems, b.checkTogether(), b.checkStatic())
	}
	return b, without.warnings(), errors.Join(problems...)
}

func readSettings(text io.Reader, source string, overrides []string) ([]setting, error) {
	var settings []setting
	if text != nil {
		data, err := io.ReadAll(io.LimitReader(text, propertiesSizeMax+1))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		if len(data) > propertiesSizeMax {
			return nil, fmt.Errorf("%s: larger than %d bytes", source, propertiesSizeMax)
		}
		for p, err := range properties.Parse(data) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source, err)
			}
			settings = append(settings, setting{p.Key, p.Value, fmt.Sprintf("%s:%d", source, p.Line)})
		}
	}
	for _, o := range overrides {
		name, value, ok := strings.Cut(o, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("--set %s: want key=value", o)
		}
		settings = append(settings, setting{name, strings.TrimSpace(value), "--set"})
	}
	return lastOfEach(settings), nil
}

// lastOfEach drops the settings that a later one overrides, and orders by name.
func lastOfEach(settings []setting) []setting {
	slices.Reverse(settings)
	slices.SortStableFunc(settings, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(settings, func(a, b setting) bool { return a.name == b.name })
}

// noEffect collects, while settings are checked, the keys that will have no effect.
type noEffect struct {
	unknown, unused, old []string
}

// check returns the canonical value. Keys without a rule keep what they were given.
func (n *noEffect) check(s setting) (string, error) {
	k, ok := Lookup(ScopeBroker, s.name)
	switch {
	case !ok:
		n.unknown = append(n.unknown, s.name)
		return s.value, nil
	case k.Old():
		n.old = append(n.old, s.name)
		return s.value, nil
	case k.Doc == "":
		n.unused = append(n.unused, s.name)
	}
	canon, err := k.canonical(s.value)
	var wrong *ValueError
	if errors.As(err, &wrong) {
		wrong.Key, wrong.Where = s.name, s.where
	}
	return canon, err
}

func (n *noEffect) warnings() Warnings {
	var w Warnings
	if len(n.unknown) > 0 {
		for i, name := range n.unknown {
			if near, ok := Nearest(ScopeBroker, name); ok {
				n.unknown[i] = fmt.Sprintf("%s (did you mean %s?)", name, near)
			}
		}
		w = append(w, "unknown configuration keys, ignored: "+strings.Join(n.unknown, ", "))
	}
	if len(n.unused) > 0 {
		w = append(w, "keys of Kafka that gregor does not use yet: "+strings.Join(n.unused, ", "))
	}
	if len(n.old) > 0 {
		w = append(w, "keys of older Kafka releases, ignored: "+strings.Join(n.old, ", "))
	}
	return w
}

// copyNodeID makes node.id and broker.id each the default of the other.
func (b *Broker) copyNodeID() {
	node, hasNode := b.static["node.id"]
	broker, hasBroker := b.static["broker.id"]
	switch {
	case hasNode && !hasBroker:
		b.static["broker.id"] = node
	case hasBroker && !hasNode && !strings.HasPrefix(broker, "-"):
		b.static["node.id"] = broker
	}
}

// WithNodeID returns b with the number that the log directories gave the broker, as if
// server.properties had it: Kafka does not start without.
func (b *Broker) WithNodeID(id int32) *Broker {
	next := *b
	next.static = maps.Clone(b.static)
	for _, name := range []string{"node.id", "broker.id"} {
		next.static[name] = strconv.Itoa(int(id))
	}
	return &next
}

// LogDirs is log.dirs, or log.dir.
func (b *Broker) LogDirs() []string {
	if dirs := b.List("log.dirs"); len(dirs) > 0 {
		return dirs
	}
	return b.List("log.dir")
}

const cordonedKey = "cordoned.log.dirs"

// CordonedDirs are those of LogDirs that take no new logs; the key names them in any way that
// leads there, or all by *. (KIP-1066)
func (b *Broker) CordonedDirs() []string {
	names := b.List(cordonedKey)
	return slices.DeleteFunc(slices.Clone(b.LogDirs()), func(dir string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return name == "*" || sameDir(name, dir) })
	})
}

func (b *Broker) checkCordoned() error {
	dirs := b.LogDirs()
	for _, name := range b.List(cordonedKey) {
		if name != "*" && !slices.ContainsFunc(dirs, func(dir string) bool { return sameDir(name, dir) }) {
			return &ValueError{Key: cordonedKey, Value: name, Want: "directories of log.dirs (" + strings.Join(dirs, ", ") + "), or * for all"}
		}
	}
	return nil
}

// sameDir compares paths, relative ones from the working directory.
func sameDir(a, b string) bool {
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}
