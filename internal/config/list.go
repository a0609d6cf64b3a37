package config

import (
	"slices"
	"strings"
)

// SplitList splits a list value at its commas and drops the blanks around each item.
func SplitList(value string) []string {
	value = trim(value)
	if value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i, item := range items {
		items[i] = strings.Trim(item, " \t\n\v\f\r")
	}
	return items
}

// once drops the items that are there already.
func once(items []string) []string {
	var kept []string
	for _, item := range items {
		if !slices.Contains(kept, item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// canonicalList keeps an item that is there twice once, but in lists with a syntax of their
// own.
func (k *Key) canonicalList(value string) (string, bool) {
	items := SplitList(value)
	if k.rule.matches != nil {
		canon := strings.Join(items, ",")
		return canon, k.rule.matches.MatchString(canon)
	}
	items = once(items)
	for _, item := range items {
		if k.rule.oneOf != nil && !slices.Contains(k.rule.oneOf, item) {
			return "", false
		}
	}
	return strings.Join(items, ","), true
}

// checkNew refuses a value that somebody sets today: what canonical refuses, and a list with
// an empty item, which older releases took and may have left.
func (k *Key) checkNew(value string) error {
	if _, err := k.canonical(value); err != nil {
		return err
	}
	if k.Type == TypeList && k.rule.matches == nil && slices.Contains(SplitList(value), "") {
		return &ValueError{Key: k.Name, Value: value, Want: "a list without empty items"}
	}
	return nil
}

// checkNewOfBroker is checkNew for the dynamic value of a broker, where Kafka refuses lists that
// it would mend in server.properties: with an item twice, or without any where there must be one.
func (k *Key) checkNewOfBroker(value string) error {
	if err := k.checkNew(value); err != nil {
		return err
	}
	if k.Type != TypeList {
		return nil
	}
	items := SplitList(value)
	switch {
	case len(items) == 0 && k.rule.nonEmpty:
		return &ValueError{Key: k.Name, Value: value, Want: k.want()}
	case len(once(items)) < len(items):
		return &ValueError{Key: k.Name, Value: value, Want: "a list without an item twice"}
	}
	return nil
}
