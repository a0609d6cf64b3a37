package cleaner

import (
	"fmt"
	"testing"
	"time"
)

// A look at all logs is taken by every thread after each back-off.
func BenchmarkChoose(b *testing.B) {
	s := newShelf(b)
	for i := range 200 {
		l := s.add("/a", partition(fmt.Sprintf("t%d", i)), compacted())
		s.fill(l, 2, 1)
		s.fill(l, 2, 1)
	}
	m := s.start(withoutThreads())
	b.ReportAllocs()
	for b.Loop() {
		if m.choose(time.Now()).best == nil {
			b.Fatal("nothing to clean")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/log")
}
