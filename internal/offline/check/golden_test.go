package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/vfs"
)

func mustCheck(t testing.TB, fsys vfs.FS, dirs ...string) *Report {
	t.Helper()
	r, err := Dirs(t.Context(), dirs, Options{FS: fsys, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckFindsNothingInCleanDirectories(t *testing.T) {
	for set, dirs := range offlinetest.CleanDirs {
		t.Run(set, func(t *testing.T) {
			fsys, _ := offlinetest.Unpack(t, set)
			for _, dir := range dirs {
				r := mustCheck(t, fsys, dir)
				for _, f := range r.Findings {
					if f.Severity == Damage || strings.Contains(f.Message, "the log ends at") {
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

// A list of leader epochs without a byte was never written; who empties one leaves its header. So it has lost its entries,
// also where the batches that have epochs are followed by messages that have none.
func TestCheckFindsBlankEpochs(t *testing.T) {
	for content, want := range map[string]string{"": "empty; batches have leader epochs", "0\n0\n": ""} {
		fsys, mem := offlinetest.Unpack(t, "kafka-4.4.0-old-formats")
		file := "data/k1.1.1.down-lz4-0/leader-epoch-checkpoint"
		if err := vfs.WriteFileAtomic(mem, file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range mustCheck(t, fsys, "data").Findings {
			if f.File == file {
				got += f.Message
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
}

// A leader epoch cannot begin behind the end of a log, nor in one without a batch: a start takes it for a witness of
// records that are lost.
func TestCheckFindsEpochsBehindAnEmptyLog(t *testing.T) {
	fsys, mem := offlinetest.Unpack(t, "kafka-4.4.0-crash")
	const file = "data/__consumer_offsets-3/leader-epoch-checkpoint"
	if err := vfs.WriteFileAtomic(mem, file, []byte("0\n1\n0 52\n")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range mustCheck(t, fsys, "data").Findings {
		if f.File == file {
			got = append(got, f.String())
		}
	}
	if want := "note: " + file + " (offset 52): epoch 0 begins at offset 52, the log ends at 0"; !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A crash leaves zeros behind index entries and files that wait for their removal.
func TestCheckTakesWhatACrashLeavesForNotes(t *testing.T) {
	fsys, _ := offlinetest.Unpack(t, "kafka-4.4.0-crash")
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
	fsys, _ := offlinetest.Unpack(t, "kafka-4.4.0-torn")
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

// Two cleanings by Kafka 2.8.2, whose cleaner enters the offset of the last record that it kept into
// the index.
func TestCheckFindsNothingBehindAnOldCleaner(t *testing.T) {
	r, err := Dirs(t.Context(), []string{"testdata/kafka-2.8.2"}, Options{})
	if err != nil || len(r.Findings) > 0 || r.Partitions != 1 {
		t.Errorf("%d partitions, %v, %v", r.Partitions, r.Findings, err)
	}
}
