package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line writes an entry as kafka-configs --describe --all does.
func line(e Entry) string {
	synonyms := make([]string, len(e.Synonyms))
	for i, s := range e.Synonyms {
		synonyms[i] = fmt.Sprintf("%d:%s=%s", s.Source, s.Name, text(s.Value))
	}
	return fmt.Sprintf("%s=%s source=%d sensitive=%v {%s}", e.Name, text(e.Value), e.Source, e.Sensitive, strings.Join(synonyms, ", "))
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func find(entries []Entry, name string) string {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return name + " is missing"
	}
	return line(entries[i])
}

// What Apache Kafka 4.4.0 answered for these two server.properties.
const (
	fewKeys  = "node.id=1\nlog.retention.minutes=600\nmy.unknown.key=hello\nlog.flush.interval.ms=5000\nlog.roll.hours=100\nlog.cleaner.io.buffer.load.factor=0.80"
	manyKeys = "log.retention.minutes=600\nlog.retention.ms=36000000\nlog.retention.hours=10\nlog.roll.ms=360000000\nlog.roll.hours=100\nlog.roll.jitter.hours=3\nlog.roll.jitter.ms=10800000"
)

func TestDescribeBroker(t *testing.T) {
	entries := mustParse(t, fewKeys).Describe()
	f := func(want string) {
		t.Helper()
		name, _, _ := strings.Cut(want, "=")
		if diff := cmp.Diff(want, find(entries, name)); diff != "" {
			t.Error(diff)
		}
	}
	f("log.retention.ms=null source=5 sensitive=false {}")
	f("log.retention.minutes=600 source=4 sensitive=false {4:log.retention.minutes=600, 5:log.retention.hours=168}")
	f("log.retention.hours=168 source=5 sensitive=false {5:log.retention.hours=168}")
	f("log.flush.interval.ms=5000 source=4 sensitive=false {4:log.flush.interval.ms=5000, 5:log.flush.scheduler.interval.ms=9223372036854775807}")
	f("log.cleaner.io.buffer.load.factor=0.8 source=4 sensitive=false {4:log.cleaner.io.buffer.load.factor=0.8, 5:log.cleaner.io.buffer.load.factor=0.9}")
	f("log.cleaner.io.max.bytes.per.second=1.7976931348623157E308 source=5 sensitive=false {5:log.cleaner.io.max.bytes.per.second=1.7976931348623157E308}")
	f("my.unknown.key=null source=4 sensitive=true {4:my.unknown.key=null}")
	f("ssl.key.password=null source=5 sensitive=true {}")
	f("broker.id=1 source=4 sensitive=false {4:broker.id=1, 5:broker.id=-1}")
	f("log.dirs=null source=5 sensitive=false {}")
	f("principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder source=5 sensitive=false {5:principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder}")

	entries = mustParse(t, manyKeys).Describe()
	f("log.retention.ms=36000000 source=4 sensitive=false {4:log.retention.ms=36000000, 4:log.retention.minutes=600, 4:log.retention.hours=10, 5:log.retention.hours=168}")
	f("log.retention.minutes=600 source=4 sensitive=false {4:log.retention.minutes=600, 4:log.retention.hours=10, 5:log.retention.hours=168}")
	f("log.retention.hours=10 source=4 sensitive=false {4:log.retention.hours=10, 5:log.retention.hours=168}")
	f("log.roll.hours=100 source=4 sensitive=false {4:log.roll.hours=100, 5:log.roll.hours=168}")

	b, _ := mustParse(t, manyKeys).With(map[string]string{"log.retention.ms": "7"}, map[string]string{"log.retention.ms": "8"})
	entries = b.Describe()
	f("log.retention.ms=8 source=2 sensitive=false {2:log.retention.ms=8, 3:log.retention.ms=7, 4:log.retention.ms=36000000, 4:log.retention.minutes=600, 4:log.retention.hours=10, 5:log.retention.hours=168}")
	entries = b.DescribeDefaults()
	f("log.retention.ms=7 source=3 sensitive=false {3:log.retention.ms=7}")
	if len(entries) != 1 {
		t.Errorf("%d cluster entries, want 1", len(entries))
	}
}

func TestDescribeTopic(t *testing.T) {
	entries := mustParse(t, fewKeys).Topic(map[string]string{"retention.ms": "1000", "cleanup.policy": "compact,delete"}).Describe()
	f := func(want string) {
		t.Helper()
		name, _, _ := strings.Cut(want, "=")
		if diff := cmp.Diff(want, find(entries, name)); diff != "" {
			t.Error(diff)
		}
	}
	f("cleanup.policy=compact,delete source=1 sensitive=false {1:cleanup.policy=compact,delete, 5:log.cleanup.policy=delete}")
	f("retention.ms=1000 source=1 sensitive=false {1:retention.ms=1000}")
	f("segment.ms=360000000 source=5 sensitive=false {}")
	f("flush.ms=5000 source=4 sensitive=false {4:log.flush.interval.ms=5000, 5:log.flush.scheduler.interval.ms=9223372036854775807}")
	f("follower.replication.throttled.replicas= source=5 sensitive=false {}")
	f("remote.storage.enable=false source=5 sensitive=false {}")
	if got := find(entries, "internal.segment.bytes"); got != "internal.segment.bytes is missing" {
		t.Error(got)
	}
	ours := len(slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !strings.HasPrefix(e.Name, "gregor.") }))
	if got := len(entries) - ours; got != 37 {
		t.Errorf("%d entries of Kafka's, want 37", got)
	}

	entries = mustParse(t, manyKeys).Topic(map[string]string{"retention.ms": "1000"}).Describe()
	f("retention.ms=1000 source=1 sensitive=false {1:retention.ms=1000, 4:log.retention.ms=36000000, 4:log.retention.minutes=600, 4:log.retention.hours=10, 5:log.retention.hours=168}")
	f("segment.jitter.ms=10800000 source=4 sensitive=false {4:log.roll.jitter.ms=10800000, 4:log.roll.jitter.hours=3, 5:log.roll.jitter.hours=0}")
}
