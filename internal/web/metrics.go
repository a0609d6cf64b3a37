package web

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

// scrapeTimeout is how long a client may take to read its metrics.
const scrapeTimeout = time.Minute

// A Collector writes families with what it finds when it is called. It may be called by
// several goroutines.
type Collector func(w *metrics.Writer)

// Collect adds what /metrics answers.
func (s *Server) Collect(list ...Collector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.collectors = append(s.mu.collectors, list...)
}

// handleMetrics adds /metrics. What grows with the data is written sample by sample as it is
// read; the Go runtime and the process, which are some fifty samples, come from Prometheus'
// own collectors.
func (s *Server) handleMetrics() {
	runtime := sync.OnceValue(newRuntime) // not before somebody asks: a start has no time for it
	s.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		http.NewResponseController(w).SetWriteDeadline(begun.Add(scrapeTimeout)) // all connections have one
		w.Header().Set("Content-Type", metrics.ContentType)
		out, end := compressed(w, r)
		defer end()
		if err := s.writeMetrics(out, begun); err != nil {
			return // the client is gone
		}
		writeRuntime(out, runtime())
	})
}

func (s *Server) writeMetrics(out io.Writer, begun time.Time) error {
	s.mu.Lock()
	list := s.mu.collectors
	s.mu.Unlock()
	w := metrics.NewWriter(out)
	for _, collect := range list {
		collect(w)
	}
	w.Begin(scrapeSeconds)
	w.Float(time.Since(begun).Seconds())
	return w.Flush()
}

// compressed returns where to write the answer, and what ends it.
func compressed(w http.ResponseWriter, r *http.Request) (io.Writer, func()) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic("BUG: " + err.Error()) // the level is one
	}
	return z, func() { z.Close() } // it fails as the writes before it did
}

func newRuntime() prometheus.Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// writeRuntime writes what can be had: some of it is not known on every system.
func writeRuntime(out io.Writer, g prometheus.Gatherer) {
	families, _ := g.Gather()
	encoder := expfmt.NewEncoder(out, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if encoder.Encode(f) != nil {
			return
		}
	}
}
