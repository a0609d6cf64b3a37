package logdir

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/topic"
)

func TestClassify(t *testing.T) {
	f := func(name string, want dirKind, wantPartition string) {
		t.Helper()
		kind, p := classify(name)
		if wantPartition == "" {
			wantPartition = topic.Partition{}.String()
		}
		if kind != want || p.String() != wantPartition {
			t.Errorf("classify(%q) = %d, %v, want %d, %s", name, kind, p, want, wantPartition)
		}
	}
	const id = ".0123456789abcdef0123456789abcdef"
	f("orders-0", liveDir, "orders-0")
	f("a-delete-0", liveDir, "a-delete-0")
	f("a.b-7", liveDir, "a.b-7")
	f("orders-0"+id+"-delete", deletedDir, "orders-0")
	f("a.b-1"+id+"-stray", strayDir, "a.b-1")
	f("orders-12"+id+"-future", futureDir, "orders-12")
	f("__cluster_metadata-0", otherDir, "")
	f("remote-log-index-cache", otherDir, "")
	for _, name := range []string{
		"lost+found", "foo", "orders-", "-0", "orders-x", "a b-0", ".snapshot", "orders-0-delete", "orders-0.-stray", "x.y-future", "..-0",
	} {
		f(name, foreignDir, "")
	}
}

func TestAsideName(t *testing.T) {
	name := asideName(random.Host("names"), topic.Partition{Topic: "orders", Partition: 3}, checkpoint.DeleteDirSuffix)
	if !regexp.MustCompile(`^orders-3\.[0-9a-f]{32}-delete$`).MatchString(name) {
		t.Errorf("got %q", name)
	}
	long := topic.Partition{Topic: strings.Repeat("x", topic.NameLengthMax), Partition: 2147483647}
	name = asideName(random.Host("names"), long, checkpoint.DeleteDirSuffix)
	if kind, p := classify(name); len(name) != 255 || kind != deletedDir || p.Partition != long.Partition {
		t.Errorf("got %q, %d characters, kind %d", name, len(name), kind)
	}
}
