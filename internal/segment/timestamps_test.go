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

// A message of format v0 has no timestamp to hold an entry of the time index against. So one that leads to it says
// nothing about what readers get, whatever it is: of this segment, as brokers wrote for timestamps that they did
// not store, or of another one.
func TestTimeIndexOfMessagesWithoutTimestamps(t *testing.T) {
	f := func(name string, index []timeEntry, set ...[]byte) {
		t.Helper()
		m := newFS(t)
		s := create(t, m, 0, smallConfig())
		inBatches := unknownMax(0)
		for _, b := range set {
			must(t, s.Append(b))
			if b := record.Batch(b); b.Magic() > 0 && b.MaxTimestamp() > inBatches.timestamp {
				inBatches = maxTimestamp{timestamp: b.MaxTimestamp(), offset: b.LastOffset()}
			}
		}
		want := inBatches
		must(t, s.Close())
		h, err := m.OpenFile(s.Path(TimeIndexFile), os.O_RDWR|os.O_TRUNC, 0)
		must(t, err)
		_, err = h.WriteAt(encode(index), 0)
		must(t, errors.Join(err, h.Close()))
		s = open(t, m, 0, smallConfig())
		shown := func() {
			t.Helper()
			if ts, err := s.MaxTimestampShown(); ts != want.timestamp || err != nil {
				t.Errorf("%s: largest timestamp shown %d, %v, want %d", name, ts, err, want.timestamp)
			}
			r, ok, err := s.MaxTimestampRecord()
			if ok != (want.timestamp >= 0) || err != nil || ok && (r.Timestamp != want.timestamp || r.Offset != want.offset) {
				t.Errorf("%s: record with the largest timestamp %+v, %v, %v, want %+v", name, r, ok, err, want)
			}
		}
		shown()
		for ts := range want.timestamp + 2 {
			if got, ok, err := s.OffsetByTimestamp(ts, 0); ok != (ts <= want.timestamp) || ok && got.Timestamp < ts || err != nil {
				t.Errorf("%s: time %d is at %+v, %v, %v", name, ts, got, ok, err)
			}
		}
		if want.timestamp >= 0 {
			if got, _, err := s.OffsetByTimestamp(0, 0); got.Offset != 1 || err != nil { // the first that has one
				t.Errorf("%s: time 0 is at %d, %v, want 1", name, got.Offset, err)
			}
		}
		if last := index[len(index)-1]; !s.idx.Load().built { // what retention goes by
			if ts, _, err := s.MaxTimestamp(); ts != last.timestamp || err != nil {
				t.Errorf("%s: largest timestamp %d, %v, want %d", name, ts, err, last.timestamp)
			}
		}
		next, err := s.NextOffset() // of what comes behind, too
		must(t, err)
		must(t, s.Append(batch(t, next, 1, 30, 60)))
		want = maxTimestamp{timestamp: 30, offset: next}
		shown()
		_, err = s.TruncateTo(next)
		must(t, err)
		want = inBatches
		shown()
	}
	none := func(offset int64) []byte { return message(t, 0, offset) }
	mixed := [][]byte{none(0), batch(t, 1, 1, 5, 60), none(2), batch(t, 3, 1, 9, 60), none(4), batch(t, 5, 1, 7, 60), none(6)}
	f("all without", []timeEntry{{40, 2}}, none(0), none(1), none(2))
	f("later than all", []timeEntry{{40, 4}}, mixed...)
	f("last, later than all", []timeEntry{{50, 6}}, mixed...)
	f("behind a right one", []timeEntry{{9, 3}, {50, 6}}, mixed...)
	f("hides earlier ones", []timeEntry{{0, 2}, {9, 3}}, mixed...)
	f("hides the largest", []timeEntry{{1, 4}, {8, 6}}, mixed...)
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
