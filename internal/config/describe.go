package config

import (
	"maps"
	"slices"
)

// An Entry is one key as DescribeConfigs shows it.
type Entry struct {
	Name      string
	Value     *string // nil: no value, or a secret
	Source    Source
	Type      Type
	ReadOnly  bool
	Sensitive bool
	Doc       string
	Synonyms  []Synonym // every place that sets it, the winner first
}

// A Synonym is one place that sets a key.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// Describe lists every key of a broker by name: those of the table, then those that
// server.properties has and nobody knows (as secrets, because they could be).
func (b *Broker) Describe() []Entry {
	var entries []Entry
	for _, k := range Keys(ScopeBroker) {
		if !k.Internal || b.IsSet(k.Name) {
			entries = append(entries, b.describeKey(k.Name, k))
		}
	}
	others := make(map[string]bool)
	for _, values := range []map[string]string{b.static, b.cluster, b.node} {
		for name := range values {
			k, ok := Lookup(ScopeBroker, name)
			others[name] = !ok || k.Old() || k.Name != name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if others[name] {
			k, _ := Lookup(ScopeBroker, name)
			entries = append(entries, b.describeKey(name, k))
		}
	}
	return entries
}

// DescribeDefaults lists the keys that are set for all brokers.
func (b *Broker) DescribeDefaults() []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(b.cluster)) {
		k, _ := Lookup(ScopeBroker, name)
		e := b.describeKey(name, k)
		e.Value = shown(b.cluster[name], e.Sensitive)
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s Synonym) bool { return s.Source != SourceDynamicDefaultBroker })
		e.Source = SourceDynamicDefaultBroker
		entries = append(entries, e)
	}
	return entries
}

// describeKey describes one broker key; k is nil when nobody knows it.
func (b *Broker) describeKey(name string, k *Key) Entry {
	e := Entry{Name: name, ReadOnly: true, Sensitive: true, Source: SourceDefault}
	if k != nil {
		e.Type, e.Sensitive, e.Doc = k.Type, k.Sensitive(), k.Doc
		e.ReadOnly = k.Dynamic == ReadOnly
	}
	if value, ok := b.Get(name); ok {
		e.Value = shown(value, e.Sensitive)
	}
	e.Synonyms = b.synonymsOf(name, e.Sensitive)
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// synonymsOf lists the places that set a broker key or one of its family, by source,
// from the first that sets the key itself.
func (b *Broker) synonymsOf(name string, secret bool) []Synonym {
	var list []Synonym
	names := synonyms(name)
	add := func(values map[string]string, source Source) {
		for _, n := range names {
			if value, ok := values[n]; ok {
				list = append(list, Synonym{n, shown(value, secret), source})
			}
		}
	}
	add(b.node, SourceDynamicBroker)
	add(b.cluster, SourceDynamicDefaultBroker)
	add(b.static, SourceStaticBroker)
	for _, n := range names {
		if k, ok := Lookup(ScopeBroker, n); ok && k.HasDefault && k.Name == n {
			list = append(list, Synonym{n, shown(k.Default, secret), SourceDefault})
		}
	}
	i := slices.IndexFunc(list, func(s Synonym) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return list[i:]
}

func shown(value string, secret bool) *string {
	if secret {
		return nil
	}
	return &value
}

// Describe lists every key of a topic by name.
func (t Topic) Describe() []Entry {
	var entries []Entry
	for _, k := range Keys(ScopeTopic) {
		if !k.Internal || t.IsSet(k.Name) {
			entries = append(entries, t.describeKey(k))
		}
	}
	for _, name := range OldTopicKeys(t.overrides) {
		k, _ := Lookup(ScopeTopic, name)
		entries = append(entries, t.describeKey(k))
	}
	return entries
}

func (t Topic) describeKey(k *Key) Entry {
	e := Entry{Name: k.Name, Type: k.Type, Doc: k.Doc, Source: SourceDefault}
	if value, ok := t.Get(k.Name); ok {
		e.Value = &value
	}
	if value, ok := t.overrides[k.Name]; ok {
		e.Synonyms = append(e.Synonyms, Synonym{k.Name, &value, SourceDynamicTopic})
	}
	if k.BrokerKey != "" {
		e.Synonyms = append(e.Synonyms, t.broker.synonymsOf(k.BrokerKey, false)...)
	}
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

// DescribeGroup lists every key of a group; what the group does not set it has from the
// broker, or by default.
func (b *Broker) DescribeGroup(overrides map[string]string) []Entry {
	return b.describeSimple(ScopeGroup, overrides, SourceDynamicGroup)
}

// DescribeClientMetrics lists the keys of a client metrics subscription.
func (b *Broker) DescribeClientMetrics(overrides map[string]string) []Entry {
	return b.describeSimple(ScopeClientMetrics, overrides, SourceDynamicClientMetrics)
}

func (b *Broker) describeSimple(scope Scope, overrides map[string]string, source Source) []Entry {
	var entries []Entry
	for _, k := range Keys(scope) {
		e := Entry{Name: k.Name, Type: k.Type, Doc: k.Doc, Source: SourceDefault}
		if value, ok := overrides[k.Name]; ok {
			e.Source = source
			e.Synonyms = append(e.Synonyms, Synonym{k.Name, &value, source})
		} else if k.Internal {
			continue
		}
		if scope == ScopeGroup {
			e.Synonyms = append(e.Synonyms, b.synonymsOfGroupKey(k)...)
		}
		switch {
		case len(e.Synonyms) > 0:
			e.Value, e.Source = e.Synonyms[0].Value, e.Synonyms[0].Source
		case k.HasDefault:
			e.Value = &k.Default
		}
		entries = append(entries, e)
	}
	return entries
}

// synonymsOfGroupKey lists the broker's places for a group key: the same name with
// "group." in front, where there is one.
func (b *Broker) synonymsOfGroupKey(k *Key) []Synonym {
	name := "group." + k.Name
	if _, ok := Lookup(ScopeBroker, name); ok {
		return b.synonymsOf(name, false)
	}
	if k.HasDefault {
		return []Synonym{{k.Name, &k.Default, SourceDefault}}
	}
	return nil
}
