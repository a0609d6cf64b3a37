package metrics

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var size = &Family{Name: "kafka_log_log_size", Kind: KindGauge, Help: "Bytes of all segments.", Labels: []string{"topic", "partition"}}

// written returns what f writes.
func written(t *testing.T, f func(w *Writer)) string {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	f(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parse reads the text with Prometheus' own reader.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

func TestWriter(t *testing.T) {
	got := written(t, func(w *Writer) {
		w.Begin(size)
		w.Int(4096, "orders", "0")
		w.Int(math.MaxInt64, `a"b\c`+"\n", "1")
		w.Int(7)
		w.Begin(&Family{Name: "ratio", Kind: KindGauge, Help: "A \\ and a\nline."})
		w.Float(0.25)
		w.Float(math.Inf(1))
		w.Bool(true)
		w.Single(&Family{Name: "n_total", Kind: KindCounter, Help: "N."}, 3)
	})
	want := `# HELP kafka_log_log_size Bytes of all segments.
# TYPE kafka_log_log_size gauge
kafka_log_log_size{topic="orders",partition="0"} 4096
kafka_log_log_size{topic="a\"b\\c\n",partition="1"} 9223372036854775807
kafka_log_log_size 7
# HELP ratio A \\ and a\nline.
# TYPE ratio gauge
ratio 0.25
ratio +Inf
ratio 1
# HELP n_total N.
# TYPE n_total counter
n_total 3
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-1, 0, 1 << 16, 1<<16 + 1, time.Millisecond, time.Second, time.Hour} {
		h.Observe(d)
	}
	family := &Family{Name: "total_ms", Kind: KindHistogram, Help: "Time.", Labels: []string{"request"}}
	text := written(t, func(w *Writer) {
		w.Begin(family)
		w.Histogram(&h, "Fetch")
	})
	m := parse(t, text)["total_ms"].GetMetric()[0].GetHistogram()
	if m.GetSampleCount() != 7 || h.Count() != 7 {
		t.Errorf("counts %d and %d, want 7", m.GetSampleCount(), h.Count())
	}
	if got, want := m.GetSampleSum(), (2.0*65536+1)/1e6+1+1000+3600_000; math.Abs(got-want) > 1e-6 {
		t.Errorf("sum %v, want %v", got, want)
	}
	below := func(ms float64) (n uint64) {
		for _, b := range m.GetBucket() {
			if b.GetUpperBound() <= ms {
				n = b.GetCumulativeCount()
			}
		}
		return n
	}
	f := func(ms float64, want uint64) {
		t.Helper()
		if got := below(ms); got != want {
			t.Errorf("%d within %v ms, want %d", got, ms, want)
		}
	}
	f(0.065536, 3)
	f(0.131072, 4)
	f(1.048576, 5)
	f(1073.741824, 6)
	f(34359.738368, 6)
	f(math.Inf(1), 7)
}

func TestSum(t *testing.T) {
	var a, b, both Histogram
	for _, d := range []time.Duration{0, time.Millisecond, time.Hour} {
		a.Observe(d)
		b.Observe(2 * d)
		both.Observe(d)
		both.Observe(2 * d)
	}
	text := func(h *Histogram) string {
		return written(t, func(w *Writer) {
			w.Begin(&Family{Name: "total_ms", Kind: KindHistogram, Help: "Time."})
			w.Histogram(h)
		})
	}
	if diff := cmp.Diff(text(&both), text(Sum(&a, &b))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := Sum().Count(); n != 0 {
		t.Errorf("nothing has %d", n)
	}
}

// A bucket ends where its bound says.
func TestBuckets(t *testing.T) {
	for i := range bucketCount - 1 {
		if got := bucketOf(boundOf(i)); got != i {
			t.Errorf("%v is in bucket %d, want %d", boundOf(i), got, i)
		}
		if got := bucketOf(boundOf(i) + 1); got != i+1 {
			t.Errorf("%v is in bucket %d, want %d", boundOf(i)+1, got, i+1)
		}
	}
	if got := bucketOf(math.MaxInt64); got != bucketCount-1 {
		t.Errorf("the longest duration is in bucket %d, want %d", got, bucketCount-1)
	}
}

// FuzzLabel: whatever a client calls itself, Prometheus reads it back.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"", "orders", `"`, `\`, "\n", `\n`, "a\xffb", "中文", "\u2028", "\r", "\x00", `}`, `{x="y"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, label string) {
		text := written(t, func(w *Writer) {
			w.Begin(size)
			w.Int(1, label, "0")
		})
		want := label
		if !utf8.ValidString(label) {
			want = strings.ToValidUTF8(label, "\uFFFD")
		}
		got := parse(t, text)["kafka_log_log_size"].GetMetric()[0].GetLabel()
		for _, pair := range got {
			if pair.GetName() == "topic" && pair.GetValue() != want {
				t.Errorf("got %q, want %q", pair.GetValue(), want)
			}
		}
	})
}

type brokenWriter struct{ writes int }

var errBroken = errors.New("broken")

func (b *brokenWriter) Write([]byte) (int, error) {
	b.writes++
	return 0, errBroken
}

// A client that went away is not written to again.
func TestWriterError(t *testing.T) {
	var out brokenWriter
	w := NewWriter(&out)
	w.Begin(size)
	for range 10_000 {
		w.Int(1, "orders", "0")
	}
	if err := w.Flush(); err != errBroken || out.writes != 1 {
		t.Errorf("%v after %d writes, want the error of the only one", err, out.writes)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestWriterDoesNotAllocate(t *testing.T) {
	w := NewWriter(discard{})
	w.Begin(size)
	if got := testing.AllocsPerRun(1000, func() { w.Int(1<<40, "orders", "12345") }); got != 0 {
		t.Errorf("%v allocations per sample, want 0", got)
	}
}

func BenchmarkSample(b *testing.B) {
	w := NewWriter(discard{})
	w.Begin(size)
	b.ReportAllocs()
	for b.Loop() {
		w.Int(1<<40, "orders", "12345")
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Observe(time.Millisecond)
	}
}
