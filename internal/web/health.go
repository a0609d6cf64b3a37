package web

import "net/http"

// A State is how far a broker is, with the numbers of Kafka's gauge BrokerState.
type State int32

// Kafka has more states; these are the ones that a gregor is in.
const (
	Starting     State = 1
	Recovery     State = 2 // logs are being loaded
	Running      State = 3
	ShuttingDown State = 7
)

func (s State) String() string {
	switch s {
	case Starting:
		return "starting"
	case Recovery:
		return "recovery"
	case Running:
		return "running"
	case ShuttingDown:
		return "shutting down"
	}
	return "not running"
}

// Health is what a broker says of itself.
type Health struct {
	State   State
	Reasons []string // why it is not as it should be
}

// Ready reports whether clients get what they ask for.
func (h Health) Ready() bool { return h.State == Running && len(h.Reasons) == 0 }

// A HealthAnswer is the body of /health.
type HealthAnswer struct {
	Ready   bool     `json:"ready"`
	State   string   `json:"state"`
	Reasons []string `json:"reasons,omitempty"`
}

// handleHealth adds /health, which is 503 as long as the broker is not ready, and
// /health/live, which is 200 as long as anybody answers: a supervisor that restarts a
// broker because it takes long to recover makes it take longer.
func (s *Server) handleHealth(health func() Health) {
	answer := func(h Health) HealthAnswer { return HealthAnswer{h.Ready(), h.State.String(), h.Reasons} }
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		h, status := health(), http.StatusOK
		if !h.Ready() {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, answer(h))
	})
	s.mux.Handle("GET /health/live", JSON(func(*http.Request) (any, error) { return answer(health()), nil }))
}
