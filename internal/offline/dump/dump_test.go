package dump

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

func dump(t *testing.T, fsys vfs.FS, o Options, paths ...string) string {
	t.Helper()
	o.FS = fsys
	var out bytes.Buffer
	if err := Files(t.Context(), &out, paths, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDumpFiles(t *testing.T) {
	fsys, _ := offlinetest.Unpack(t, "kafka-4.4.0-kraft")
	f := func(path string, o Options, want string) {
		t.Helper()
		got := dump(t, fsys, o, path)
		lines := strings.SplitAfterN(got, "\n", 4)
		if got := strings.Join(lines[:min(3, len(lines))], ""); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
	dir := "data/txn-0/"
	f(dir+"00000000000000000009.index", Options{}, "Dumping "+dir+"00000000000000000009.index\noffset: 20 position: 520\noffset: 31 position: 1055\n")
	f(dir+"00000000000000000009.timeindex", Options{}, "Dumping "+dir+"00000000000000000009.timeindex\n"+
		"timestamp: 1796020288027 offset: 20\ntimestamp: 1796020288079 offset: 31\n")
	f(dir+"00000000000000000009.txnindex", Options{}, "Dumping "+dir+"00000000000000000009.txnindex\n"+
		"version: 0 producerId: 5 firstOffset: 14 lastOffset: 21 lastStableOffset: 22\n"+
		"version: 0 producerId: 4 firstOffset: 22 lastOffset: 31 lastStableOffset: 25\n")
	f(dir+"00000000000000000009.index", Options{JSON: true}, `{"file":"data/txn-0/00000000000000000009.index","offset":20,"position":520}
{"file":"data/txn-0/00000000000000000009.index","offset":31,"position":1055}
{"file":"data/txn-0/00000000000000000009.index","offset":43,"position":1644}
`)
	f(dir+"00000000000000000009.index", Options{VerifyIndexOnly: true},
		"Dumping "+dir+"00000000000000000009.index\n")
	f(dir+"leader-epoch-checkpoint", Options{}, "Dumping "+dir+"leader-epoch-checkpoint\n0\n1\n")
	f("data/.kafka_cleanshutdown", Options{}, "Dumping data/.kafka_cleanshutdown\n{\"version\":0,\"brokerEpoch\":11}\n")
	f("data/__cluster_metadata-0/00000000000000000000.index", Options{IndexSanityCheck: true},
		"Dumping data/__cluster_metadata-0/00000000000000000000.index\ndata/__cluster_metadata-0/00000000000000000000.index passed sanity check.\n")
}

func TestDumpOptions(t *testing.T) {
	x := offlinetest.NewFixture(t)
	log := x.Path(offlinetest.Log0)
	f := func(o Options, lines int, last string) {
		t.Helper()
		got := dump(t, offlinetest.ReadOnly{FS: x.Mem}, o, log)
		if n := strings.Count(got, "\n"); n != lines || !strings.HasSuffix(got, last+"\n") {
			t.Errorf("%+v: %d lines, want %d that end with %q:\n%s", o, n, lines, last, got)
		}
	}
	f(Options{}, 2+10, "isvalid: true")
	f(Options{DeepIteration: true}, 2+10+20, "headerKeys: []")
	f(Options{PrintDataLog: true}, 2+10+20, "payload: value")
	f(Options{PrintDataLog: true, SkipRecordMetadata: true}, 2+10+20, "| payload: value")
	f(Options{SkipRecordMetadata: true}, 2+10, "isvalid: true")
	f(Options{DeepIteration: true, SkipRecordMetadata: true}, 2+10+20, "\n")
	f(Options{PrintDataLog: true, MaxMessageSize: 10}, 2+10+20, "payload: value") // as in Kafka, of indexes only
	size := int64(len(offlinetest.Batch(0, 0, record.BuilderOptions{})))
	f(Options{MaxBytes: 3 * size}, 2+3, "isvalid: true")
	f(Options{MaxBytes: 3*size + 20}, 2+3, "isvalid: true")
	f(Options{JSON: true}, 20, `"offset":19,"timestamp":1019,"timestampType":"CreateTime","leaderEpoch":0,"key":null,"value":"dmFsdWU=","headers":[]}`)
}

func TestDumpMaxMessageSize(t *testing.T) {
	x := offlinetest.NewFixture(t)
	size := len(offlinetest.Batch(0, 0, record.BuilderOptions{}))
	dump(t, offlinetest.ReadOnly{FS: x.Mem}, Options{VerifyIndexOnly: true, MaxMessageSize: size}, x.Path(offlinetest.Index0))
	var out bytes.Buffer
	o := Options{FS: x.Mem, VerifyIndexOnly: true, MaxMessageSize: size - 1}
	if err := Files(t.Context(), &out, []string{x.Path(offlinetest.Index0)}, o); !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), "the batch has 85 bytes") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestDumpClasses(t *testing.T) {
	b := record.NewBuilder(record.BuilderOptions{})
	for i, r := range []record.Record{
		{Key: []byte{0, 0, 1, 0}, Value: []byte{255, 255, 255, 255, 255, 255, 255, 254}},
		{Key: []byte("four"), Value: []byte("five5")},
	} {
		r.Offset = int64(i)
		if err := b.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	mem := vfs.NewMem()
	offlinetest.MustWrite(t, mem, "/t-0/"+offlinetest.Log0, b.Build())
	got := dump(t, offlinetest.ReadOnly{FS: mem}, Options{PrintDataLog: true, SkipRecordMetadata: true, KeyClass: schema.IntegerClass, ValueClass: schema.LongClass}, "/t-0/"+offlinetest.Log0)
	for _, want := range []string{"| key: 256 payload: -2\n", "| key: 1718580594 payload: five5\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Damage is shown where it is, and what is behind it too; as JSON beside the records.
func TestDumpGoesOnBehindDamage(t *testing.T) {
	x := offlinetest.NewFixture(t)
	size := len(offlinetest.Batch(0, 0, record.BuilderOptions{}))
	x.Change(offlinetest.Log0, func(b []byte) []byte {
		b[70] ^= 1       // the checksum of the first batch is wrong
		b[2*size+16] = 9 // the third is none
		return b
	})
	var out, warnings bytes.Buffer
	err := Files(t.Context(), &out, []string{x.Path(offlinetest.Log0)}, Options{FS: x.Mem})
	if !errors.Is(err, ErrDamaged) || strings.Count(out.String(), "isvalid: false") != 1 || strings.Count(out.String(), "isvalid: true") != 8 ||
		!strings.Contains(out.String(), "unknown magic 9") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	out.Reset()
	err = Files(t.Context(), &out, []string{x.Path(offlinetest.Log0)}, Options{FS: x.Mem, JSON: true, Warnings: &warnings})
	if !errors.Is(err, ErrDamaged) || strings.Count(out.String(), "\n") != 16 || strings.Count(warnings.String(), "damage: ") != 2 {
		t.Errorf("%v:\n%s%s", err, out.String(), warnings.String())
	}
}

func TestDumpJSONControlAndDecoded(t *testing.T) {
	fsys, _ := offlinetest.Unpack(t, "kafka-4.4.0-kraft-dynamic")
	got := dump(t, fsys, Options{JSON: true, Decoder: schema.ClusterMetadataDecoder}, "data/__cluster_metadata-0")
	for _, want := range []string{
		`"control":{"type":"LEADER_CHANGE","data":{"version":0,"leaderId":1,`,
		`"decoded":{"value":{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":33}}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%.3000s", want, got)
		}
	}
	mem := vfs.NewMem()
	values, _ := offlinetest.RemoteLogVectors(t)
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Value: values[0]}); err != nil {
		t.Fatal(err)
	}
	offlinetest.MustWrite(t, mem, "/__remote_log_metadata-0/"+offlinetest.Log0, b.Build())
	got = dump(t, offlinetest.ReadOnly{FS: mem}, Options{JSON: true, Decoder: schema.RemoteLogMetadataDecoder}, "/__remote_log_metadata-0")
	if want := `"decoded":{"value":"RemoteLogSegmentMetadata{remoteLogSegmentId=`; !strings.Contains(got, want) {
		t.Errorf("no %s in %s", want, got)
	}
	fsys, _ = offlinetest.Unpack(t, "kafka-3.9.1-kraft")
	got = dump(t, fsys, Options{JSON: true}, "data/txn-0")
	if !strings.Contains(got, `"control":{"type":"ABORT","coordinatorEpoch":0}`) {
		t.Errorf("no marker in %.3000s", got)
	}
}

// On a disk that refuses writes, dump and check work all the same.
func TestReadOnlyTree(t *testing.T) {
	_, mem := offlinetest.Unpack(t, "kafka-0.8.2.2")
	dir := t.TempDir()
	copyTree(t, mem, "data", dir)
	t.Cleanup(func() { chmodTree(t, dir, 0o755, 0o644) })
	chmodTree(t, dir, 0o555, 0o444)
	data := filepath.Join(dir, "data")
	if r, err := check.Dirs(t.Context(), []string{data}, check.Options{}); err != nil || r.Damaged() > 0 || r.Partitions != 14 {
		t.Errorf("%d partitions, %v, %v", r.Partitions, r.Findings, err)
	}
	if out := dump(t, vfs.OS, Options{JSON: true}, data); strings.Count(out, "\n") != 2224 {
		t.Errorf("%d records", strings.Count(out, "\n"))
	}
}

func copyTree(t *testing.T, mem *vfs.Mem, name, to string) {
	t.Helper()
	entries, err := mem.ReadDir(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(to, name), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(name, e.Name())
		if e.IsDir() {
			copyTree(t, mem, path, to)
			continue
		}
		data, err := vfs.ReadFile(mem, path, 1<<30)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, path), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func chmodTree(t *testing.T, dir string, dirMode, fileMode os.FileMode) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return os.Chmod(path, dirMode)
		}
		return os.Chmod(path, fileMode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Dump allocates per call and per batch, not per record.
func TestDumpAllocations(t *testing.T) {
	dir := offlinetest.WriteSegment(t, 1<<20, offlinetest.BenchShape{Batch: 1 << 20, RecordSize: 100})
	for _, o := range []Options{{PrintDataLog: true}, {JSON: true}} {
		allocs := testing.AllocsPerRun(5, func() {
			if err := Files(t.Context(), io.Discard, []string{dir}, o); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 400 { // of 9,000 records
			t.Errorf("%+v: %.0f allocations", o, allocs)
		}
	}
}
