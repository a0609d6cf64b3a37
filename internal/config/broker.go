package config

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Source says where a value comes from, with the numbers that DescribeConfigs uses.
type Source int8

const (
	SourceUnknown              Source = 0
	SourceDynamicTopic         Source = 1
	SourceDynamicBroker        Source = 2 // of one broker
	SourceDynamicDefaultBroker Source = 3 // of all brokers
	SourceStaticBroker         Source = 4 // server.properties and --set
	SourceDefault              Source = 5
	SourceDynamicClientMetrics Source = 7
	SourceDynamicGroup         Source = 8
)

// A Broker is the configuration of a broker at one moment.
type Broker struct {
	static  map[string]string // canonical values, unknown keys as they were given
	cluster map[string]string // dynamic, of all brokers
	node    map[string]string // dynamic, of this broker

	// topic holds the value of each topic key for topics that do not set it.
	topic map[string]string
}

// Default is the configuration of a broker that was given no setting.
func Default() *Broker {
	b, _, err := Parse(nil, "", nil)
	if err != nil {
		panic("BUG: the default configuration is not valid: " + err.Error())
	}
	return b
}

// With returns a copy of b with other dynamic values: those of all brokers and those of
// this one. Entries that would not be accepted today (another release may have stored
// them) are left out and reported; if the rest does not fit together, b is returned.
func (b *Broker) With(cluster, node map[string]string) (*Broker, []error) {
	var refused []error
	next := &Broker{static: b.static, cluster: keepValid(cluster, &refused), node: keepValid(node, &refused)}
	next.resolveTopics()
	if err := next.checkTogether(); err != nil {
		return b, append(refused, err)
	}
	return next, refused
}

func keepValid(values map[string]string, refused *[]error) map[string]string {
	kept := make(map[string]string, len(values))
	for name, value := range values {
		k, ok := Lookup(ScopeBroker, name)
		if !ok || k.Old() {
			kept[name] = value // shown, never read
			continue
		}
		canon, err := k.canonical(value)
		switch {
		case err != nil:
			*refused = append(*refused, err)
		case k.Dynamic == ReadOnly:
			*refused = append(*refused, &ReadOnlyError{name})
		default:
			kept[name] = canon
		}
	}
	return kept
}

// lookup finds the value of one name, not of its family.
func (b *Broker) lookup(name string) (value string, source Source, ok bool) {
	if value, ok = b.node[name]; ok {
		return value, SourceDynamicBroker, true
	}
	if value, ok = b.cluster[name]; ok {
		return value, SourceDynamicDefaultBroker, true
	}
	if value, ok = b.static[name]; ok {
		return value, SourceStaticBroker, true
	}
	if k, found := Lookup(ScopeBroker, name); found && k.HasDefault {
		return k.Default, SourceDefault, true
	}
	return "", SourceDefault, false
}

// Get returns the text of a broker key; ok is false when it has no value.
func (b *Broker) Get(name string) (value string, ok bool) {
	value, _, ok = b.lookup(name)
	return value, ok
}

// IsSet reports whether somebody set the key: its value is not the default.
func (b *Broker) IsSet(name string) bool {
	_, source, ok := b.lookup(name)
	return ok && source != SourceDefault
}

// Bool, Int, Long, Double, String and List return a broker key's value; a key without
// value reads as false, 0, "" or nil.

func (b *Broker) Bool(name string) bool {
	return read(ScopeBroker, b.Get, name, parseBool, TypeBoolean)
}

func (b *Broker) Int(name string) int {
	return int(read(ScopeBroker, b.Get, name, parseLong, TypeInt, TypeShort))
}

func (b *Broker) Long(name string) int64 {
	return read(ScopeBroker, b.Get, name, parseLong, TypeInt, TypeShort, TypeLong)
}

// Never is the longest duration, 292 years.
const Never = time.Duration(math.MaxInt64)

// Milliseconds is a key in milliseconds as a duration. What a duration cannot hold, the largest number of
// Kafka's keys among it, is Never.
func (b *Broker) Milliseconds(name string) time.Duration {
	const limit = int64(Never / time.Millisecond)
	ms := b.Long(name)
	if ms > limit {
		return Never
	}
	return time.Duration(max(ms, -limit)) * time.Millisecond
}

func (b *Broker) Double(name string) float64 {
	return read(ScopeBroker, b.Get, name, parseDouble, TypeDouble)
}

func (b *Broker) String(name string) string {
	return read(ScopeBroker, b.Get, name, parseText, TypeString, TypeClass, TypePassword)
}

func (b *Broker) List(name string) []string {
	return read(ScopeBroker, b.Get, name, parseList, TypeList)
}

// read parses the value of a key of one of the types.
func read[T any](scope Scope, get func(string) (string, bool), name string, parse func(string) (T, error), allowed ...Type) (value T) {
	k, ok := Lookup(scope, name)
	if !ok {
		panic(fmt.Sprintf("BUG: config: no key %q", name))
	}
	if !containsType(allowed, k.Type) {
		panic(fmt.Sprintf("BUG: config: key %q read in the wrong type", name))
	}
	text, ok := get(name)
	if !ok {
		return value
	}
	value, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: config: unchecked value %q of %q", text, name))
	}
	return value
}

func containsType(types []Type, t Type) bool {
	for _, allowed := range types {
		if allowed == t {
			return true
		}
	}
	return false
}

func parseBool(s string) (bool, error)      { return s == "true", nil }
func parseLong(s string) (int64, error)     { return strconv.ParseInt(s, 10, 64) }
func parseDouble(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
func parseText(s string) (string, error)    { return s, nil }
func parseList(s string) ([]string, error)  { return SplitList(s), nil }

// A family is a setting that can be given under several names, in several units.
type member struct {
	name string
	unit int64 // what one counts in milliseconds
}

const (
	minuteMs = 60_000
	hourMs   = 60 * minuteMs
)

// families is keyed by the first name, the one that topic keys refer to.
var families = map[string][]member{
	"log.retention.ms":      {{"log.retention.ms", 1}, {"log.retention.minutes", minuteMs}, {"log.retention.hours", hourMs}},
	"log.roll.ms":           {{"log.roll.ms", 1}, {"log.roll.hours", hourMs}},
	"log.roll.jitter.ms":    {{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", hourMs}},
	"log.flush.interval.ms": {{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}},
}

// synonyms lists the names that can set the same thing as name, the strongest first.
func synonyms(name string) []string {
	if base, scoped := listenerBase(name); scoped {
		return []string{name, base}
	}
	for first, members := range families {
		for _, m := range members {
			if m.name != name || first == "log.flush.interval.ms" && name != first {
				continue
			}
			names := make([]string, len(members))
			for i, m := range members {
				names[i] = m.name
			}
			return names
		}
	}
	return []string{name}
}

// effective returns the value of a broker key that topics inherit, its family resolved.
func (b *Broker) effective(name string) (string, bool) {
	members, ok := families[name]
	if !ok {
		return b.Get(name)
	}
	for _, m := range members {
		if text, ok := b.Get(m.name); ok {
			n, _ := strconv.ParseInt(text, 10, 64)
			if n < 0 {
				n = -1 // no limit, in any unit
			} else {
				n *= m.unit
			}
			return strconv.FormatInt(n, 10), true
		}
	}
	return "", false
}

// resolveTopics fills in b.topic. It comes last when a Broker is built.
func (b *Broker) resolveTopics() {
	b.topic = make(map[string]string)
	for _, k := range Keys(ScopeTopic) {
		value, ok := k.Default, k.HasDefault
		if k.BrokerKey != "" {
			if inherited, set := b.effective(k.BrokerKey); set {
				value, ok = inherited, true
			}
		}
		if ok {
			b.topic[k.Name] = value
		}
	}
}

// InternalTopicFactor is the replication factor or min.insync.replicas of an internal
// topic: what the key was set to, else its default but not more than there are brokers.
// (Kafka insists on three brokers until the key is set.)
func (b *Broker) InternalTopicFactor(name string, brokers int) int {
	if b.IsSet(name) {
		return b.Int(name)
	}
	return min(b.Int(name), max(brokers, 1))
}
