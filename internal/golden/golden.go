package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

//go:embed sets
var files embed.FS

// A Dir is one log directory of a set.
type Dir struct {
	Set  string
	Name string // the folder that Unpack makes
	// Clean says that Kafka stopped it cleanly.
	Clean bool
	// Expected says that Records and Offsets tell what is in it.
	Expected bool
}

func (d Dir) String() string { return d.Set + "/" + d.Name }

// Dirs lists the log directories of all sets.
func Dirs() []Dir {
	var list []Dir
	add := func(set string, clean bool, names ...string) {
		for _, name := range names {
			list = append(list, Dir{Set: set, Name: name, Clean: clean, Expected: name != "diverged-at-node1"})
		}
	}
	add("kafka-0.8.2.2", true, "data")
	add("kafka-0.10.2.2", true, "data")
	add("kafka-1.1.1-mixed", true, "data")
	add("kafka-3.9.1-kraft", true, "data")
	add("kafka-4.4.0-kraft", true, "data")
	add("kafka-4.4.0-kraft-dynamic", true, "data")
	add("kafka-4.4.0-old-formats", true, "data", "cleaned")
	add("kafka-4.4.0-three-nodes", true, "data1", "data2", "data3", "diverged-at-node1")
	add("compaction-4.4.0", true, "before", "after", "before2", "after2", "before3", "after3")
	add("kafka-4.4.0-crash", false, "data")
	add("kafka-4.4.0-torn", false, "data")
	return list
}

// Sets groups the log directories by set.
func Sets() map[string][]Dir {
	sets := map[string][]Dir{}
	for _, d := range Dirs() {
		sets[d.Set] = append(sets[d.Set], d)
	}
	return sets
}

// maxIndexSize is what Unpack writes of an index file: Kafka 4 leaves 10 MiB of zeros in
// those of its metadata log. It is a multiple of the sizes of all index entries.
const maxIndexSize = 64<<10 - 64<<10%(8*12)

// Unpack makes the folders of a set below root, with the times of their files.
func Unpack(t testing.TB, fsys vfs.FS, root, set string) {
	t.Helper()
	UnpackIf(t, fsys, root, set, func(string) bool { return true })
}

// UnpackIf makes those files of a set that keep returns true for, given their names in the
// archive (data/orders-0/leader-epoch-checkpoint).
func UnpackIf(t testing.TB, fsys vfs.FS, root, set string, keep func(name string) bool) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(File(t, set+".tar.gz"))); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err == nil && keep(h.Name) {
			err = unpackEntry(fsys, filepath.Join(root, h.Name), h, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackEntry(fsys vfs.FS, path string, h *tar.Header, body io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return vfs.MkdirAll(fsys, path, 0o755)
	}
	if strings.HasSuffix(path, "index") {
		body = io.LimitReader(body, maxIndexSize)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if err := vfs.MkdirAll(fsys, filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(fsys, path, data); err != nil {
		return err
	}
	return fsys.SetModTime(path, h.ModTime)
}

// File returns a file of sets, decompressed if its name ends in .gz.
func File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := files.ReadFile("sets/" + name)
	if err == nil && strings.HasSuffix(name, ".gz") {
		b, err = gunzip(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gunzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// exists reports whether there is a file of that name.
func exists(name string) bool {
	_, err := fs.Stat(files, "sets/"+name)
	return err == nil
}
