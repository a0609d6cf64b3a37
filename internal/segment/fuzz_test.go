package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/vfs"
)

// FuzzIndexDecode: what is taken from a file is in order, and comes back when written.
func FuzzIndexDecode(f *testing.F) {
	for _, s := range []string{
		"", "00000001000000000000003200001068", "0000018bcfe56800000000010000018bcfe5680900000033",
		"ffffffffffffffffffffffffffffffffffffffffffffffff", "000000010000000a0000000000000000",
	} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkDecode(t, offsetLayout, b)
		checkDecode(t, timeLayout, b)
		list, _, err := decodeTxns(bytes.NewReader(b), int64(len(b))/txnEntrySize, 0)
		if err != nil || len(list) > len(b)/txnEntrySize {
			t.Fatalf("got %d transactions, %v", len(list), err)
		}
	})
}

func checkDecode[E entry[E]](t *testing.T, l layout[E], b []byte) {
	entries, sound, err := l.decode(bytes.NewReader(b), int64(len(b)), func(E) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if !sound && !l.padding {
		return
	}
	written := encode(entries)
	if !bytes.HasPrefix(b, written) || sound && !allZero(b[len(written):]) {
		t.Fatalf("%x written again as %x", b, written)
	}
	last := l.before
	for _, e := range entries {
		if !e.follows(last) {
			t.Fatalf("%v stands behind %v", e, last)
		}
		last = e
	}
}

// FuzzOpen opens a segment of hostile files, as after a clean stop, and looks things up; then
// recovers it.
func FuzzOpen(f *testing.F) {
	for _, dir := range []string{"kafka-4.4.0/txn-0", "kafka-1.1.1/v0-gzip-0", "kafka-0.10.2.2/gzip-0"} {
		read := func(kind Kind) []byte {
			names, err := filepath.Glob(filepath.Join("testdata", dir, "*"+string(kind)))
			if err != nil || len(names) == 0 {
				return nil
			}
			b, err := os.ReadFile(names[0])
			must(f, err)
			return b[:min(len(b), 1500)] // the fuzzer is slow on more
		}
		f.Add(read(LogFile), read(IndexFile), read(TimeIndexFile), read(TxnIndexFile), int64(5))
	}
	f.Add([]byte(nil), []byte(nil), []byte(nil), []byte(nil), int64(0))
	f.Add(bytes.Repeat([]byte{0}, 100), bytes.Repeat([]byte{0xff}, 24), []byte{1}, []byte{2}, int64(-7))
	f.Fuzz(func(t *testing.T, log, index, timeindex, txnindex []byte, target int64) {
		m := newFS(t)
		for kind, b := range map[Kind][]byte{LogFile: log, IndexFile: index, TimeIndexFile: timeindex, TxnIndexFile: txnindex} {
			must(t, vfs.WriteFileAtomic(m, filepath.Join(testDir, Name(0, kind, "")), b))
		}
		s, err := Open(m, testDir, 0, smallConfig())
		must(t, err)
		lookUpHostile(t, s, target)
		recoverHostile(t, s, target)
	})
}

// lookUpHostile allows corruption, and answers that agree with a walk.
func lookUpHostile(t *testing.T, s *Segment, target int64) {
	t.Helper()
	allow := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, ErrCorrupt) && err != ErrNotFound {
			t.Fatal(err)
		}
	}
	got, ok, err := s.Translate(target, 0)
	allow(err)
	if ok && (got.Position < 0 || got.Position+int64(got.Size) > s.Size()) {
		t.Fatalf("Translate: %+v of %d bytes", got, s.Size())
	}
	sl, err := s.Read(target, 1000, s.Size(), WholeFirst)
	allow(err)
	if err == nil {
		if _, err := sl.ReadAt(make([]byte, sl.Size()), 0); sl.Size() > 0 && err != nil {
			t.Fatal(err)
		}
	}
	sl.Release()
	_, err = s.NextOffset()
	allow(err)
	// A record inside may be bad in more ways than a segment knows of; it must not panic.
	_, _, _ = s.OffsetByTimestamp(target, 0)
	_, _, _ = s.MaxTimestampRecord()
	_, err = s.FirstTimestamp()
	allow(err)
	s.UpperBound(target, 10)
	_, _, err = s.Aborted(0, target)
	allow(err)
	allow(s.Check())
}

// recoverHostile makes a sound segment of it, unless its offsets belong elsewhere.
func recoverHostile(t *testing.T, s *Segment, target int64) {
	t.Helper()
	next := int64(0)
	_, err := s.Recover(func(b Located) error { next = b.Batch.NextOffset(); return nil }, math.MaxInt64, nil)
	if errors.Is(err, ErrOffsetOverflow) {
		return
	}
	must(t, err)
	if got, err := s.NextOffset(); got != next || err != nil {
		t.Fatalf("NextOffset: got %d, %v, want %d", got, err, next)
	}
	if err := s.Append(batch(t, next, 1, t0, 10)); err != nil && !errors.Is(err, ErrOffsetOverflow) {
		t.Fatal(err)
	}
	_, err = s.TruncateTo(target)
	must(t, err)
	must(t, s.Close())
}
