package coordinator

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The set of timers behaves as a map that is searched for the earliest deadline.
func TestTimersModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var timers Timers[int]
		model := make(map[int]time.Time)
		earliest := func() (at time.Time, ok bool) {
			if len(model) == 0 {
				return time.Time{}, false
			}
			return slices.MinFunc(slices.Collect(maps.Values(model)), time.Time.Compare), true
		}
		key := rapid.IntRange(0, 9)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, at := key.Draw(t, "key"), time.Unix(rapid.Int64Range(0, 20).Draw(t, "at"), 0)
				timers.Set(k, at)
				model[k] = at
			},
			"cancel": func(t *rapid.T) {
				k := key.Draw(t, "key")
				timers.Cancel(k)
				delete(model, k)
			},
			"pop": func(t *rapid.T) {
				now := time.Unix(rapid.Int64Range(0, 20).Draw(t, "now"), 0)
				at, any := earliest()
				k, ok := timers.PopDue(now)
				if ok != (any && !at.After(now)) {
					t.Fatalf("PopDue(%v) = %v, earliest is %v", now, ok, at)
				}
				if ok && !model[k].Equal(at) {
					t.Fatalf("popped %v, earliest is %v", model[k], at)
				}
				if ok {
					delete(model, k)
				}
			},
			"": func(t *rapid.T) {
				at, ok := timers.Next()
				wantAt, wantOK := earliest()
				if ok != wantOK || !at.Equal(wantAt) || len(timers.byKey) != len(model) {
					t.Fatalf("next %v, %v of %d, want %v, %v of %d", at, ok, len(timers.byKey), wantAt, wantOK, len(model))
				}
			},
		})
	})
}

func TestTimersEqualDeadlines(t *testing.T) {
	var timers Timers[string]
	at := time.Unix(1, 0)
	for _, k := range []string{"a", "b", "c"} {
		timers.Set(k, at)
	}
	timers.Set("a", at) // now the last
	var got []string
	for k, ok := timers.PopDue(at); ok; k, ok = timers.PopDue(at) {
		got = append(got, k)
	}
	if want := []string{"b", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
