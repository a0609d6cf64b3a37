package segment

import "sync"

// timestamps are what is known of those of a segment.
type timestamps struct {
	sync.Mutex
	max        maxTimestamp
	maxKnown   bool
	first      int64
	firstKnown bool
	shown      shownMax
}

// A maxTimestamp is the largest timestamp of a segment, in ms, and the last offset of the batch
// that has it.
type maxTimestamp struct {
	timestamp, offset int64

	// bare says that only the time index knows the timestamp: the message is of format v0, which has none. So
	// readers get no record with it, and nothing can be held against it.
	bare bool
}

// A shownMax is the largest timestamp of the batches in front of a position, and the last offset there.
type shownMax struct {
	max      maxTimestamp
	position int64
	last     int64
}

// unknownMax stands for a segment without timestamps.
func unknownMax(base int64) maxTimestamp { return maxTimestamp{timestamp: -1, offset: base} }

// begin is for a segment without batches that nobody else knows.
func (t *timestamps) begin(base int64) { t.max, t.maxKnown = unknownMax(base), true }

// note takes notice of a batch behind all others.
func (t *timestamps) note(f frame) {
	t.Lock()
	defer t.Unlock()
	if f.maxTimestamp > t.max.timestamp {
		t.max = maxTimestamp{timestamp: f.maxTimestamp, offset: f.last}
	}
}

// largest returns the largest timestamp, if it is known.
func (t *timestamps) largest() (m maxTimestamp, known bool) {
	t.Lock()
	defer t.Unlock()
	return t.max, t.maxKnown
}

// set replaces what is known, after a truncation or a recovery.
func (t *timestamps) set(m maxTimestamp) {
	t.Lock()
	defer t.Unlock()
	t.max, t.maxKnown = m, true
	t.firstKnown = false
	t.shown = shownMax{}
}

// learn keeps the largest timestamp unless it is known by now.
func (t *timestamps) learn(m maxTimestamp) {
	t.Lock()
	defer t.Unlock()
	if !t.maxKnown {
		t.max, t.maxKnown = m, true
	}
}

// forgetMax has the largest timestamp learned anew.
func (t *timestamps) forgetMax() {
	t.Lock()
	defer t.Unlock()
	t.maxKnown = false
	t.shown = shownMax{}
}

// shownSoFar returns what learnShown was told, if anything: then its position is above 0.
func (t *timestamps) shownSoFar() shownMax {
	t.Lock()
	defer t.Unlock()
	return t.shown
}

// learnShown keeps what goes further than what is known.
func (t *timestamps) learnShown(m shownMax) {
	t.Lock()
	defer t.Unlock()
	if m.position > t.shown.position {
		t.shown = m
	}
}

// ofFirst returns the largest timestamp of the first batch, if it is known.
func (t *timestamps) ofFirst() (timestamp int64, known bool) {
	t.Lock()
	defer t.Unlock()
	return t.first, t.firstKnown
}

func (t *timestamps) learnFirst(timestamp int64) {
	t.Lock()
	defer t.Unlock()
	t.first, t.firstKnown = timestamp, true
}
