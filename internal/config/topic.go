package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// An UnknownKeyError names a key that the scope does not have.
type UnknownKeyError struct {
	Key     string
	Nearest string // a key that may have been meant, or ""
}

func (e *UnknownKeyError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("unknown configuration key %s", e.Key)
	}
	return fmt.Sprintf("unknown configuration key %s (did you mean %s?)", e.Key, e.Nearest)
}

// A Topic is the configuration of a topic at one moment: its own values over those of
// a broker.
type Topic struct {
	broker    *Broker
	overrides map[string]string // canonical
}

// Topic resolves a topic's configuration. Overrides that would not be accepted today
// (another release may have stored them) count as not given.
func (b *Broker) Topic(overrides map[string]string) Topic {
	t := Topic{broker: b}
	if len(overrides) == 0 {
		return t
	}
	t.overrides = make(map[string]string, len(overrides))
	for name, value := range overrides {
		k, ok := Lookup(ScopeTopic, name)
		if !ok || k.Old() {
			t.overrides[name] = value // shown, never read
		} else if canon, err := k.canonical(value); err == nil {
			t.overrides[name] = canon
		}
	}
	return t
}

// ValidateTopic checks the overrides of one topic on a broker with default settings.
func ValidateTopic(overrides map[string]string) error { return Default().ValidateTopic(overrides) }

// ValidateTopic checks the overrides of one topic: *UnknownKeyError, *ValueError, or
// an error about several keys that do not fit together. Keys of older releases pass.
func (b *Broker) ValidateTopic(overrides map[string]string) error {
	if err := validate(ScopeTopic, overrides); err != nil {
		return err
	}
	return b.Topic(overrides).checkTogether()
}

func validate(scope Scope, overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k, ok := Lookup(scope, name)
		if !ok {
			near, _ := Nearest(scope, name)
			return &UnknownKeyError{name, near}
		}
		if k.Old() {
			continue
		}
		if err := k.checkNew(overrides[name]); err != nil {
			return err
		}
	}
	return nil
}

// OldTopicKeys lists the overrides that only older Kafka releases know: they are kept
// and shown and have no effect.
func OldTopicKeys(overrides map[string]string) []string {
	var old []string
	for name := range overrides {
		if k, ok := Lookup(ScopeTopic, name); ok && k.Old() {
			old = append(old, name)
		}
	}
	slices.Sort(old)
	return old
}

// checkTogether holds the rules that need more than one key.
func (t Topic) checkTogether() error {
	if low, high := t.Long("min.compaction.lag.ms"), t.Long("max.compaction.lag.ms"); low > high {
		return fmt.Errorf("min.compaction.lag.ms=%d: want at most max.compaction.lag.ms, which is %d", low, high)
	}
	if t.String("gregor.compaction.strategy") == "header" && t.String("gregor.compaction.strategy.header") == "" {
		return errors.New("gregor.compaction.strategy=header: want the name of the header in gregor.compaction.strategy.header")
	}
	if t.Bool("remote.storage.enable") {
		return errors.New("remote.storage.enable=true: gregor has no tiered storage; want false")
	}
	return nil
}

// Get returns the text of a topic key; ok is false when it has no value.
func (t Topic) Get(name string) (value string, ok bool) {
	if value, ok = t.overrides[name]; ok {
		return value, true
	}
	value, ok = t.broker.topic[name]
	return value, ok
}

// IsSet reports whether the topic itself has a value for the key.
func (t Topic) IsSet(name string) bool {
	_, ok := t.overrides[name]
	return ok
}

// Bool, Int, Long, Double, String and List return a topic key's value; a key without
// value reads as false, 0, "" or nil.

func (t Topic) Bool(name string) bool { return read(ScopeTopic, t.Get, name, parseBool, TypeBoolean) }

func (t Topic) Int(name string) int {
	return int(read(ScopeTopic, t.Get, name, parseLong, TypeInt, TypeShort))
}

func (t Topic) Long(name string) int64 {
	return read(ScopeTopic, t.Get, name, parseLong, TypeInt, TypeShort, TypeLong)
}

func (t Topic) Double(name string) float64 {
	return read(ScopeTopic, t.Get, name, parseDouble, TypeDouble)
}

func (t Topic) String(name string) string {
	return read(ScopeTopic, t.Get, name, parseText, TypeString, TypeClass)
}

func (t Topic) List(name string) []string {
	return read(ScopeTopic, t.Get, name, parseList, TypeList)
}
