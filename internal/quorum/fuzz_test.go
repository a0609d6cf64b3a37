package quorum

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/vfs"
)

// seeds adds the golden files that match a pattern.
func seeds(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "__cluster_metadata-0", pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("no files for %s: %v", pattern, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4096)])
	}
}

func FuzzQuorumState(f *testing.F) {
	seeds(f, checkpoint.QuorumState)
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseQuorumState(b); err == nil && (d.LeaderEpoch < 0 || d.VotedID < nobody) {
			t.Errorf("accepted %+v", d)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	seeds(f, "*"+checkpoint.SnapshotSuffix)
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = readCheckpoint(b)
	})
}

// Any bytes in the log are refused or cut; what is kept is read again the same.
func FuzzLog(f *testing.F) {
	seeds(f, "*"+logSuffix)
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys, dir := memDir(t)
		if err := vfs.MkdirAll(fsys, logDir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		overwriteFile(t, fsys, filepath.Join(logDir(dir), segmentName(0)), b)
		open := func() (*metadataLog, error) {
			o := options(fsys, dir)
			l := &metadataLog{fs: fsys, dir: logDir(dir), logger: o.Logger, fail: newFailure()}
			return l, l.load(0)
		}
		l, err := open()
		defer l.close()
		if err != nil {
			return
		}
		again, err := open()
		defer again.close()
		if err != nil || again.NextOffset() != l.NextOffset() {
			t.Errorf("offset %d, then %d (%v)", l.NextOffset(), again.NextOffset(), err)
		}
	})
}

// Parsing a name and writing it again gives the name.
func FuzzNames(f *testing.F) {
	f.Add("00000000000000000323-0000000001.checkpoint")
	f.Add("00000000000000000323.log")
	f.Fuzz(func(t *testing.T, name string) {
		if id, ok := parseCheckpoint(name); ok && len(name) == len(id.String()+checkpoint.SnapshotSuffix) && id.String()+checkpoint.SnapshotSuffix != name {
			t.Errorf("%q reads as %v", name, id)
		}
		if base, ok := parseSegment(name); ok && len(name) == len(segmentName(base)) && segmentName(base) != name {
			t.Errorf("%q reads as %d", name, base)
		}
	})
}
