package human

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(Bytes(0), "0 B")
	f(Bytes(1023), "1023 B")
	f(Bytes(1024), "1.0 KiB")
	f(Bytes(1536<<20), "1.5 GiB")
	f(Bytes(5<<50), "5.0 PiB")
	f(Duration(-1), "0s")
	f(Duration(1500*time.Microsecond), "2ms")
	f(Duration(90*time.Second), "1m30s")
	f(Duration(25*time.Hour+30*time.Minute), "1d1h")
	f(Ago(-time.Second), "in the future")
	f(Ago(90*time.Minute), "1h30m ago")
}
