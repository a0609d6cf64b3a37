package config

import (
	"strings"
	"testing"
)

// FuzzParse: what Parse accepts can be read, described and listened on.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", fewKeys, manyKeys, "listeners=A://[::1]:0,B://:1\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
		"log.cleanup.policy=compact,delete\ncompression.gzip.level=-1", "log.retention.hours=2147483647", "log.cleaner.io.max.bytes.per.second=1e300",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, _, err := Parse(strings.NewReader(text), "f", nil)
		if err != nil {
			return
		}
		b.Describe()
		b.Topic(nil).Describe()
		if _, err := b.Listeners(); err != nil {
			t.Errorf("accepted %q: %v", text, err)
		}
		for _, k := range Keys(ScopeTopic) {
			if k.Type == TypeLong {
				b.Topic(nil).Long(k.Name)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, _, err := Parse(strings.NewReader(manyKeys), "f", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		newTable()
	}
}

func BenchmarkTopicLong(b *testing.B) {
	topic := Default().Topic(map[string]string{"segment.bytes": "1048576"})
	for b.Loop() {
		topic.Long("retention.ms")
	}
}
