package compaction

import (
	"errors"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
)

// Bytes that make no sense and are no damage, as the segment finds, end a cleaning at the offset where they are.
func TestSourceRefusesWhatIsOdd(t *testing.T) {
	g := newLedger(t)
	g.put(kind{}, "a=1", "b=1")
	g.put(kind{}, "c=1")
	g.roll()
	g.flip(2, record.HeaderSize+3)
	s := source{size: 1 << 10, large: 1 << 20}
	s.open(g.log.Offsets().CleanSegments()[0], 0)
	s.scrubbed = true
	first, err := s.next()
	must(t, err)
	_, err = s.next()
	if bad, ok := errors.AsType[*segment.CorruptError](err); !ok || bad.Offset != 2 || bad.Position != int64(len(first)) || !errors.Is(err, errOdd) {
		t.Errorf("got %v", err)
	}
}
