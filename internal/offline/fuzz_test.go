package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// seeds returns the contents of the files of a golden set whose kind is one of those given,
// the small ones.
func seeds(f *testing.F, set string, kinds ...fileKind) (list [][]byte) {
	f.Helper()
	_, mem := unpack(f, set)
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := mem.ReadDir(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
				continue
			}
			kind, _ := classify(path)
			for _, want := range kinds {
				if data, err := vfs.ReadFile(mem, path, 1<<12); kind == want && err == nil {
					list = append(list, data)
				}
			}
		}
	}
	walk("data")
	if len(list) == 0 {
		f.Fatal("no seed")
	}
	return list
}

// The spans of any file cover it without holes, and their batches are good or said to be bad.
func FuzzScanner(f *testing.F) {
	for _, set := range []string{"kafka-0.10.2.2", "kafka-4.4.0-kraft-dynamic"} {
		for _, s := range seeds(f, set, logFile) {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := vfs.NewMem()
		mustWrite(t, mem, "/t-0/00000000000000000000.log", data)
		s, err := openScanner(mem, "/t-0/00000000000000000000.log", 0)
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		for {
			sp, err := s.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if sp.Position != end || sp.End <= end {
				t.Fatalf("span %d-%d behind %d", sp.Position, sp.End, end)
			}
			if sp.Err == nil && sp.Batch.Verify() != nil || sp.Batch != nil && !bytes.Equal(sp.Batch, data[sp.Position:sp.End]) {
				t.Fatalf("batch of span %d-%d", sp.Position, sp.End)
			}
			end = sp.End
		}
		if end != int64(len(data)) {
			t.Fatalf("spans end at %d of %d", end, len(data))
		}
	})
}

// What is decoded of the small binary files is all that they have.
func FuzzEntries(f *testing.F) {
	for _, kind := range []fileKind{offsetIndexFile, timeIndexFile, txnIndexFile, producerSnapshot} {
		for _, s := range seeds(f, "kafka-4.4.0-kraft", kind) {
			f.Add(s, int64(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, base int64) {
		offsets, padding := decodeOffsets(data, base)
		if got := len(offsets)*offsetEntrySize + padding; got != len(data)-len(data)%offsetEntrySize {
			t.Errorf("%d bytes of entries by offset, of %d", got, len(data))
		}
		times, padding := decodeTimes(data, base)
		if got := len(times)*timeEntrySize + padding; got != len(data)-len(data)%timeEntrySize {
			t.Errorf("%d bytes of entries by time, of %d", got, len(data))
		}
		if txns, _ := decodeTxns(data); len(txns) != len(data)/txnEntrySize {
			t.Errorf("%d transactions in %d bytes", len(txns), len(data))
		}
		if producers, err := decodeProducers(data); err == nil && !bytes.Equal(encodeProducers(producers...), data) {
			t.Errorf("%d producers are not %x", len(producers), data)
		}
	})
}

// A name says one thing only. What it says of a partition has a name that says the same.
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"00000000000000000007.log", "00000000000000000007.snapshot", "00000000000000000007-0000000001.checkpoint", "leader-epoch-checkpoint",
		"orders-3", "orders-3.0123456789abcdef0123456789abcdef-delete", "a.b-0-future", "00000000000000000007.log.swap", "gregor-copy",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if kind, base := classify(name); base < 0 && kind != otherFile {
			t.Errorf("%q: kind %d, base %d", name, kind, base)
		}
		p, _, ok := parseDir(name)
		if again, _, _ := parseDir(p.String()); ok && again != p {
			t.Errorf("%q is the directory of %v, %q of %v", name, p, p.String(), again)
		}
	})
}

// Whatever a decoder makes of bytes is JSON.
func FuzzDecoders(f *testing.F) {
	for _, set := range []string{"kafka-4.4.0-kraft-dynamic", "kafka-4.4.0-crash"} {
		for _, s := range seeds(f, set, logFile, kraftSnapshot) {
			for b, err := range record.Batches(s) {
				if err != nil {
					break
				}
				for r, err := range b.Records() {
					if err == nil {
						f.Add(bytes.Clone(r.Key), bytes.Clone(r.Value))
					}
				}
			}
		}
	}
	decoders := []Decoder{OffsetsDecoder, TransactionLogDecoder, ShareGroupStateDecoder, ClusterMetadataDecoder}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := record.Record{Key: key, Value: value}
		for _, d := range decoders {
			for _, decode := range []decodeFunc{d.key, d.value} {
				if out, err := decode(nil, &r); err == nil && len(out) > 0 && !json.Valid(out) {
					t.Fatalf("decoder %d: %s", d, out)
				}
			}
		}
		if out := appendControlJSON(nil, &r); !json.Valid(out) {
			t.Fatalf("control: %s", out)
		}
		if out := appendString(nil, value); !json.Valid(out) {
			t.Fatalf("string: %s", out)
		}
		appendControl(nil, &r)
	})
}

// Any bytes in the files of a partition can be dumped and checked.
func FuzzFiles(f *testing.F) {
	names := []string{
		"00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000000000.txnindex",
		"00000000000000000007.snapshot", "00000000000000000007-0000000001.checkpoint", "leader-epoch-checkpoint", "partition.metadata",
		"quorum-state", "../replication-offset-checkpoint", "../meta.properties", "../bootstrap.checkpoint",
	}
	for i, kind := range []fileKind{logFile, offsetIndexFile, timeIndexFile, txnIndexFile, producerSnapshot, kraftSnapshot, epochCheckpoint} {
		for _, s := range seeds(f, "kafka-4.4.0-crash", kind) {
			f.Add(uint8(i), s)
		}
	}
	good := seeds(f, "kafka-4.4.0-kraft-dynamic", logFile)[0]
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		mem := vfs.NewMem()
		for _, partition := range []string{"t-0", "__cluster_metadata-0"} {
			dir := "/data/" + partition
			mustWrite(t, mem, dir+"/"+names[0], good)
			mustWrite(t, mem, dir+"/"+names[int(which)%len(names)], data)
		}
		fsys := readOnly{mem}
		if _, err := Check(t.Context(), []string{"/data"}, CheckOptions{FS: fsys}); err != nil {
			t.Fatal(err)
		}
		for _, o := range []DumpOptions{{PrintDataLog: true}, {JSON: true}, {VerifyIndexOnly: true}, {IndexSanityCheck: true}} {
			o.FS = fsys
			if err := Dump(t.Context(), io.Discard, []string{"/data", "/data/t-0/" + names[int(which)%len(names)]}, o); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
	})
}
