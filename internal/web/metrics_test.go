package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

var update = flag.Bool("update", false, "write doc/metrics.md")

// scrape asks for /metrics and reads the answer as Prometheus does.
func scrape(t *testing.T, c *Client) map[string]*dto.MetricFamily {
	t.Helper()
	status, text, err := c.exchange(t.Context(), http.MethodGet, "/metrics", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("got %d, %v", status, err)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// What collectors write is there, also what comes while the server runs, and so are the Go
// runtime and the process.
func TestMetrics(t *testing.T) {
	s, dir := newServer(t)
	socket, tcp := serveSocket(t, s, dir), serveTCP(t, s)
	s.Collect(Broker("cluster", 7, func() Health { return Health{State: Running} }))
	for _, c := range []*Client{socket, tcp} {
		got := scrape(t, c)
		for _, name := range []string{"kafka_server_kafkaserver_brokerstate", "gregor_info", "gregor_scrape_seconds", "go_goroutines", "process_resident_memory_bytes"} {
			if got[name] == nil {
				t.Errorf("%s is missing", name)
			}
		}
		if v := got["kafka_server_kafkaserver_brokerstate"].GetMetric()[0].GetGauge().GetValue(); v != float64(Running) {
			t.Errorf("state %v, want %v", v, Running)
		}
	}
}

func TestMetricsCompressed(t *testing.T) {
	s, _ := newServer(t)
	c := serveTCP(t, s)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip") // set by hand: the answer comes as it is
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); got != metrics.ContentType {
		t.Errorf("content type %q", got)
	}
	z, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !strings.Contains(string(text), "\ngo_goroutines ") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// A client that stops reading does not hold up the end.
func TestMetricsOfAClientThatLeaves(t *testing.T) {
	s, _ := newServer(t)
	s.Collect(func(w *metrics.Writer) {
		w.Begin(logSize)
		for range 1_000_000 {
			w.Int(1, "t", "0")
		}
	})
	c := serveTCP(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	response.Body.Close()
	shutdown(t, s)
}

// Names follow Prometheus' rules, but where Kafka's exporters have other ones.
func TestNames(t *testing.T) {
	var text bytes.Buffer
	w := metrics.NewWriter(&text)
	seen := map[string]bool{}
	for _, f := range families {
		if seen[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		seen[f.Name] = true
		if !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: help is no sentence: %s", f.Name, f.Help)
		}
		w.Begin(f)
		if f.Kind == metrics.KindHistogram {
			w.Histogram(&metrics.Histogram{})
		} else {
			w.Int(1)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(&text).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "kafka_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// doc/metrics.md lists what there is. go test ./internal/web -run TestDocumented -update
// writes it.
func TestDocumented(t *testing.T) {
	const path = "../../doc/metrics.md"
	const begin, end = "<!-- generated from internal/web -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", path, begin, end)
	}
	want := head + begin + table() + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s is not what -update would write: -want +got\n%s", path, diff)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	sorted := slices.SortedFunc(slices.Values(families), func(a, b *metrics.Family) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range sorted {
		b.WriteString("| `" + f.Name + "` | " + string(f.Kind) + " | " + strings.Join(f.Labels, ", ") + " | " + f.Help + " |\n")
	}
	return b.String()
}
