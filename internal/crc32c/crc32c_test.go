package crc32c

import "testing"

// The check value of the polynomial, in one piece and in two.
func TestChecksum(t *testing.T) {
	const want = 0xe3069283
	if got := Checksum([]byte("123456789")); got != want {
		t.Errorf("got %08x, want %08x", got, uint32(want))
	}
	h := New()
	h.Write([]byte("12345"))
	h.Write([]byte("6789"))
	if got := h.Sum32(); got != want {
		t.Errorf("in two pieces: got %08x, want %08x", got, uint32(want))
	}
}
