package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/properties"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

func sortedLines(b []byte) []string {
	return slices.Sorted(strings.SplitSeq(string(b), "\n"))
}

func TestAppendProperty(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		line := appendProperty(nil, "key", value)
		if string(line) != "key="+want+"\n" {
			t.Errorf("%q: got %q, want %q", value, line, want)
		}
		for p, err := range properties.Parse(line) {
			if err != nil || p.Value != value {
				t.Errorf("%q: read back %q, %v", value, p.Value, err)
			}
		}
	}
	f("", "")
	f("Z29sZGVuLWxvZy1kaXJzMQ", "Z29sZGVuLWxvZy1kaXJzMQ")
	f(" a b", `\ a b`)
	f(`a:b=c#d!e\`, `a\:b\=c\#d\!e\\`)
	f("\t\n\r\fé😀\x01", `\t\n\r\f\u00E9\uD83D\uDE00\u0001`)
}

func TestMetaProperties(t *testing.T) {
	id := uuid.UUID{7: 1, 15: 7}
	f := func(text string, want MetaProperties) {
		t.Helper()
		got, err := parseMetaProperties([]byte(text))
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	f("", MetaProperties{NodeID: NoNode})
	f("version=0\nbroker.id=3", MetaProperties{NodeID: 3})
	f("broker.id: 3\ncluster.id c", MetaProperties{ClusterID: "c", NodeID: 3})
	f("version=1\nnode.id=0\ncluster.id=any\\:text", MetaProperties{Version: 1, ClusterID: "any:text"})
	f("version=1\nnode.id=5\ncluster.id=c\nbroker.id=x\ndirectory.id=AAAAAAAAAAEAAAAAAAAABw",
		MetaProperties{Version: 1, ClusterID: "c", NodeID: 5, DirectoryID: id})
}

func TestMetaPropertiesCorrupt(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		m := newFS(t)
		write(t, m, "d/"+MetaPropertyFile, text)
		_, err := ReadMetaProperties(m, "d/"+MetaPropertyFile)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "d/meta.properties: ") {
			t.Errorf("%q: got %v, want ErrCorrupt with the path and %q", text, err, want)
		}
	}
	f("version=2", "version=2 is not supported")
	f("version=1\nnode.id=1", "no cluster.id")
	f("version=1\ncluster.id=c", "no node.id")
	f("version=1\ncluster.id=c\nnode.id=-1", "node.id=-1: want a number")
	f("broker.id=1.5", "broker.id=1.5: want a number")
	f("directory.id=x", "directory.id=x")
	f(`a=\u1`, "hexadecimal")

	if _, err := ReadMetaProperties(newFS(t), "d/"+MetaPropertyFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want fs.ErrNotExist", err)
	}
}

func TestMetaPropertiesWrite(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 27, 10, 0, time.UTC)
	m := MetaProperties{Version: 1, ClusterID: "a:b", NodeID: 1, DirectoryID: uuid.UUID{7: 1, 15: 7}}
	got := appendMetaProperties(nil, m, now)
	want := "#\n#Mon Nov 30 03:27:10 UTC 2026\ncluster.id=a\\:b\nversion=1\ndirectory.id=AAAAAAAAAAEAAAAAAAAABw\nnode.id=1\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if again, err := parseMetaProperties(got); err != nil || again != m {
		t.Errorf("read back %+v, %v, want %+v", again, err, m)
	}
}

// meta.properties of Kafka 4.4.0 comes out with the same lines, the date aside.
func TestMetaPropertiesOfKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/kafka-4.4.0/" + MetaPropertyFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseMetaProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	date, err := time.Parse("#Mon Jan 02 15:04:05 MST 2006", string(bytes.Split(text, []byte("\n"))[1]))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sortedLines(text), sortedLines(appendMetaProperties(nil, m, date))); d != "" {
		t.Errorf("(-Kafka +gregor)\n%s", d)
	}
}
