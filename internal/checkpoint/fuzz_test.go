package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzOffsets(f *testing.F) {
	for _, seed := range []string{"", "0\n", "0\n1\nmy-topic 3 42\n", "0\n2\na 0 -1\r\nb 1 9223372036854775807", "0\n1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := newFS(t)
		write(t, m, "d/f", text)
		offsets, err := ReadOffsets(m, "d/f")
		if err != nil {
			return
		}
		if err := WriteOffsets(m, "d/f", offsets); err != nil {
			t.Fatal(err)
		}
		again, err := ReadOffsets(m, "d/f")
		if err != nil || !cmp.Equal(offsets, again) {
			t.Errorf("%q: read back %v, %v, want %v", text, again, err, offsets)
		}
	})
}

func FuzzEpochs(f *testing.F) {
	for _, seed := range []string{"", "0\n2\n0 0\n4 120\n", "0\n1\n-1 -1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := newFS(t)
		write(t, m, "d/f", text)
		entries, err := ReadEpochs(m, "d/f")
		if err != nil {
			return
		}
		if err := WriteEpochs(m, "d/f", entries); err != nil {
			t.Fatal(err)
		}
		again, err := ReadEpochs(m, "d/f")
		if err != nil || !cmp.Equal(entries, again) {
			t.Errorf("%q: read back %v, %v, want %v", text, again, err, entries)
		}
	})
}

func FuzzLosses(f *testing.F) {
	for _, seed := range []string{"", "0\n2\n0 5\n5 120\n", "0\n1\n5 5", "0\n1\n-1 5", "0\n2\n0 5\n4 9\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := newFS(t)
		write(t, m, "d/f", text)
		list, err := ReadLosses(m, "d/f")
		if err != nil {
			return
		}
		end := int64(0)
		for _, l := range list {
			if l.First < end || l.End <= l.First {
				t.Fatalf("%q: accepted as %v", text, list)
			}
			end = l.End
		}
		if err := WriteLosses(m, "d/f", list); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadLosses(m, "d/f"); err != nil || !cmp.Equal(list, again) {
			t.Errorf("%q: read back %v, %v, want %v", text, again, err, list)
		}
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	f.Add("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parsePartitionMetadata([]byte(text)); err == nil && (m.Version < 0 || m.TopicID.IsZero()) {
			t.Errorf("%q: accepted as %+v", text, m)
		}
	})
}

func FuzzMetaProperties(f *testing.F) {
	f.Add("version=1\nnode.id=5\ncluster.id=c\ndirectory.id=AAAAAAAAAAEAAAAAAAAABw")
	f.Add("broker.id 3")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parseMetaProperties([]byte(text)); err == nil && m.NodeID < NoNode {
			t.Errorf("%q: accepted as %+v", text, m)
		}
	})
}

func FuzzCleanShutdown(f *testing.F) {
	f.Add(`{"version":0,"brokerEpoch":77}`)
	f.Fuzz(func(t *testing.T, text string) {
		epoch := parseCleanShutdown([]byte(text))
		if got := parseCleanShutdown(appendCleanShutdown(nil, epoch)); got != epoch {
			t.Errorf("%q: epoch %d reads back as %d", text, epoch, got)
		}
	})
}

// What is read of a file of lost transactions reads the same when it is written.
func FuzzTransactions(f *testing.F) {
	f.Add("0\n1\n" + string(LostTransaction{4, 209, 219, Abort}.append(nil)))
	f.Add("0\n1\n4 209 219 UNDECIDED 00000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		fsys := newFS(t)
		write(t, fsys, "d/t", text)
		list, err := ReadTransactions(fsys, "d/t")
		if err != nil {
			return
		}
		if err := WriteTransactions(fsys, "d/t", list); err != nil {
			t.Fatal(err)
		}
		again, err := ReadTransactions(fsys, "d/t")
		if err != nil || !cmp.Equal(list, again) {
			t.Errorf("%q: read back %v, %v, want %v", text, again, err, list)
		}
	})
}
