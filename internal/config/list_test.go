package config

import (
	"slices"
	"testing"
)

// Each line as Kafka 4.4.0 takes it for a topic and shows it in DescribeConfigs.
func TestListOfATopic(t *testing.T) {
	f := func(key, value, want string) {
		t.Helper()
		if err := ValidateTopic(map[string]string{key: value}); err != nil {
			t.Errorf("%s=%q: refused: %v", key, value, err)
			return
		}
		if got, _ := Default().Topic(map[string]string{key: value}).Get(key); got != want {
			t.Errorf("%s=%q: got %q, want %q", key, value, got, want)
		}
	}
	f("cleanup.policy", "delete,delete", "delete")
	f("cleanup.policy", "compact, delete ,compact", "compact,delete")
	f("cleanup.policy", " delete,compact,delete\n", "delete,compact")
	f("cleanup.policy", " ", "")
	const throttled = "leader.replication.throttled.replicas"
	for _, value := range []string{"0:1,0:1", "0:1,", ",0:1", ",", ",,", "0:1,,0:1", "*", ""} {
		f(throttled, value, value)
	}
	f(throttled, " 0:1 , 1:1 ", "0:1,1:1")
	refused := func(key, value string) {
		t.Helper()
		if ValidateTopic(map[string]string{key: value}) == nil {
			t.Errorf("%s=%q is taken", key, value)
		}
	}
	refused("cleanup.policy", "delete,")
	refused("cleanup.policy", ",")
	refused("cleanup.policy", "delete,Delete")
	refused("cleanup.policy", "delete\u00a0")
	refused(throttled, "*,*")
}

// A list with an item twice is taken and the item kept once, whatever the key, in
// server.properties and from where an older release left it; a client that changes a broker's is
// refused, as by Kafka.
func TestEveryListWithAnItemTwice(t *testing.T) {
	for scope := range scopes {
		for _, k := range Keys(scopes[scope]) {
			if k.Type != TypeList || k.rule.matches != nil {
				continue
			}
			items := k.rule.oneOf
			if items == nil {
				items = []string{"a", "b"}
			}
			value := items[1] + ", " + items[0] + " ," + items[1]
			if got, err := k.canonical(value); err != nil || got != items[1]+","+items[0] {
				t.Errorf("%s=%s: got %q, %v", k.Name, value, got, err)
			}
			if err := k.checkNew(value); err != nil {
				t.Error(err)
			}
			if k.checkNewOfBroker(value) == nil {
				t.Errorf("%s=%s is taken as the dynamic value of a broker", k.Name, value)
			}
			if k.checkNew(items[0]+",") == nil {
				t.Errorf("%s=%s, is taken", k.Name, items[0])
			}
		}
	}
}

func TestListsOfServerProperties(t *testing.T) {
	b := mustParse(t, "log.dirs=/a, /b ,/a\nlog.cleanup.policy=compact,compact\nmetric.reporters=x,,y\n"+
		"listeners=PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9092")
	if got := b.LogDirs(); !slices.Equal(got, []string{"/a", "/b"}) {
		t.Errorf("log.dirs: %q", got)
	}
	if got := b.Topic(nil).List("cleanup.policy"); !slices.Equal(got, []string{"compact"}) {
		t.Errorf("cleanup.policy: %q", got)
	}
	if listeners, err := b.Listeners(); err != nil || len(listeners) != 1 {
		t.Errorf("listeners: %v, %v", listeners, err)
	}
}
