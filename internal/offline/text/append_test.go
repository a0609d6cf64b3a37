package text

import (
	"testing"
)

func TestAppendFloatIsJavas(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		if got := string(AppendFloat(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	f(0, "0.0")
	f(1048576, "1048576.0")
	f(0.5, "0.5")
	f(1e7, "1.0E7")
	f(-1.5e-5, "-1.5E-5")
}
