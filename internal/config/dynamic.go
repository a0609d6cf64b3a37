package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A ReadOnlyError names a broker key that cannot be changed while the broker runs.
type ReadOnlyError struct{ Key string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%s cannot be changed while the broker runs: set it in server.properties", e.Key)
}

// A PerBrokerError names a broker key that cannot be set for all brokers at once, or
// only with the name of a listener in front.
type PerBrokerError struct {
	Key  string
	Want string
}

func (e *PerBrokerError) Error() string { return fmt.Sprintf("%s: want %s", e.Key, e.Want) }

// ValidateDynamic checks the dynamic values of one broker (node) or of all: *ValueError,
// *ReadOnlyError or *PerBrokerError. As in Kafka, keys that nobody knows pass: plug-ins may.
func (b *Broker) ValidateDynamic(values map[string]string, node bool) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		k, ok := Lookup(ScopeBroker, name)
		if !ok || k.Old() {
			continue
		}
		if err := validateDynamicKey(k, name, node); err != nil {
			return err
		}
		if err := k.checkNewOfBroker(values[name]); err != nil {
			return err
		}
		if err := b.checkPool(name, values[name]); err != nil {
			return err
		}
	}
	next := &Broker{static: b.static, cluster: b.cluster, node: values}
	if !node {
		next.cluster, next.node = values, b.node
	}
	next.resolveTopics()
	return next.checkTogether()
}

// pools are the sizes of thread pools.
var pools = []string{"num.io.threads", "num.network.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads", "log.cleaner.threads"}

// checkPool refuses to change the size of a thread pool by more than a factor of two.
func (b *Broker) checkPool(name, value string) error {
	if !slices.Contains(pools, name) {
		return nil
	}
	n, _ := parseWhole(value, 32)
	size := int(n)
	if now := b.Int(name); size != now && (size < max(now/2, 1) || size > 2*now) {
		return &ValueError{Key: name, Value: value, Want: fmt.Sprintf("%d to %d, from half to twice the present %d", max(now/2, 1), 2*now, now)}
	}
	return nil
}

// clusterListenerKeys are the listener keys that may be set for all brokers.
var clusterListenerKeys = []string{"max.connections", "max.connection.creation.rate", "num.network.threads"}

func validateDynamicKey(k *Key, name string, node bool) error {
	_, scoped := listenerBase(name)
	switch {
	case k.Dynamic == ReadOnly && !scoped:
		return &ReadOnlyError{name}
	case !scoped && strings.HasPrefix(name, "ssl."):
		return &PerBrokerError{name, "the prefix listener.name.NAME. for a change while the broker runs"}
	case node:
		return nil
	case k.Dynamic == PerBroker, scoped && !slices.Contains(clusterListenerKeys, k.Name):
		return &PerBrokerError{name, "the id of one broker, not all of them"}
	}
	return nil
}

// ListDefault is the value from which appending to or subtracting from a list key
// starts when the resource has none of its own. ok is false when the scope has no such
// list key.
func (b *Broker) ListDefault(scope Scope, name string) (value string, ok bool) {
	k, found := Lookup(scope, name)
	if !found || k.Type != TypeList {
		return "", false
	}
	switch scope {
	case ScopeTopic:
		value, _ = b.Topic(nil).Get(name)
	case ScopeBroker:
		value = b.static[name]
		if _, set := b.static[name]; !set && k.HasDefault {
			value = k.Default
		}
	default:
		value = k.Default
	}
	return value, true
}
