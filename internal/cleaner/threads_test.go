package cleaner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
)

// The number of threads, pauses, forced cleanings and changes of the settings in between make no
// difference to what is there in the end.
func TestThreadsMakeNoDifference(t *testing.T) {
	var want [][]string
	for _, threads := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := cleanAtRandom(t, threads)
				if want == nil {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("log %d: got %v, want %v", i, got[i], want[i])
					}
				}
			})
		})
	}
}

func cleanAtRandom(t *testing.T, threads int) [][]string {
	s := newShelf(t)
	cfg := testManagerConfig()
	cfg.Threads, cfg.BytesPerSecond, cfg.Backoff = threads, 20_000, time.Second
	m := s.start(cfg)
	history := rand.New(rand.NewPCG(1, 2))
	trouble := rand.New(rand.NewPCG(3, uint64(threads)))
	logs := make([]*commitlog.Log, 4)
	for i := range logs {
		c := compacted()
		c.SegmentBytes = 2000
		logs[i] = s.add("/a", partition(fmt.Sprint("t", i)), c)
	}
	for step := range 300 {
		l := logs[history.IntN(len(logs))]
		value := fmt.Sprint(step)
		if history.IntN(5) == 0 {
			value = ""
		}
		s.append(l, fmt.Sprintf("k%d", history.IntN(12)), value)
		p := logs[trouble.IntN(len(logs))].Partition()
		switch trouble.IntN(20) {
		case 0:
			m.Pause(p)
			time.Sleep(time.Duration(trouble.IntN(3000)) * time.Millisecond)
			m.Resume(p)
		case 1:
			if _, err := m.CleanNow(t.Context(), p, false); err != nil && !errors.Is(err, ErrNothingToClean) {
				t.Error(err)
			}
		case 2:
			cfg.BytesPerSecond = float64(10_000 + trouble.IntN(20_000))
			m.Reconfigure(cfg)
		case 3:
			time.Sleep(time.Second)
		}
	}
	var seen [][]string
	for _, l := range logs {
		must(t, l.Roll())
		time.Sleep(time.Minute)
		seen = append(seen, finalState(read(t, l)))
	}
	if got := m.Stats(); got.Totals.Failed > 0 || len(got.Uncleanable) > 0 || got.DeadThreads > 0 {
		t.Errorf("stats %+v", got)
	}
	return seen
}

// finalState sorts out what a consumer keeps who remembers the last record of each key.
func finalState(records []string) []string {
	last := make(map[string]string)
	for _, r := range records {
		var offset int64
		var rest string
		fmt.Sscanf(r, "%d:%s", &offset, &rest)
		key := rest[:slices.Index([]byte(rest), '=')]
		last[key] = r
	}
	var list []string
	for _, r := range last {
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}
