package commitlog

import (
	"slices"
	"sync"

	"github.com/gregor-kafka/gregor/internal/segment"
)

// A CleanView is what a log looks like to the cleaner at one moment. It is immutable, and the
// files of its segments can be read until Release, also if they leave the log meanwhile.
type CleanView struct {
	LogStart      int64
	LastStable    int64
	HighWatermark int64
	End           int64

	// Segments are all there are, oldest first. The last one is active.
	Segments []CleanSegment

	log         *Log
	offsets     *Offsets
	truncations uint32
	producers   map[int64]producerEnd
}

// A CleanSegment is a segment of a CleanView.
type CleanSegment struct {
	*segment.Segment
	Next  int64 // base offset of the segment behind it; of the active one the log end
	Bytes int64 // size when the view was taken
}

// A producerEnd is where a producer stands: the last offset of its last data batch, or -1 if
// none is known.
type producerEnd struct {
	epoch      int16
	lastOffset int64
}

// CleanView returns the log as it is. The caller releases it.
func (l *Log) CleanView() *CleanView {
	l.pins.hold()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offsets.Load()
	return &CleanView{
		LogStart: o.LogStart, LastStable: o.LastStable, HighWatermark: o.HighWatermark, End: o.End,
		Segments:    o.CleanSegments(),
		log:         l,
		offsets:     o,
		truncations: l.mu.truncations,
		producers:   l.mu.producers.ends(),
	}
}

// ends says of each producer where it stands.
func (s *ProducerState) ends() map[int64]producerEnd {
	ends := make(map[int64]producerEnd, len(s.producers))
	for id, p := range s.producers {
		end := producerEnd{epoch: p.epoch, lastOffset: -1}
		if p.count > 0 {
			end.lastOffset = p.batches[p.newest].lastOffset
		}
		ends[id] = end
	}
	return ends
}

// Release lets go of the files. It is called once.
func (v *CleanView) Release() { v.log.pins.release() }

// Outdated reports whether the log was truncated since, so that what was read may be gone.
func (v *CleanView) Outdated() bool {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	return v.truncations != v.log.mu.truncations
}

// Active returns the active segment.
func (v *CleanView) Active() CleanSegment { return v.Segments[len(v.Segments)-1] }

// Between returns the segments that may have offsets in [start, end): from the one that holds
// start to the last one that begins below end.
func (v *CleanView) Between(start, end int64) []CleanSegment {
	from, to := 0, 0
	for i, s := range v.Segments {
		if s.BaseOffset() <= start {
			from = i
		}
		if s.BaseOffset() < end {
			to = i + 1
		}
	}
	return v.Segments[min(from, to):to]
}

// EndsProducer reports whether a batch of a producer is what its state is made from after a
// restart, and so must stay, if only its header: its last data batch, or of a producer that
// wrote markers alone, a marker of its epoch. Producers that have expired have none.
func (v *CleanView) EndsProducer(id int64, epoch int16, lastOffset int64, control bool) bool {
	end, ok := v.producers[id]
	switch {
	case !ok || id < 0:
		return false
	case end.lastOffset >= 0:
		return lastOffset == end.lastOffset
	}
	return control && epoch == end.epoch
}

// Aborted returns the aborted transactions that may have records in [start, end), in the order
// of their markers.
// Undecided are those of which nobody knows.
func (v *CleanView) Aborted(start, end int64) (list []segment.AbortedTxn, undecided []UndecidedTxn, err error) {
	i, j := max(0, v.offsets.floor(start)), max(0, v.offsets.floor(end-1))
	list, undecided, err = v.log.transactions(v.offsets, i, j, start, end)
	return slices.Clip(list), undecided, err
}

// pins keep the files of segments that have left the log until no view needs them.
type pins struct {
	mu      sync.Mutex
	views   int
	waiting []func()
}

func (p *pins) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.views++
}

func (p *pins) release() {
	p.mu.Lock()
	p.views--
	if p.views < 0 {
		panic("BUG: view of a log released twice")
	}
	var todo []func()
	if p.views == 0 {
		todo, p.waiting = p.waiting, nil
	}
	p.mu.Unlock()
	for _, f := range todo {
		f()
	}
}

// whenFree calls f when there is no view: now or at the end of a Release.
func (p *pins) whenFree(f func()) {
	p.mu.Lock()
	if p.views > 0 {
		p.waiting = append(p.waiting, f)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	f()
}
