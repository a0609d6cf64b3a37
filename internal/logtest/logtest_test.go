package logtest

import (
	"os"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// What lies in one field is whole in all others, and its CRC fits.
func TestLying(t *testing.T) {
	good := Values(t, record.BuilderOptions{BaseOffset: 7}, "a", "b")
	lying := Lying(good, LastOffsetDeltaPosition, 5)
	if good.LastOffset() != 8 || lying.LastOffset() != 12 {
		t.Errorf("last offsets %d and %d, want 8 and 12", good.LastOffset(), lying.LastOffset())
	}
	if err := lying.Verify(); err != nil {
		t.Error(err)
	}
}

func TestFlip(t *testing.T) {
	fsys := vfs.NewMem()
	f, err := fsys.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0, 0, 0}, 0); err != nil {
		t.Fatal(err)
	}
	Flip(t, fsys, "/f", 1)
	if b, err := vfs.ReadFile(fsys, "/f", 10); err != nil || b[0] != 0 || b[1] == 0 || b[2] != 0 {
		t.Errorf("got %v, %v, want another byte 1 only", b, err)
	}
}
