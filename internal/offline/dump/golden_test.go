package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/vfs"
)

type jsonRecord map[string]any

func (r jsonRecord) id() string {
	return fmt.Sprintf("%v-%v %v", r["topic"], r["partition"], r["offset"])
}

func readJSON(t *testing.T, r io.Reader) (list []jsonRecord) {
	t.Helper()
	for d := json.NewDecoder(r); ; {
		var j jsonRecord
		err := d.Decode(&j)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, j)
	}
}

// What Kafka's consumer reads from a directory is what dump shows as JSON, in the same order,
// besides control records and the metadata log.
func TestDumpJSONIsWhatAConsumerReads(t *testing.T) {
	f := func(d golden.Dir, behindDamage ...string) {
		t.Run(d.String(), func(t *testing.T) {
			fsys, _ := offlinetest.Unpack(t, d.Set)
			var out bytes.Buffer
			err := Files(t.Context(), &out, []string{d.Name}, Options{FS: fsys, JSON: true})
			if damaged := len(behindDamage) > 0; err != nil && !damaged || !errors.Is(err, ErrDamaged) && damaged {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(readJSON(t, &out), func(r jsonRecord) bool {
				return r["control"] != nil || r["topic"] == "__cluster_metadata" || slices.Contains(behindDamage, r.id())
			})
			want := readJSON(t, bytes.NewReader(d.RecordLines(t)))
			if len(got) != len(want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("record %d:\n got %v\nwant %v", i, got[i], want[i])
				}
			}
		})
	}
	for _, d := range golden.Dirs() {
		switch {
		case !d.Expected:
		case d.Set == "kafka-4.4.0-torn": // Kafka's recovery cuts the good batches behind a bad one
			f(d, "load-txn-0 380", "load-txn-0 381")
		default:
			f(d)
		}
	}
}

// Text is that of kafka-dump-log, to the byte.
func TestDumpTextIsThatOfKafka(t *testing.T) {
	for _, set := range []string{"kafka-0.8.2.2", "kafka-0.10.2.2", "kafka-1.1.1-mixed", "kafka-4.4.0-kraft"} {
		t.Run(set, func(t *testing.T) {
			fsys, _ := offlinetest.Unpack(t, set)
			want := golden.File(t, set+".dump.gz")
			var files []string
			for line := range bytes.Lines(want) {
				if path, ok := bytes.CutPrefix(line, []byte("Dumping ")); ok {
					files = append(files, string(bytes.TrimSpace(path)))
				}
			}
			var out bytes.Buffer
			if err := Files(t.Context(), &out, files, Options{FS: fsys, PrintDataLog: true}); err != nil {
				t.Fatal(err)
			}
			compareLines(t, out.Bytes(), want)
		})
	}
}

func compareLines(t *testing.T, got, want []byte) {
	t.Helper()
	g, w := bufio.NewScanner(bytes.NewReader(got)), bufio.NewScanner(bytes.NewReader(want))
	g.Buffer(nil, 1<<20)
	w.Buffer(nil, 1<<20)
	for line := 1; ; line++ {
		more, wanted := g.Scan(), w.Scan()
		if !more && !wanted {
			return
		}
		if g.Text() != w.Text() || more != wanted {
			t.Fatalf("line %d:\n got %s\nwant %s", line, g.Text(), w.Text())
		}
	}
}

// All that Kafka keeps in a log directory can be shown.
func TestDumpShowsEveryFile(t *testing.T) {
	for set, dirs := range offlinetest.CleanDirs {
		t.Run(set, func(t *testing.T) {
			fsys, _ := offlinetest.Unpack(t, set)
			var out bytes.Buffer
			if err := Files(t.Context(), &out, dirs, Options{FS: fsys, PrintDataLog: true}); err != nil {
				t.Fatal(err)
			}
			for _, path := range filesOf(t, fsys, dirs) {
				if kind, _ := files.Classify(path); kind != files.Running && !strings.Contains(out.String(), "Dumping "+path+"\n") {
					t.Errorf("%s is not shown", path)
				}
			}
			if strings.Contains(out.String(), "unknown kind") {
				t.Error("a file of an unknown kind")
			}
		})
	}
}

// filesOf returns the files in log directories and in their partitions.
func filesOf(t *testing.T, fsys vfs.FS, dirs []string) (list []string) {
	t.Helper()
	for _, dir := range dirs {
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.IsDir() {
				list = append(list, filesOf(t, fsys, []string{path})...)
			} else {
				list = append(list, path)
			}
		}
	}
	return list
}
