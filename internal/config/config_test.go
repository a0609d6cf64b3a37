package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, text string, overrides ...string) *Broker {
	t.Helper()
	b, _, err := Parse(strings.NewReader(text), "server.properties", overrides)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTable(t *testing.T) {
	for _, scope := range scopes {
		for _, k := range Keys(scope) {
			if k.Type == TypeUnknown {
				t.Errorf("%s: no type", k.Name)
			}
			if k.HasDefault {
				canon, err := k.canonical(k.Default)
				if err != nil || canon != k.Default {
					t.Errorf("default of %s: got %q, %v, want %q", k.Name, canon, err, k.Default)
				}
			}
			if k.BrokerKey != "" {
				if _, ok := Lookup(ScopeBroker, k.BrokerKey); !ok {
					t.Errorf("%s: no broker key %s", k.Name, k.BrokerKey)
				}
			}
		}
	}
	for columns := range rows(docsText, 2) {
		_, broker := Lookup(ScopeBroker, columns[0])
		_, topic := Lookup(ScopeTopic, columns[0])
		if !broker && !topic {
			t.Errorf("docs.tsv: no key %s", columns[0])
		}
	}
}

func TestCanonical(t *testing.T) {
	f := func(scope Scope, name, value, want string) {
		t.Helper()
		k, ok := Lookup(scope, name)
		if !ok {
			t.Fatalf("no key %s", name)
		}
		got, err := k.canonical(value)
		if want == "" {
			var wrong *ValueError
			if !errors.As(err, &wrong) {
				t.Errorf("%s=%s: got %q, want an error", name, value, got)
			}
			return
		}
		if err != nil || got != want {
			t.Errorf("%s=%s: got %q, %v, want %q", name, value, got, err, want)
		}
	}
	f(ScopeTopic, "retention.ms", " 0100 ", "100")
	f(ScopeTopic, "retention.ms", "-1", "-1")
	f(ScopeTopic, "retention.ms", "-2", "")
	f(ScopeTopic, "retention.ms", "abc", "")
	f(ScopeTopic, "retention.ms", "", "")
	f(ScopeTopic, "retention.ms", "9223372036854775807", "9223372036854775807")
	f(ScopeTopic, "retention.ms", "9223372036854775808", "")
	f(ScopeTopic, "segment.ms", "0", "")
	f(ScopeTopic, "segment.bytes", "1048575", "")
	f(ScopeTopic, "segment.bytes", "1048576", "1048576")
	f(ScopeTopic, "segment.bytes", "2147483648", "")
	f(ScopeTopic, "compression.gzip.level", "-1", "-1")
	f(ScopeTopic, "compression.gzip.level", "0", "")
	f(ScopeTopic, "compression.zstd.level", "23", "")
	f(ScopeTopic, "cleanup.policy", "compact , delete", "compact,delete")
	f(ScopeTopic, "cleanup.policy", "squeeze", "")
	f(ScopeTopic, "compression.type", "brotli", "")
	f(ScopeTopic, "min.cleanable.dirty.ratio", "1", "1.0")
	f(ScopeTopic, "min.cleanable.dirty.ratio", "1e-4", "1.0E-4")
	f(ScopeTopic, "min.cleanable.dirty.ratio", "1.1", "")
	f(ScopeTopic, "min.cleanable.dirty.ratio", "NaN", "")
	f(ScopeTopic, "preallocate", "TRUE", "true")
	f(ScopeTopic, "preallocate", "yes", "")
	f(ScopeTopic, "leader.replication.throttled.replicas", "*", "*")
	f(ScopeTopic, "leader.replication.throttled.replicas", "0:1,1:2", "0:1,1:2")
	f(ScopeTopic, "leader.replication.throttled.replicas", "0", "")
	f(ScopeBroker, "offsets.topic.replication.factor", "32768", "")
	f(ScopeBroker, "log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", "1.7976931348623157E308")
	f(ScopeBroker, "log.cleaner.io.max.bytes.per.second", "10000000", "1.0E7")
	f(ScopeBroker, "group.consumer.migration.policy", "Upgrade", "Upgrade")
	f(ScopeBroker, "listener.name.internal.ssl.client.auth", "maybe", "")
	f(ScopeBroker, "listener.name.internal.scram-sha-256.sasl.jaas.config", "x y;", "x y;")
}

func TestParseErrors(t *testing.T) {
	f := func(text, want string, overrides ...string) {
		t.Helper()
		_, _, err := Parse(strings.NewReader(text), "server.properties", overrides)
		if err == nil || err.Error() != want {
			t.Errorf("%q %q:\ngot  %v\nwant %s", text, overrides, err, want)
		}
	}
	f("# first\n\nnum.partitions=0", "server.properties:3: num.partitions=0: want a whole number, at least 1")
	f("compression.type=brotli", "server.properties:1: compression.type=brotli: want one of uncompressed, zstd, lz4, snappy, gzip, producer")
	f("log.cleanup.policy=shrink", "server.properties:1: log.cleanup.policy=shrink: want a list out of compact, delete")
	f("num.io.threads=many\nnum.partitions=x", "server.properties:1: num.io.threads=many: want a whole number, at least 1\nserver.properties:2: num.partitions=x: want a whole number, at least 1")
	f("a=\\u12", `server.properties: line 1: "\\u12": \u needs four hexadecimal digits`)
	f("", "--set: log.retention.hours=week: want a whole number, -2147483648 to 2147483647", "log.retention.hours=week")
	f("", "--set num.partitions: want key=value", "num.partitions")
	f("log.retention.ms=0", "log.retention.ms=0: want -1 (no limit, as all below) or at least 1")
	f("log.retention.minutes=0", "log.retention.minutes=0: want -1 (no limit, as all below) or at least 1")
	f("log.roll.ms=0", "log.roll.ms=0: want at least 1")
	f("node.id=1\nbroker.id=2", "node.id=1 and broker.id=2: want the same number; one of them is enough")
	f("process.roles=controller", "process.roles=controller: gregor serves brokers; want broker, or broker,controller")
	f("log.dirs=/a,,/b", "log.dirs is empty: want at least one directory, and no empty item")
	f("log.cleaner.threads=128", "log.cleaner.dedupe.buffer.size=134217728: want more than 1 MiB for each of log.cleaner.threads, which is 128")
	f("log.cleaner.io.buffer.load.factor=0", "log.cleaner.io.buffer.load.factor=0.0: want above 0, at most 1")
	f("log.cleaner.min.compaction.lag.ms=10\nlog.cleaner.max.compaction.lag.ms=5", "min.compaction.lag.ms=10: want at most max.compaction.lag.ms, which is 5")
	f("log.dirs=/a,/b\ncordoned.log.dirs=/b,/c", "cordoned.log.dirs=/c: want directories of log.dirs (/a, /b), or * for all")
	f("max.connections.per.ip.overrides=a:1,b", "max.connections.per.ip.overrides=b: want host:count, with a count of at least 0")
	f("max.connections.per.ip.overrides=a:-1", "max.connections.per.ip.overrides=a:-1: want host:count, with a count of at least 0")
	f("max.connections.per.ip=0", "max.connections.per.ip=0: want at least 1 unless max.connections.per.ip.overrides names hosts")
	f("offsets.commit.required.acks=1", "offsets.commit.required.acks=1: gregor acknowledges offsets when all in-sync replicas have them; want -1, or leave it out")
	f("ssl.key.password=a\nssl.client.auth=b", "server.properties:2: ssl.client.auth=b: want one of required, requested, none")
}

func TestConnectionOverrides(t *testing.T) {
	f := func(text string, want map[string]int) {
		t.Helper()
		got := mustParse(t, "max.connections.per.ip.overrides="+text).ConnectionOverrides()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
	f("", map[string]int{})
	f("localhost:7, 10.0.0.1:0,::1:3,[fe80::1]:4,", map[string]int{"localhost": 7, "10.0.0.1": 0, "::1": 3, "fe80::1": 4})
}

func TestCordonedDirs(t *testing.T) {
	f := func(dirs, cordoned string, want ...string) {
		t.Helper()
		b, _, err := Parse(strings.NewReader("log.dirs="+dirs+"\ncordoned.log.dirs="+cordoned), "server.properties", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.CordonedDirs(); !slices.Equal(got, want) {
			t.Errorf("%q of %q: got %q, want %q", cordoned, dirs, got, want)
		}
	}
	here, err := filepath.Abs("logs")
	if err != nil {
		t.Fatal(err)
	}
	f("/a,/b", "")
	f("/a,/b,/c", "/c,/a/", "/a", "/c")
	f("/a,/b", "*", "/a", "/b")
	f("logs,/b", here, "logs")
	f(here, "./logs", here)
}

func TestParseWarnings(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, got, err := Parse(strings.NewReader(text), "server.properties", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Warnings(want), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	f("num.partitions=3")
	f("num.partition=3\nmy.own.thing=1\nLOG_DIRS=/x", "unknown configuration keys, ignored: LOG_DIRS (did you mean log.dirs?), my.own.thing, num.partition (did you mean num.partitions?)")
	f("num.io.threads=4\nlistener.name.plaintext.ssl.client.auth=none", "keys of Kafka that gregor does not use yet: listener.name.plaintext.ssl.client.auth, num.io.threads")
	f("zookeeper.connect=localhost:2181\nlog.message.format.version=2.8\ninter.broker.protocol.version=3.9", "keys of older Kafka releases, ignored: inter.broker.protocol.version, zookeeper.connect")
}

func TestPrecedence(t *testing.T) {
	b := mustParse(t, "num.partitions=2\nmessage.max.bytes=100\nnum.partitions=3", "num.partitions=4")
	if got := b.Int("num.partitions"); got != 4 {
		t.Errorf("num.partitions = %d, want 4 from --set", got)
	}
	b, refused := b.With(map[string]string{"message.max.bytes": "200"}, nil)
	if got := b.Int("message.max.bytes"); got != 200 || len(refused) > 0 {
		t.Errorf("message.max.bytes = %d, %v, want 200 of the cluster", got, refused)
	}
	if got := b.Topic(nil).Int("max.message.bytes"); got != 200 {
		t.Errorf("max.message.bytes = %d, want 200 of the cluster", got)
	}
	b, _ = b.With(map[string]string{"message.max.bytes": "200"}, map[string]string{"message.max.bytes": "300"})
	if got := b.Topic(nil).Int("max.message.bytes"); got != 300 {
		t.Errorf("max.message.bytes = %d, want 300 of the node", got)
	}
	if got := b.Topic(map[string]string{"max.message.bytes": "400"}).Int("max.message.bytes"); got != 400 {
		t.Errorf("max.message.bytes = %d, want 400 of the topic", got)
	}
	_, refused = b.With(map[string]string{"message.max.bytes": "x", "num.partitions": "9", "plugin.key": "y"}, nil)
	if len(refused) != 2 {
		t.Errorf("refused %v, want message.max.bytes and num.partitions", refused)
	}
}

func TestRetentionFamily(t *testing.T) {
	f := func(text string, want int64) {
		t.Helper()
		if got := mustParse(t, text).Topic(nil).Long("retention.ms"); got != want {
			t.Errorf("%q: retention.ms = %d, want %d", text, got, want)
		}
	}
	f("", 7*24*hourMs)
	f("log.retention.hours=2", 2*hourMs)
	f("log.retention.hours=2\nlog.retention.minutes=3", 3*minuteMs)
	f("log.retention.hours=2\nlog.retention.minutes=3\nlog.retention.ms=4", 4)
	f("log.retention.hours=-1", -1)
	f("log.retention.hours=-2", -1) // Kafka starts, and keeps for ever
	f("log.retention.ms=-9223372036854775808", -1)
	f("log.retention.ms=-1\nlog.retention.hours=3", -1)
	topic := mustParse(t, "log.roll.hours=2\nlog.roll.jitter.hours=1\nlog.flush.scheduler.interval.ms=77").Topic(nil)
	if ms, jitter, flush := topic.Long("segment.ms"), topic.Long("segment.jitter.ms"), topic.Long("flush.ms"); ms != 2*hourMs || jitter != hourMs || flush != 77 {
		t.Errorf("segment.ms, segment.jitter.ms, flush.ms = %d, %d, %d, want 2 h, 1 h, 77", ms, jitter, flush)
	}
}

func TestValidateTopic(t *testing.T) {
	f := func(want string, pairs ...string) {
		t.Helper()
		overrides := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			overrides[pairs[i]] = pairs[i+1]
		}
		err := ValidateTopic(overrides)
		if got := errorText(err); got != want {
			t.Errorf("%v: got %q, want %q", pairs, got, want)
		}
	}
	f("")
	f("", "retention.ms", "-1", "cleanup.policy", "compact,delete")
	f("", "cleanup.policy", "compact,compact")
	f("cleanup.policy=compact,: want a list out of compact, delete", "cleanup.policy", "compact,")
	f("", "gregor.compaction.strategy", "header", "gregor.compaction.strategy.header", "version")
	f("gregor.compaction.strategy=header: want the name of the header in gregor.compaction.strategy.header", "gregor.compaction.strategy", "header")
	f("gregor.compaction.strategy=first: want one of offset, timestamp, header", "gregor.compaction.strategy", "first")
	f("", "retention.bytes", "10", "segment.bytes", "1048576") // KAFKA-4092, KAFKA-4788
	f("", "message.format.version", "2.8", "message.downconversion.enable", "false")
	f("message.format.version=new: want a release of Kafka, such as 0.9.0, 0.10.2 or 2.8-IV1", "message.format.version", "new")
	f("segment.ms=0: want a whole number, at least 1", "segment.ms", "0")          // KAFKA-6637
	f("retention.ms=abc: want a whole number, at least -1", "retention.ms", "abc") // KAFKA-7781
	f("retention.ms=-2: want a whole number, at least -1", "retention.ms", "-2")   // KAFKA-7781
	f("unknown configuration key retention.mss (did you mean retention.ms?)", "retention.mss", "1")
	f("unknown configuration key something.else.entirely", "something.else.entirely", "1")
	f("min.compaction.lag.ms=10: want at most max.compaction.lag.ms, which is 5", "min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5")
	f("remote.storage.enable=true: gregor has no tiered storage; want false", "remote.storage.enable", "true")
	f("", "local.retention.ms", "20", "retention.ms", "10") // means nothing without tiered storage
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestValidateDynamic(t *testing.T) {
	b := Default()
	f := func(name, value string, node bool, want error) {
		t.Helper()
		got := b.ValidateDynamic(map[string]string{name: value}, node)
		if diff := cmp.Diff(errorText(want), errorText(got)); diff != "" {
			t.Errorf("%s=%s: %s", name, value, diff)
		}
	}
	f("log.retention.ms", "1000", false, nil)
	f("log.retention.ms", "abc", true, &ValueError{Key: "log.retention.ms", Value: "abc", Want: "a whole number"})
	f("log.retention.ms", "0", true, &ValueError{Key: "log.retention.ms", Value: "0", Want: "-1 (no limit, as all below) or at least 1"})
	f("num.partitions", "3", true, &ReadOnlyError{"num.partitions"})
	f("listeners", "PLAINTEXT://:1", false, &PerBrokerError{"listeners", "the id of one broker, not all of them"})
	f("listeners", "PLAINTEXT://:1", true, nil)
	f("listeners", "", true, &ValueError{Key: "listeners", Value: "", Want: "a value that is not empty"})
	f("metric.reporters", "", true, nil)
	f("metric.reporters", "a,", true, &ValueError{Key: "metric.reporters", Value: "a,", Want: "a list without empty items"})
	f("log.cleanup.policy", "compact,compact", false, &ValueError{Key: "log.cleanup.policy", Value: "compact,compact", Want: "a list without an item twice"})
	f("num.io.threads", " +16", true, nil)
	f("ssl.keystore.type", "PEM", true, &PerBrokerError{"ssl.keystore.type", "the prefix listener.name.NAME. for a change while the broker runs"})
	f("listener.name.internal.ssl.keystore.type", "PEM", true, nil)
	f("listener.name.internal.ssl.keystore.type", "PEM", false, &PerBrokerError{"listener.name.internal.ssl.keystore.type", "the id of one broker, not all of them"})
	f("max.connections", "7", false, nil)
	f("num.io.threads", "16", true, nil)
	f("num.io.threads", "17", true, &ValueError{Key: "num.io.threads", Value: "17", Want: "4 to 16, from half to twice the present 8"})
	f("log.cleaner.threads", "0", true, &ValueError{Key: "log.cleaner.threads", Value: "0", Want: "1 to 2, from half to twice the present 1"})
	f("a.plugin.key", "x", false, nil)
}

func TestInternalTopicFactor(t *testing.T) {
	const key = "offsets.topic.replication.factor"
	if got := Default().InternalTopicFactor(key, 1); got != 1 {
		t.Errorf("one broker: %d, want 1", got)
	}
	if got := Default().InternalTopicFactor(key, 5); got != 3 {
		t.Errorf("five brokers: %d, want 3", got)
	}
	if got := mustParse(t, key+"=2").InternalTopicFactor(key, 1); got != 2 {
		t.Errorf("set to 2: %d, want 2", got)
	}
}

func TestNodeID(t *testing.T) {
	f := func(text string, wantNode, wantBroker int) {
		t.Helper()
		b := mustParse(t, text)
		if node, broker := b.Int("node.id"), b.Int("broker.id"); node != wantNode || broker != wantBroker {
			t.Errorf("%q: node.id, broker.id = %d, %d, want %d, %d", text, node, broker, wantNode, wantBroker)
		}
	}
	f("", 0, -1)
	f("node.id=7", 7, 7)
	f("broker.id=5", 5, 5)
	f("broker.id=-1", 0, -1)
	f("broker.id=5\nnode.id=5", 5, 5)
}

func TestWithNodeID(t *testing.T) {
	for _, text := range []string{"", "broker.id=-1", "node.id=7"} {
		before := mustParse(t, text)
		b := before.WithNodeID(7)
		for _, e := range b.Describe() {
			if (e.Name == "node.id" || e.Name == "broker.id") && (e.Value == nil || *e.Value != "7" || e.Source != SourceStaticBroker) {
				t.Errorf("%q: got %+v, want 7 of server.properties", text, e)
			}
		}
		if text == "" && before.IsSet("node.id") {
			t.Error("the configuration it was made from changed")
		}
	}
}

func TestListDefault(t *testing.T) {
	b := mustParse(t, "log.cleanup.policy=compact")
	if got, ok := b.ListDefault(ScopeTopic, "cleanup.policy"); got != "compact" || !ok {
		t.Errorf("cleanup.policy: %q, %v, want compact", got, ok)
	}
	if _, ok := b.ListDefault(ScopeTopic, "retention.ms"); ok {
		t.Error("retention.ms is no list")
	}
}
