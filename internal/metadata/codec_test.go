package metadata

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUvarint(t *testing.T) {
	f := func(b []byte, want uint32, size int) { // of size 0: refused
		t.Helper()
		d := &decoder{b: b}
		got := d.readUvarint()
		read := len(b) - len(d.b)
		if d.err != nil {
			read = 0
		}
		if got != want || read != size || (d.err == nil) != (size > 0) {
			t.Errorf("%x: got %d of %d bytes (%v), want %d of %d", b, got, read, d.err, want, size)
		}
	}
	f(nil, 0, 0)
	f([]byte{0}, 0, 1)
	f([]byte{0x80}, 0, 0)
	f([]byte{0x7f, 1}, 127, 1)
	f([]byte{0x80, 1}, 128, 2)
	f([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<32-1, 5)
	f([]byte{0x80, 0x80, 0x80, 0x80, 0x10}, 0, 0)                                  // 1<<32
	f([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0}, 0, 0)                               // longer than it need be
	f([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 0, 0) // of more than 64 bits
}

// A record that is cut off anywhere is none.
func TestDecodeCut(t *testing.T) {
	for _, r := range append(newTopic("t", 1, 1), NewPartitionChangeRecord(), NewRegisterBrokerRecord(), &ConfigRecord{Name: "n", Value: text("v")}) {
		b := Append(nil, r, LevelCurrent)
		for n := range b {
			if _, err := Decode(b[:n]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%T: %d of %d bytes: got %v", r, n, len(b), err)
			}
		}
	}
}

func TestDecodeUnknownKey(t *testing.T) {
	for _, key := range [][]byte{{0x7e}, {0xff, 0xff, 1}, {0x80, 0x80, 2}, {0x80, 0x80, 4}} { // 126, 1<<15-1, 1<<15, 1<<16
		if r, err := Decode(append([]byte{frameVersion}, append(key, 0)...)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("key %x: got %T, %v", key, r, err)
		}
	}
}

// Control records begin with their version, the first of which is 0; without one they are none.
func TestControlVersions(t *testing.T) {
	want := &LeaderChangeMessage{LeaderID: 1, Voters: []Voter{{VoterID: 1}}, GrantingVoters: []Voter{}}
	b := AppendControl(nil, want, 0)
	got := NewLeaderChangeMessage()
	if err := DecodeControl(b, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("version 0 (-want +got):\n%s", diff)
	}
	for n := range b {
		if err := DecodeControl(b[:n], got); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d of %d bytes: got %v", n, len(b), err)
		}
	}
	b[0] = 0xff
	if err := DecodeControl(b, got); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a negative version: got %v", err)
	}
}
