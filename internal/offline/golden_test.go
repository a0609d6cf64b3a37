package offline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/vfs"
)

// unpack puts a golden set into a file system that fails on any write.
func unpack(t testing.TB, set string) (readOnly, *vfs.Mem) {
	t.Helper()
	mem := vfs.NewMem()
	golden.Unpack(t, mem, "", set)
	return readOnly{mem}, mem
}

func mustWrite(t testing.TB, mem *vfs.Mem, name string, data []byte) {
	t.Helper()
	if err := vfs.MkdirAll(mem, filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := mem.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A readOnly file system has nothing but what reading needs.
type readOnly struct{ vfs.FS }

var errWrite = errors.New("somebody writes")

func (r readOnly) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag != os.O_RDONLY {
		return nil, errWrite
	}
	f, err := r.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return readOnlyFile{f}, nil
}

func (r readOnly) Remove(string) error             { return errWrite }
func (r readOnly) Rename(string, string) error     { return errWrite }
func (r readOnly) Mkdir(string, fs.FileMode) error { return errWrite }
func (r readOnly) SyncDir(string) error            { return errWrite }
func (r readOnly) Lock(string) (io.Closer, error)  { return nil, errWrite }

type readOnlyFile struct{ vfs.File }

func (readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, errWrite }
func (readOnlyFile) Truncate(int64) error               { return errWrite }
func (readOnlyFile) Sync() error                        { return errWrite }

// cleanDirs are the log directories that Kafka closed, by set.
var cleanDirs = func() map[string][]string {
	sets := map[string][]string{}
	for _, d := range golden.Dirs() {
		if d.Clean {
			sets[d.Set] = append(sets[d.Set], d.Name)
		}
	}
	return sets
}()

func mustCheck(t testing.TB, fsys vfs.FS, dirs ...string) *Report {
	t.Helper()
	r, err := Check(t.Context(), dirs, CheckOptions{FS: fsys, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckFindsNothingInCleanDirectories(t *testing.T) {
	for set, dirs := range cleanDirs {
		t.Run(set, func(t *testing.T) {
			fsys, _ := unpack(t, set)
			for _, dir := range dirs {
				r := mustCheck(t, fsys, dir)
				for _, f := range r.Findings {
					if f.Severity == Damage {
						t.Errorf("%v", f)
					}
				}
				if r.Partitions == 0 || r.Bytes == 0 {
					t.Errorf("%s: %d partitions, %d bytes", dir, r.Partitions, r.Bytes)
				}
			}
		})
	}
}

// A crash leaves zeros behind index entries and files that wait for their removal.
func TestCheckTakesWhatACrashLeavesForNotes(t *testing.T) {
	fsys, _ := unpack(t, "kafka-4.4.0-crash")
	var notes []string
	for _, f := range mustCheck(t, fsys, "data").Findings {
		if f.Severity == Damage {
			t.Errorf("%v", f)
		}
		if f.File == "data" || f.File == "data/load-compact-0" {
			notes = append(notes, f.String())
		}
	}
	want := []string{
		"note: data: no clean stop: .kafka_cleanshutdown is missing; a broker runs, or the next start recovers",
		"note: data/load-compact-0: 18 files end in .deleted: waits for its removal; the next start removes it",
		"note: data/load-compact-0: 2 index files end in zeros: an unclean stop leaves them at their largest size, and Kafka 4 those of its metadata log always",
	}
	if !slices.Equal(notes, want) {
		t.Errorf("got notes\n%s\nwant\n%s", strings.Join(notes, "\n"), strings.Join(want, "\n"))
	}
}

func TestCheckFindsEachDamageOfTheTornSet(t *testing.T) {
	fsys, _ := unpack(t, "kafka-4.4.0-torn")
	want := golden.Damage(t)
	for _, f := range mustCheck(t, fsys, "data").Findings {
		position, ok := want[f.File]
		if f.Severity == Note && !ok { // what a crash may have left is named all the same
			continue
		}
		if !ok {
			t.Errorf("not in the list of damage, or found twice: %v", f)
		} else if position >= 0 && f.Position != position {
			t.Errorf("%v: want position %d", f, position)
		}
		delete(want, f.File)
	}
	for file := range want {
		t.Errorf("%s: nothing found", file)
	}
}

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
			fsys, _ := unpack(t, d.Set)
			var out bytes.Buffer
			err := Dump(t.Context(), &out, []string{d.Name}, DumpOptions{FS: fsys, JSON: true})
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
			fsys, _ := unpack(t, set)
			want := golden.File(t, set+".dump.gz")
			var files []string
			for line := range bytes.Lines(want) {
				if path, ok := bytes.CutPrefix(line, []byte("Dumping ")); ok {
					files = append(files, string(bytes.TrimSpace(path)))
				}
			}
			var out bytes.Buffer
			if err := Dump(t.Context(), &out, files, DumpOptions{FS: fsys, PrintDataLog: true}); err != nil {
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
	for set, dirs := range cleanDirs {
		t.Run(set, func(t *testing.T) {
			fsys, _ := unpack(t, set)
			var out bytes.Buffer
			if err := Dump(t.Context(), &out, dirs, DumpOptions{FS: fsys, PrintDataLog: true}); err != nil {
				t.Fatal(err)
			}
			for name := range maps.Keys(fixedNames) {
				for _, dir := range dirs {
					path := filepath.Join(dir, name)
					if _, err := fsys.Stat(path); err == nil && !strings.Contains(out.String(), "Dumping "+path+"\n") {
						t.Errorf("%s is not shown", path)
					}
				}
			}
			if strings.Contains(out.String(), "unknown kind") {
				t.Error("a file of an unknown kind")
			}
		})
	}
}

// Two cleanings by Kafka 2.8.2, whose cleaner enters the offset of the last record that it kept into
// the index.
func TestCheckFindsNothingBehindAnOldCleaner(t *testing.T) {
	r, err := Check(t.Context(), []string{"testdata/kafka-2.8.2"}, CheckOptions{})
	if err != nil || len(r.Findings) > 0 || r.Partitions != 1 {
		t.Errorf("%d partitions, %v, %v", r.Partitions, r.Findings, err)
	}
}
