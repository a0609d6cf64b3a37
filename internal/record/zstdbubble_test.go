package record

import (
	"bytes"
	"testing"
	"testing/synctest"
)

// Coders that were used in one bubble do not come up in others when they are forgotten at its end.
func TestForgetZstd(t *testing.T) {
	content := bytes.Repeat([]byte("records "), 1000)
	there := func(t *testing.T) {
		defer ForgetZstd()
		for level := range 20 {
			packed := compress(nil, content, Zstd, level, 2)
			s := new(scratch)
			if err := s.decompress(packed, Zstd, 2, 1<<20); err != nil || !bytes.Equal(s.buf, content) {
				t.Errorf("level %d: got %d bytes, %v", level, len(s.buf), err)
			}
		}
	}
	synctest.Test(t, there)
	there(t)
	synctest.Test(t, there)
}
