package files_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/vfs"
)

// The spans of any file cover it without holes, and their batches are good or said to be bad.
func FuzzScanner(f *testing.F) {
	for _, set := range []string{"kafka-0.10.2.2", "kafka-4.4.0-kraft-dynamic"} {
		for _, s := range offlinetest.Seeds(f, set, files.LogFile) {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := vfs.NewMem()
		offlinetest.MustWrite(t, mem, "/t-0/00000000000000000000.log", data)
		s, err := files.OpenScanner(mem, "/t-0/00000000000000000000.log", 0)
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		for {
			sp, err := s.Next()
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
	for _, kind := range []files.Kind{files.OffsetIndexFile, files.TimeIndexFile, files.TxnIndexFile, files.ProducerSnapshot} {
		for _, s := range offlinetest.Seeds(f, "kafka-4.4.0-kraft", kind) {
			f.Add(s, int64(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, base int64) {
		offsets, padding := files.DecodeOffsets(data, base)
		if got := len(offsets)*files.OffsetEntrySize + padding; got != len(data)-len(data)%files.OffsetEntrySize {
			t.Errorf("%d bytes of entries by offset, of %d", got, len(data))
		}
		times, padding := files.DecodeTimes(data, base)
		if got := len(times)*files.TimeEntrySize + padding; got != len(data)-len(data)%files.TimeEntrySize {
			t.Errorf("%d bytes of entries by time, of %d", got, len(data))
		}
		if txns, _ := files.DecodeTxns(data); len(txns) != len(data)/files.TxnEntrySize {
			t.Errorf("%d transactions in %d bytes", len(txns), len(data))
		}
		if producers, err := files.DecodeProducers(data); err == nil && !bytes.Equal(offlinetest.EncodeProducers(producers...), data) {
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
		if kind, base := files.Classify(name); base < 0 && kind != files.OtherFile {
			t.Errorf("%q: kind %d, base %d", name, kind, base)
		}
		p, _, ok := files.ParseDir(name)
		if again, _, _ := files.ParseDir(p.String()); ok && again != p {
			t.Errorf("%q is the directory of %v, %q of %v", name, p, p.String(), again)
		}
	})
}
