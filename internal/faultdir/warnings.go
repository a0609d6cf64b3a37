package faultdir

import "sync"

// warnings keep the last lines that a broker has logged.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

// warningsMax bounds what is kept.
const warningsMax = 100

func (w *warnings) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) < warningsMax {
		w.lines = append(w.lines, string(b))
	}
	return len(b), nil
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}
