package segment

import (
	"math"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/record"
)

func TestTimeIndexSkipsEqualAndSmaller(t *testing.T) {
	s := create(t, newFS(t), 0, Config{})
	for i, ts := range []int64{5, 5, 3, -1, 5, 9, 9, 7, 10} {
		must(t, s.Append(batch(t, int64(i), 1, ts, 10)))
	}
	must(t, s.Seal())
	want := []timeEntry{{5, 0}, {9, 5}, {10, 8}}
	got := s.idx.Load().times.Load().view()
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTimestamps(t *testing.T) {
	m := newFS(t)
	s := create(t, m, 50, smallConfig())
	if ts, offset, err := s.MaxTimestamp(); ts != -1 || offset != 50 || err != nil {
		t.Errorf("empty MaxTimestamp: got %d, %d, %v", ts, offset, err)
	}
	if _, ok, err := s.MaxTimestampRecord(); ok || err != nil {
		t.Errorf("empty MaxTimestampRecord: got %v, %v", ok, err)
	}
	if ts, err := s.FirstTimestamp(); ts != math.MaxInt64 || err != nil {
		t.Errorf("empty FirstTimestamp: got %d, %v", ts, err)
	}
	modified := time.UnixMilli(t0 - 5000)
	must(t, s.SetModTime(modified))
	if ts, err := s.LargestTimestamp(); ts != t0-5000 || err != nil {
		t.Errorf("empty LargestTimestamp: got %d, %v, want the time of the file", ts, err)
	}
	for i, ts := range []int64{1000, 5000, 2000, 3000} { // redpanda#6604
		must(t, s.Append(batch(t, 50+int64(i), 1, ts, 60)))
	}
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: 54, LeaderEpoch: new(int32(7))})
	for i, ts := range []int64{100, 8000, 8000, 6000} {
		must(t, b.Append(record.Record{Offset: 54 + int64(i), Timestamp: ts}))
	}
	must(t, s.Append(b.Build()))
	f := func(ts, start, wantTs, want int64) {
		t.Helper()
		got, ok, err := s.OffsetByTimestamp(ts, start)
		if err != nil || ok != (want >= 0) || ok && (got.Offset != want || got.Timestamp != wantTs) {
			t.Errorf("OffsetByTimestamp(%d, %d): got %+v, %v, %v, want %d at %d", ts, start, got, ok, err, wantTs, want)
		}
	}
	check := func() {
		t.Helper()
		f(0, 50, 1000, 50)
		f(1000, 50, 1000, 50)
		f(1001, 50, 5000, 51)
		f(2500, 50, 5000, 51)
		f(2500, 52, 3000, 53)
		f(2500, 54, 8000, 55)
		f(5001, 50, 8000, 55)
		f(5500, 56, 8000, 56)
		f(5500, 57, 6000, 57)
		f(8001, 50, 0, -1)
		f(0, 58, 0, -1)
		if r, ok, err := s.MaxTimestampRecord(); r != (TimestampOffset{8000, 55, 7}) || !ok || err != nil {
			t.Errorf("MaxTimestampRecord: got %+v, %v, %v", r, ok, err)
		}
		if ts, err := s.LargestTimestamp(); ts != 8000 || err != nil {
			t.Errorf("LargestTimestamp: got %d, %v", ts, err)
		}
		if ts, err := s.FirstTimestamp(); ts != 1000 || err != nil {
			t.Errorf("FirstTimestamp: got %d, %v", ts, err)
		}
	}
	check()
	must(t, s.Close())
	s = open(t, m, 50, smallConfig())
	check()
}
