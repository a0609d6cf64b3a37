package config

import "testing"

func TestMessageFormat(t *testing.T) {
	f := func(want int8, releases ...string) {
		t.Helper()
		for _, r := range releases {
			if !releasePattern.MatchString(r) {
				t.Errorf("%s is no valid release", r)
			}
			if got := MessageFormat(r); got != want {
				t.Errorf("%s: got v%d, want v%d", r, got, want)
			}
		}
	}
	f(0, "0.8.0", "0.8.2.2", "0.9.0", "0.9.0.1", "0.9")
	f(1, "0.10.0-IV0", "0.10.0", "0.10.2.2", "0.10-IV1")
	f(2, "0.11.0-IV2", "0.11.0.3", "1.0", "1.1-IV0", "2.8", "3.0-IV1", "10.2")
	for _, bad := range []string{"", "0", "0.7.2", "0.12", "2.8-", "v2", "0.10.x", "2..8"} {
		if releasePattern.MatchString(bad) {
			t.Errorf("%q is a valid release", bad)
		}
	}
}
