package segment

import (
	"errors"
	"math"
	"os"
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

// A time index that has lost its last entries, as an old copy has, gives the answers of the whole one, whatever
// the order of timestamps, and where the first batches have none.
func TestTimeIndexOfBefore(t *testing.T) {
	f := func(name string, timestamps ...int64) {
		t.Helper()
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		for i, ts := range timestamps {
			must(t, s.Append(batch(t, int64(i), 1, ts, 60)))
		}
		wantMax, wantOffset, err := s.MaxTimestamp()
		must(t, err)
		must(t, s.Seal())
		entries := fileSize(t, s, TimeIndexFile) / timeEntrySize
		must(t, s.Close())
		for keep := range entries {
			h, err := m.OpenFile(s.Path(TimeIndexFile), os.O_RDWR, 0)
			must(t, err)
			must(t, errors.Join(h.Truncate(keep*timeEntrySize), h.Close()))
			s := open(t, m, 0, smallConfig())
			if ts, offset, err := s.MaxTimestamp(); ts != wantMax || offset != wantOffset || err != nil {
				t.Errorf("%s, %d of %d entries: got %d at %d, %v, want %d at %d", name, keep, entries, ts, offset, err, wantMax, wantOffset)
			}
		}
	}
	f("ascending", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	f("largest in the middle", 1, 2, 3, 9, 3, 4, 4, 3, 2, 1, 3, 2, 1, 2)
	f("first ones without", -1, -1, -1, -1, -1, -1, 3, 4, 5, 6)
}

// Indexes that were made while damage was the end of the file are made again when a Guard looks behind it.
func TestIndexesMadeBeforeGuard(t *testing.T) {
	m := newFS(t)
	c := smallConfig()
	c.IndexIntervalBytes = 200
	s := create(t, m, 0, c)
	for i := range int64(12) {
		must(t, s.Append(batch(t, i, 1, 1000+i, 60)))
	}
	e := s.idx.Load().lastOffset() // it leads into the damage
	if e.offset == 11 {
		t.Fatal("nothing is behind the damage")
	}
	must(t, s.Close())
	flip(t, m, s.Path(LogFile), 8*(int64(e.position)+16)) // the magic
	s, err := Open(m, testDir, 0, c)
	must(t, err)
	if next, err := s.NextOffset(); err == nil {
		t.Errorf("without a guard the end is %d", next)
	}
	s.Guard(12)
	if next, err := s.NextOffset(); next != 12 || err != nil {
		t.Errorf("end %d, %v, want 12", next, err)
	}
	if ts, offset, err := s.MaxTimestamp(); ts != 1011 || offset != 11 || err != nil {
		t.Errorf("largest timestamp %d at %d, %v, want 1011 at 11", ts, offset, err)
	}
	if got, ok, err := s.OffsetByTimestamp(1011, 0); got.Offset != 11 || !ok || err != nil {
		t.Errorf("1011 is at %d, %v, %v", got.Offset, ok, err)
	}
	must(t, s.Close())
}
