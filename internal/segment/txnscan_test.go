package segment

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A txnLog writes batches of producers one behind the other.
type txnLog struct {
	t      *testing.T
	s      *Segment
	next   int64
	starts []int64 // positions
}

func newTxnLog(t *testing.T, m vfs.FS, base int64) *txnLog {
	t.Helper()
	return &txnLog{t: t, s: create(t, m, base, smallConfig()), next: base}
}

func (l *txnLog) append(b []byte) {
	l.t.Helper()
	l.starts = append(l.starts, l.s.Size())
	must(l.t, l.s.Append(b))
	l.next = record.Batch(b).NextOffset()
}

// data makes a batch of two records with values of some size.
func (l *txnLog) data(producerID int64, transactional bool, size int) []byte {
	l.t.Helper()
	o := record.BuilderOptions{BaseOffset: l.next, Transactional: transactional}
	if producerID >= 0 {
		o.Producer = &record.Producer{ID: producerID}
	}
	b := record.NewBuilder(o)
	for i := range int64(2) {
		must(l.t, b.Append(record.Record{Offset: l.next + i, Timestamp: t0, Value: make([]byte, size)}))
	}
	return b.Build()
}

func (l *txnLog) plain()              { l.append(l.data(-1, false, 9)) }
func (l *txnLog) idempotent(id int64) { l.append(l.data(id, false, 9)) }
func (l *txnLog) transacted(id int64) { l.append(l.data(id, true, 9)) }
func (l *txnLog) compacted(id int64)  { l.append(record.EmptyBatch(l.data(id, true, 9))) }
func (l *txnLog) skip(offsets int64)  { l.next += offsets }
func (l *txnLog) abort(id int64)      { l.marker(id, record.ControlAbort) }
func (l *txnLog) commit(id int64)     { l.marker(id, record.ControlCommit) }
func (l *txnLog) reopen(guard int64)  { l.reopenWith(guard, smallConfig()) }
func (l *txnLog) flip(i int, bit int64) {
	flip(l.t, l.s.files.fs, l.s.Path(LogFile), l.starts[i]*8+bit)
}

func (l *txnLog) marker(id int64, kind record.ControlType) {
	l.append(record.EndTxnMarker(record.EndTxn{Type: kind, ProducerID: id, Timestamp: t0, BaseOffset: l.next}))
}

// reopenWith opens the segment anew, with all in doubt; a guard of 0 turns quarantine off.
func (l *txnLog) reopenWith(guard int64, cfg Config) {
	l.t.Helper()
	must(l.t, l.s.Close())
	s, err := Open(l.s.files.fs, testDir, l.s.BaseOffset(), cfg)
	must(l.t, err)
	l.s = s
	if guard > 0 {
		s.Guard(guard)
	}
}

func (l *txnLog) want(name string, want TxnScan) {
	l.t.Helper()
	got, err := l.s.ScanTxns(l.s.Size())
	if err != nil {
		l.t.Errorf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestScanTxns(t *testing.T) {
	l := newTxnLog(t, newFS(t), 100)
	l.plain()       // 100, 101
	l.idempotent(1) // 102, 103
	l.transacted(1) // 104, 105
	l.transacted(2) // 106, 107
	l.transacted(1) // 108, 109
	l.commit(2)     // 110
	l.abort(1)      // 111
	l.abort(1)      // 112: of a transaction without records here
	l.transacted(4) // 113, 114
	l.transacted(3) // 115, 116
	l.compacted(5)  // 117, 118
	l.abort(9)      // 119
	l.abort(2)      // 120
	want := TxnScan{
		Aborted: []ScannedTxn{{1, 104, 111, -1}, {1, -1, 112, 112}, {9, -1, 119, -1}, {2, -1, 120, 111}},
		Open:    []OpenTxn{{4, 113}, {3, 115}},
		End:     121, Intact: true,
	}
	l.want("as written", want)
	l.reopen(121)
	l.want("opened", want)
	l.reopen(0)
	l.want("without a guard", want)

	got, err := l.s.ScanTxns(l.starts[6])
	must(t, err)
	if diff := cmp.Diff(TxnScan{Open: []OpenTxn{{1, 104}}, End: 111, Intact: true}, got); diff != "" {
		t.Errorf("up to the marker (-want +got):\n%s", diff)
	}
}

// A transactional batch that is there though the producer is in none, or the other way round, is
// believed if its checksum is right.
func TestScanTxnsEndedElsewhere(t *testing.T) {
	l := newTxnLog(t, newFS(t), 0)
	l.transacted(1)
	l.idempotent(1) // its transaction must have ended: the marker is not kept as open
	l.want("ended", TxnScan{Open: []OpenTxn{{1, 0}}, End: 4, Intact: true})
}

// Control batches that are no markers of transactions end none.
func TestScanTxnsOtherControls(t *testing.T) {
	l := newTxnLog(t, newFS(t), 0)
	l.transacted(1)
	o := record.BuilderOptions{BaseOffset: l.next, Producer: &record.Producer{ID: 1}}
	l.append(record.ControlBatch(o, t0, record.ControlType(2), []byte("leader change")))
	l.want("leader change", TxnScan{Open: []OpenTxn{{1, 0}}, End: 3, Intact: true})
}

// Offsets that compaction has taken are no damage; where that is in doubt the batches are proven first.
func TestScanTxnsGaps(t *testing.T) {
	l := newTxnLog(t, newFS(t), 0)
	l.transacted(1)
	l.skip(5)
	l.abort(1)
	l.skip(3)
	l.transacted(2)
	want := TxnScan{Aborted: []ScannedTxn{{1, 0, 7, -1}}, Open: []OpenTxn{{2, 11}}, End: 13, Intact: true}
	l.want("as written", want)
	l.reopen(20)
	l.want("in doubt", want)
	if l.s.health.doubt.Load() != nil || len(l.s.Damages()) > 0 {
		t.Error("a gap was not looked into, or found to be damage")
	}
	l.want("once more", want)
	l.reopen(0)
	l.want("without a guard", want)
}

// What is damaged stands in the way: the scan says so, and the damage is in quarantine.
func TestScanTxnsDamage(t *testing.T) {
	const body, size, magic = 70 * 8, 8 * 8, 16 * 8
	f := func(name string, i int, bit int64) {
		t.Helper()
		l := newTxnLog(t, newFS(t), 0)
		l.transacted(1)
		l.transacted(2)
		l.abort(1)
		l.commit(2)
		l.transacted(3)
		l.idempotent(3)
		l.plain()
		l.flip(i, bit)
		l.reopen(l.next)
		l.want(name, TxnScan{})
		if len(l.s.Damages()) != 1 {
			t.Errorf("%s: damages %v", name, l.s.Damages())
		}
		l.want(name+", once more", TxnScan{})
		if bit < size {
			return // without a guard nobody looks at offsets
		}
		l.reopen(0)
		l.want(name+", without a guard", TxnScan{})
	}
	f("first of a transaction", 0, body)
	f("marker", 2, body)
	f("length of a marker", 2, size+14)
	f("length of a batch", 1, size+31)
	f("not of the transaction any more", 5, body)
	f("offset of a marker", 3, 7*8+4)
	f("magic", 1, magic+6)

	l := newTxnLog(t, newFS(t), 0)
	l.transacted(1)
	l.transacted(1)
	l.plain()
	l.flip(1, body) // nobody looks at it: the header says all
	l.reopen(6)
	l.want("second of a transaction", TxnScan{Open: []OpenTxn{{1, 0}}, End: 6, Intact: true})
}

// Large batches are scanned by their headers like others.
func TestScanTxnsLarge(t *testing.T) {
	l := newTxnLog(t, newFS(t), 0)
	l.append(l.data(1, true, 100<<10))
	l.append(l.data(1, true, 100<<10))
	l.abort(1)
	l.append(l.data(2, true, blockSize/2))
	l.commit(2)
	want := TxnScan{Aborted: []ScannedTxn{{1, 0, 4, -1}}, End: 8, Intact: true}
	l.want("as written", want)
	l.reopen(8)
	l.want("opened", want)
}

func TestHeaders(t *testing.T) {
	l := newTxnLog(t, newFS(t), 10)
	l.plain()
	l.transacted(7)
	l.abort(7)
	l.idempotent(8)
	all := []Header{
		{10, 11, l.starts[0], -1, false, false},
		{12, 13, l.starts[1], 7, true, false},
		{14, 14, l.starts[2], 7, true, true},
		{15, 16, l.starts[3], 8, false, false},
	}
	f := func(name string, from, to int64, atMost int, want []Header) {
		t.Helper()
		var got []Header
		err := l.s.Headers(from, to, func(h Header) bool {
			got = append(got, h)
			return len(got) < atMost
		})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	f("all", 0, l.s.Size(), 9, all)
	f("the first two", 0, l.s.Size(), 2, all[:2])
	f("one", l.starts[1], l.starts[2], 9, all[1:2])
	f("none", l.starts[1], l.starts[1], 9, nil)
	f("from one that ends behind", l.starts[1], l.starts[1]+1, 9, all[1:2])
	f("beyond the end", l.starts[3], l.s.Size()+1000, 9, all[3:])

	l.flip(1, 70*8)
	l.reopen(17)
	_, err := l.s.Scrub(nil)
	must(t, err)
	f("damage", 0, l.s.Size(), 9, slices.Delete(slices.Clone(all), 1, 2))

	// Without a guard what is no batch is an error, and what is cut off is the end.
	l.flip(1, 16*8+6)
	l.reopen(0)
	if err := l.s.Headers(0, l.s.Size(), func(Header) bool { return true }); !isDamage(err) {
		t.Errorf("bad magic: got %v", err)
	}
	l.flip(1, 16*8+6)
	file, err := l.s.files.fs.OpenFile(l.s.Path(LogFile), os.O_RDWR, 0)
	must(t, err)
	must(t, file.Truncate(l.starts[3]+70))
	must(t, file.Close())
	l.reopen(0)
	f("cut", 0, l.s.Size()+1000, 9, all[:3])
}
