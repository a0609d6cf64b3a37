package dump

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
)

// A directory that a broker writes, or was killed over, is read without a lock and without a write,
// and its healthy indexes are not called damaged: they end in zeros, or stop before the log does.
func TestKAFKA5104(t *testing.T) {
	for _, set := range []string{"kafka-4.4.0-crash", "kafka-4.4.0-kraft"} {
		fsys, _ := offlinetest.Unpack(t, set) // fails on any write
		r, err := check.Dirs(t.Context(), []string{"data"}, check.Options{FS: fsys})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Severity == check.Damage {
				t.Errorf("%s: %v", set, f)
			}
		}
		for _, name := range []string{"00000000000000000000.index", "00000000000000000000.timeindex"} {
			dump(t, fsys, Options{IndexSanityCheck: true}, "data/codec-gzip-0/"+name)
		}
	}
}
