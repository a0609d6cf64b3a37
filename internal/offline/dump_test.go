package offline

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

func dump(t *testing.T, fsys vfs.FS, o DumpOptions, paths ...string) string {
	t.Helper()
	o.FS = fsys
	var out bytes.Buffer
	if err := Dump(t.Context(), &out, paths, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDumpFiles(t *testing.T) {
	fsys, _ := unpack(t, "kafka-4.4.0-kraft")
	f := func(path string, o DumpOptions, want string) {
		t.Helper()
		got := dump(t, fsys, o, path)
		lines := strings.SplitAfterN(got, "\n", 4)
		if got := strings.Join(lines[:min(3, len(lines))], ""); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
	dir := "data/txn-0/"
	f(dir+"00000000000000000009.index", DumpOptions{}, "Dumping "+dir+"00000000000000000009.index\noffset: 20 position: 520\noffset: 31 position: 1055\n")
	f(dir+"00000000000000000009.timeindex", DumpOptions{}, "Dumping "+dir+"00000000000000000009.timeindex\n"+
		"timestamp: 1796020288027 offset: 20\ntimestamp: 1796020288079 offset: 31\n")
	f(dir+"00000000000000000009.txnindex", DumpOptions{}, "Dumping "+dir+"00000000000000000009.txnindex\n"+
		"version: 0 producerId: 5 firstOffset: 14 lastOffset: 21 lastStableOffset: 22\n"+
		"version: 0 producerId: 4 firstOffset: 22 lastOffset: 31 lastStableOffset: 25\n")
	f(dir+"00000000000000000009.index", DumpOptions{JSON: true}, `{"file":"data/txn-0/00000000000000000009.index","offset":20,"position":520}
{"file":"data/txn-0/00000000000000000009.index","offset":31,"position":1055}
{"file":"data/txn-0/00000000000000000009.index","offset":43,"position":1644}
`)
	f(dir+"00000000000000000009.index", DumpOptions{VerifyIndexOnly: true},
		"Dumping "+dir+"00000000000000000009.index\n")
	f(dir+"leader-epoch-checkpoint", DumpOptions{}, "Dumping "+dir+"leader-epoch-checkpoint\n0\n1\n")
	f("data/.kafka_cleanshutdown", DumpOptions{}, "Dumping data/.kafka_cleanshutdown\n{\"version\":0,\"brokerEpoch\":11}\n")
	f("data/__cluster_metadata-0/00000000000000000000.index", DumpOptions{IndexSanityCheck: true},
		"Dumping data/__cluster_metadata-0/00000000000000000000.index\ndata/__cluster_metadata-0/00000000000000000000.index passed sanity check.\n")
}

func TestDumpOptions(t *testing.T) {
	x := newFixture(t)
	log := x.path(log0)
	f := func(o DumpOptions, lines int, last string) {
		t.Helper()
		got := dump(t, readOnly{x.mem}, o, log)
		if n := strings.Count(got, "\n"); n != lines || !strings.HasSuffix(got, last+"\n") {
			t.Errorf("%+v: %d lines, want %d that end with %q:\n%s", o, n, lines, last, got)
		}
	}
	f(DumpOptions{}, 2+10, "isvalid: true")
	f(DumpOptions{DeepIteration: true}, 2+10+20, "headerKeys: []")
	f(DumpOptions{PrintDataLog: true}, 2+10+20, "payload: value")
	f(DumpOptions{PrintDataLog: true, SkipRecordMetadata: true}, 2+10+20, "| payload: value")
	f(DumpOptions{SkipRecordMetadata: true}, 2+10, "isvalid: true")
	f(DumpOptions{DeepIteration: true, SkipRecordMetadata: true}, 2+10+20, "\n")
	f(DumpOptions{PrintDataLog: true, MaxMessageSize: 10}, 2+10+20, "payload: value") // as in Kafka, of indexes only
	size := int64(len(batch(0, 0, record.BuilderOptions{})))
	f(DumpOptions{MaxBytes: 3 * size}, 2+3, "isvalid: true")
	f(DumpOptions{MaxBytes: 3*size + 20}, 2+3, "isvalid: true")
	f(DumpOptions{JSON: true}, 20, `"offset":19,"timestamp":1019,"timestampType":"CreateTime","leaderEpoch":0,"key":null,"value":"dmFsdWU=","headers":[]}`)
}

func TestDumpMaxMessageSize(t *testing.T) {
	x := newFixture(t)
	size := len(batch(0, 0, record.BuilderOptions{}))
	dump(t, readOnly{x.mem}, DumpOptions{VerifyIndexOnly: true, MaxMessageSize: size}, x.path(index0))
	var out bytes.Buffer
	o := DumpOptions{FS: x.mem, VerifyIndexOnly: true, MaxMessageSize: size - 1}
	if err := Dump(t.Context(), &out, []string{x.path(index0)}, o); !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), "the batch has 85 bytes") {
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
	mustWrite(t, mem, "/t-0/"+log0, b.Build())
	got := dump(t, readOnly{mem}, DumpOptions{PrintDataLog: true, SkipRecordMetadata: true, KeyClass: IntegerClass, ValueClass: LongClass}, "/t-0/"+log0)
	for _, want := range []string{"| key: 256 payload: -2\n", "| key: 1718580594 payload: five5\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Damage is shown where it is, and what is behind it too; as JSON beside the records.
func TestDumpGoesOnBehindDamage(t *testing.T) {
	x := newFixture(t)
	size := len(batch(0, 0, record.BuilderOptions{}))
	x.change(log0, func(b []byte) []byte {
		b[70] ^= 1       // the checksum of the first batch is wrong
		b[2*size+16] = 9 // the third is none
		return b
	})
	var out, warnings bytes.Buffer
	err := Dump(t.Context(), &out, []string{x.path(log0)}, DumpOptions{FS: x.mem})
	if !errors.Is(err, ErrDamaged) || strings.Count(out.String(), "isvalid: false") != 1 || strings.Count(out.String(), "isvalid: true") != 8 ||
		!strings.Contains(out.String(), "unknown magic 9") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	out.Reset()
	err = Dump(t.Context(), &out, []string{x.path(log0)}, DumpOptions{FS: x.mem, JSON: true, Warnings: &warnings})
	if !errors.Is(err, ErrDamaged) || strings.Count(out.String(), "\n") != 16 || strings.Count(warnings.String(), "damage: ") != 2 {
		t.Errorf("%v:\n%s%s", err, out.String(), warnings.String())
	}
}

func TestDumpJSONControlAndDecoded(t *testing.T) {
	fsys, _ := unpack(t, "kafka-4.4.0-kraft-dynamic")
	got := dump(t, fsys, DumpOptions{JSON: true, Decoder: ClusterMetadataDecoder}, "data/__cluster_metadata-0")
	for _, want := range []string{
		`"control":{"type":"LEADER_CHANGE","data":{"version":0,"leaderId":1,`,
		`"decoded":{"value":{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":33}}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%.3000s", want, got)
		}
	}
	mem := vfs.NewMem()
	values, _ := remoteLogVectors(t)
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Value: values[0]}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, mem, "/__remote_log_metadata-0/"+log0, b.Build())
	got = dump(t, readOnly{mem}, DumpOptions{JSON: true, Decoder: RemoteLogMetadataDecoder}, "/__remote_log_metadata-0")
	if want := `"decoded":{"value":"RemoteLogSegmentMetadata{remoteLogSegmentId=`; !strings.Contains(got, want) {
		t.Errorf("no %s in %s", want, got)
	}
	fsys, _ = unpack(t, "kafka-3.9.1-kraft")
	got = dump(t, fsys, DumpOptions{JSON: true}, "data/txn-0")
	if !strings.Contains(got, `"control":{"type":"ABORT","coordinatorEpoch":0}`) {
		t.Errorf("no marker in %.3000s", got)
	}
}

// On a disk that refuses writes, dump and check work all the same.
func TestReadOnlyTree(t *testing.T) {
	_, mem := unpack(t, "kafka-0.8.2.2")
	dir := t.TempDir()
	copyTree(t, mem, "data", dir)
	t.Cleanup(func() { chmodTree(t, dir, 0o755, 0o644) })
	chmodTree(t, dir, 0o555, 0o444)
	data := filepath.Join(dir, "data")
	if r := mustCheck(t, vfs.OS, data); r.Damaged() > 0 || r.Partitions != 14 {
		t.Errorf("%d partitions, %v", r.Partitions, r.Findings)
	}
	if out := dump(t, vfs.OS, DumpOptions{JSON: true}, data); strings.Count(out, "\n") != 2224 {
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

func TestAppendFloatIsJavas(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	f(0, "0.0")
	f(1048576, "1048576.0")
	f(0.5, "0.5")
	f(1e7, "1.0E7")
	f(-1.5e-5, "-1.5E-5")
}

func TestClassify(t *testing.T) {
	f := func(name string, kind fileKind, base int64) {
		t.Helper()
		if gotKind, gotBase := classify("/x/" + name); gotKind != kind || gotBase != base {
			t.Errorf("%s: got %d at %d, want %d at %d", name, gotKind, gotBase, kind, base)
		}
	}
	f("00000000000000000042.log", logFile, 42)
	f("00000000000000000042.txnindex", txnIndexFile, 42)
	f("00000000000000000042.snapshot", producerSnapshot, 42)
	f("00000000000000000042-0000000003.checkpoint", kraftSnapshot, 42)
	f("00000000000000000042-0000000003.checkpoint.part", leftover, 0)
	f("00000000000000000042-0000000003.checkpoint.received", leftover, 0)
	f("00000000000000000042.log.deleted", leftover, 0)
	f("bootstrap.checkpoint", kraftSnapshot, 0)
	f("leader-epoch-checkpoint", epochCheckpoint, 0)
	f("cleaner-offset-checkpoint", offsetCheckpoint, 0)
	f("meta.properties", metaProperties, 0)
	f("-.snapshot", otherFile, 0)
	f("readme", otherFile, 0)
}

// Dump allocates per call and per batch, not per record.
func TestDumpAllocations(t *testing.T) {
	dir := writeSegment(t, 1<<20, benchShape{batch: 1 << 20, recordSize: 100})
	for _, o := range []DumpOptions{{PrintDataLog: true}, {JSON: true}} {
		allocs := testing.AllocsPerRun(5, func() {
			if err := Dump(t.Context(), io.Discard, []string{dir}, o); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 400 { // of 9,000 records
			t.Errorf("%+v: %.0f allocations", o, allocs)
		}
	}
}
